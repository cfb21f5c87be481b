"""How long a round is."""

import pytest
import torch

from calida.errors import InputError
from calida.objective import Diversity, Objective, PredictiveLikelihood, Weighted
from calida.recipes import get_recipe, phases
from calida.seeds import Seeds
from calida.training import Phase

BOTH = Objective({"likelihood": Weighted(PredictiveLikelihood()), "diversity": Weighted(Diversity())})


@pytest.mark.parametrize(("longest", "turns"), [(None, 20), (100, 20), (20, 20), (7, 7)])
@pytest.mark.parametrize("schedule", ["joint", "alternate"])
def test_a_round_is_its_passes_or_the_longest_it_may_be(schedule, longest, turns):
    phase = Phase("adapt", BOTH, rounds=1, passes=2, batch_size=10, schedule=schedule, longest=longest)
    plans = phase.plan({"source": torch.arange(100), "target": torch.arange(35)}, Seeds(0))
    assert len(plans) == turns * (1 if schedule == "joint" else 2)
    assert sum(plan.size for plan in plans) == phase.estimate_samples(100, 35) == 2 * 10 * turns


@pytest.mark.parametrize("name", ["longest_epoch", "longest_round"])
def test_a_round_without_a_batch_is_refused(name):
    with pytest.raises(InputError, match=name):
        get_recipe("calida").with_settings(**{name: 0})


def test_epochs_and_rounds_have_lengths_of_their_own():
    pretraining, adaptation = phases(get_recipe("calida").with_settings(longest_epoch=3, longest_round=5))
    assert [phase.estimate_samples(10_000, 10_000) for phase in (pretraining, adaptation)] == [300, 1000]
