"""What a round draws on, and how long it is."""

import pytest
import torch

from calida.data import Labeled
from calida.errors import InputError
from calida.objective import Diversity, Objective, PredictiveLikelihood, Weighted
from calida.recipes import get_recipe, phases
from calida.seeds import Seeds
from calida.training import Domains, Phase, PseudoLabels

BOTH = Objective({"likelihood": Weighted(PredictiveLikelihood()), "diversity": Weighted(Diversity())})


@pytest.mark.parametrize(("longest", "turns"), [(None, 20), (100, 20), (20, 20), (7, 7)])
@pytest.mark.parametrize("schedule", ["joint", "alternate"])
def test_a_round_is_its_passes_or_the_longest_it_may_be(schedule, longest, turns):
    phase = Phase("adapt", BOTH, rounds=1, passes=2, batch_size=10, schedule=schedule, max_batches=longest)
    plans = phase.plan({"source": torch.arange(100), "target": torch.arange(35)}, Seeds(0))
    assert len(plans) == turns * (1 if schedule == "joint" else 2)
    assert sum(plan.size for plan in plans) == phase.estimate_samples(100, 35) == 2 * 10 * turns


@pytest.mark.parametrize(
    ("shortest", "longest", "turns"), [(1, None, 20), (20, None, 20), (35, None, 35), (200, None, 100), (50, 30, 30)]
)
def test_a_small_set_is_gone_through_more_often_and_at_most_five_times(shortest, longest, turns):
    phase = Phase("adapt", BOTH, rounds=1, passes=2, batch_size=10, min_batches=shortest, max_batches=longest)
    plans = phase.plan({"source": torch.arange(100), "target": torch.arange(35)}, Seeds(0))
    assert sum("source" in plan.rows for plan in plans) == turns
    seen = torch.cat([plan.rows["source"] for plan in plans if "source" in plan.rows]).bincount(minlength=100)
    assert seen.max() - seen.min() <= 1  # every pass goes through all of them


@pytest.mark.parametrize(("shape", "batches"), [((400, 1, 8, 8), 20), ((400, 64), 4)])
def test_only_images_have_a_shortest_epoch(shape, batches):
    recipe = (
        get_recipe("calida").with_settings(min_batches_per_epoch=24, min_batches_per_round=24).fitted_to(shape, False)
    )
    pretraining, adaptation = phases(recipe)
    assert pretraining.estimate_samples(400, 400) == 100 * batches
    assert adaptation.estimate_samples(400, 400) == 200 * min(24, 2 * batches)


@pytest.mark.parametrize("name", [f"{end}_batches_per_{part}" for end in ("min", "max") for part in ("epoch", "round")])
def test_a_round_without_a_batch_is_refused(name):
    with pytest.raises(InputError, match=name):
        get_recipe("calida").with_settings(**{name: 0})


def test_epochs_and_rounds_have_lengths_of_their_own():
    pretraining, adaptation = phases(
        get_recipe("calida").with_settings(max_batches_per_epoch=3, max_batches_per_round=5)
    )
    assert [phase.estimate_samples(10_000, 10_000) for phase in (pretraining, adaptation)] == [300, 1000]


@pytest.mark.parametrize("weighted", [(), ("source",), ("target",), ("source", "target")])
def test_rows_are_drawn_by_weight_in_the_domains_that_have_weights(weighted):
    x, y = torch.randn(40, 2), torch.arange(40) % 2
    weights = {domain: torch.where(y == 0, 0.0, 1.0) for domain in weighted}
    phase = Phase("adapt", BOTH, rounds=1)
    pools = phase.pools(Domains(Labeled(x, y), Labeled(x, y), x, 2), PseudoLabels.none(40, 2), 0, Seeds(0), weights)
    for domain, rows in pools.items():
        expected = torch.arange(40)[y == 1].repeat_interleave(2) if domain in weighted else torch.arange(40)
        torch.testing.assert_close(rows, expected)


def test_the_rate_goes_through_one_cycle():
    phase = Phase("adapt", BOTH, rounds=1, learning_rate=2.0, final_rate_fraction=0.1, warmup_fraction=0.2)
    assert [phase.rate(done) for done in (0.0, 0.1, 0.2)] == pytest.approx([0.2, 1.1, 2.0])  # a straight line up
    assert phase.rate(0.6) == pytest.approx((2.0 + 0.2) / 2)  # half-way down the cosine
    assert phase.rate(1.0) == pytest.approx(0.2)
    steady = Phase("adapt", BOTH, rounds=1, learning_rate=2.0)
    assert {steady.rate(done) for done in (0.0, 0.3, 1.0)} == {2.0}
