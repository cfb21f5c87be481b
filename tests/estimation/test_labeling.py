"""A few labels: the design by its definition, the interval against closed forms, coverage by redrawing."""

import itertools

import pytest
import torch

from calida.errors import InputError
from calida.estimation import Estimate, LabelDesign, compare_estimates, draw_design, estimate_from_labels
from calida.estimation.estimate import wilson

HALF_OF_TEN_PERCENT = 1.6448536269514722
MANY = 10**9  # so many that drawing without replacement makes no difference


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def population(rows=2000, seed=0):
    """How probably each sample is right, and whether it is: as probabilities say, all in all."""
    chance = torch.rand(rows, generator=generator(seed)) ** 0.3
    return chance, torch.rand(rows, generator=generator(seed + 1)) < chance


def test_a_design_is_a_partition_with_samples_of_every_part():
    chance, _ = population()
    design = draw_design(chance, 50, generator())
    assert len(design.rows.unique()) == len(design.rows) == 50
    assert int(design.sizes.sum()) == len(chance)
    assert torch.bincount(design.strata).tolist() == [10] * 5
    assert float((1 / design.probabilities).sum()) == pytest.approx(len(chance))  # Horvitz and Thompson's count
    # Strata are intervals of the probability.
    drawn = [chance[design.rows[design.strata == stratum]] for stratum in range(5)]
    assert all(float(low.max()) <= float(high.min()) for low, high in itertools.pairwise(drawn))


def test_every_beginning_of_the_list_has_all_strata():
    design = draw_design(population()[0], 50, generator())
    for start in range(0, 50, 5):
        assert sorted(design.strata[start : start + 5].tolist()) == [0, 1, 2, 3, 4]


def test_doubtful_samples_are_drawn_oftener_than_sure_ones():
    """In proportion to their deviations, 0.5 and the least, 0.4."""
    chance = torch.cat([torch.full((500,), 0.999), torch.full((500,), 0.5)])
    drawn = torch.cat([chance[draw_design(chance, 50, generator(seed)).rows] for seed in range(200)])
    assert float((drawn == 0.5).sum() / (drawn != 0.5).sum()) == pytest.approx(0.5 / 0.4, rel=0.06)


def test_samples_are_drawn_with_the_probabilities_that_the_design_states():
    chance = torch.linspace(0, 1, 40)
    counts, stated = torch.zeros(40), torch.zeros(40)
    for seed in range(2000):
        design = draw_design(chance, 10, generator(seed))
        counts[design.rows] += 1
        stated[design.rows] += design.probabilities
    torch.testing.assert_close(counts / 2000, torch.full((40,), 0.25), atol=0.05, rtol=0)
    torch.testing.assert_close(stated / counts, torch.full((40,), 0.25))


@pytest.mark.parametrize(("rows", "budget"), [(1, 1), (3, 50), (60, 50), (50, 50), (200, 7), (51, 50), (500, 120)])
def test_small_populations_and_budgets(rows, budget):
    chance, right = population(rows)
    design = draw_design(chance, budget, generator())
    assert len(design.rows) == min(rows, budget)
    assert bool((torch.bincount(design.strata, minlength=len(design.sizes)) <= design.sizes).all())
    found = estimate_from_labels(right[design.rows], design.strata, design.sizes)
    assert 0 <= found.low <= found.value <= found.high <= 1
    if budget >= rows:
        assert found == Estimate(*[pytest.approx(float(right.double().mean()))] * 3)


def test_probabilities_that_say_nothing_make_a_plain_sample_in_strata():
    for chance in (torch.ones(300), torch.zeros(300), torch.full((300,), torch.nan)):
        design = draw_design(chance, 50, generator())
        assert design.sizes.tolist() == [60] * 5
    assert draw_design(torch.ones(300), 50, generator(1)).rows.tolist() != design.rows.tolist()


@pytest.mark.parametrize("right", [0, 1, 13, 37, 49, 50])
def test_one_stratum_has_wilsons_interval(right):
    found = estimate_from_labels(torch.arange(50) < right, torch.zeros(50, dtype=torch.long), torch.tensor([MANY]))
    low, high = wilson(right / 50, 50, HALF_OF_TEN_PERCENT)
    assert found.value == pytest.approx(right / 50)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize("answer", [True, False])
def test_where_all_labels_agree_strata_in_proportion_are_worth_one_sample(answer):
    """Five strata all right say what fifty right answers say, but for the shares that were fitted."""
    strata = torch.arange(50) % 5
    found = estimate_from_labels(torch.full((50,), answer), strata, torch.full((5,), MANY))
    low, high = wilson(float(answer), 50, HALF_OF_TEN_PERCENT * (50 / 46) ** 0.5)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_the_value_is_the_weighted_mean_and_the_interval_that_of_large_samples():
    """With many labels the interval is normal: value +- z sqrt(sum W^2 p (1 - p) / n)."""
    shares, counts, sizes = (0.2, 0.9), (4000, 1000), torch.tensor([MANY, 3 * MANY])
    right = torch.cat([torch.arange(n) < share * n for share, n in zip(shares, counts, strict=True)])
    found = estimate_from_labels(right, torch.repeat_interleave(torch.tensor([0, 1]), torch.tensor(counts)), sizes)
    deviation = (0.25**2 * 0.2 * 0.8 / 4000 + 0.75**2 * 0.9 * 0.1 / 1000) ** 0.5
    assert found.value == pytest.approx(0.25 * 0.2 + 0.75 * 0.9)
    assert found.high - found.low == pytest.approx(2 * HALF_OF_TEN_PERCENT * deviation, rel=0.01)


def test_right_and_wrong_are_mirror_images_and_strata_have_no_order():
    strata = torch.tensor([0] * 6 + [1] * 9 + [2] * 5)
    right, sizes = torch.rand(20, generator=generator(3)) < 0.7, torch.tensor([40, 300, 90])
    found, mirrored = estimate_from_labels(right, strata, sizes), estimate_from_labels(~right, strata, sizes)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-9)
    turned = estimate_from_labels(right, (strata + 1) % 3, sizes.roll(1))
    assert (turned.value, turned.low, turned.high) == pytest.approx((found.value, found.low, found.high), abs=1e-9)


@pytest.mark.parametrize("honest", [True, False])
def test_intervals_hold_the_truth_whatever_the_probabilities_are_worth(honest):
    """And are narrower than a plain sample's where the probabilities are good."""
    chance, right = population(1500, seed=4)
    chance = chance if honest else chance.flip(0)  # of other samples
    truth, held, widths, plain = float(right.double().mean()), [], [], []
    for seed in range(150):
        design = draw_design(chance, 50, generator(seed))
        found = estimate_from_labels(right[design.rows], design.strata, design.sizes)
        held.append(found.low <= truth <= found.high)
        widths.append(found.high - found.low)
        rows = torch.randperm(1500, generator=generator(seed))[:50]
        low, high = wilson(float(right[rows].double().mean()), 50, HALF_OF_TEN_PERCENT)
        plain.append(high - low)
    assert sum(held) / len(held) > 0.85
    ratio = sum(widths) / sum(plain)
    assert ratio < 0.93 if honest else ratio < 1.06


def test_the_estimate_is_unbiased_under_its_design():
    chance, right = population(400, seed=7)
    designs = [draw_design(chance, 20, generator(seed)) for seed in range(600)]
    share = sum(float((right[d.rows].double() / d.probabilities).sum()) / 400 for d in designs) / len(
        designs
    )  # Horvitz and Thompson's
    assert share == pytest.approx(float(right.double().mean()), abs=0.015)
    one = designs[0]
    found = estimate_from_labels(right[one.rows], one.strata, one.sizes).value
    assert found == pytest.approx(float((right[one.rows].double() / one.probabilities).sum()) / 400)


def test_a_design_comes_back_from_json_and_a_wrong_one_is_refused():
    design = draw_design(population()[0], 30, generator())
    again = LabelDesign.from_json(design.to_json())
    assert all(torch.equal(getattr(again, name), getattr(design, name)) for name in ("rows", "strata", "sizes"))
    for change in ({"strata": [0]}, {"sizes": [1]}, {"strata": [9] * 30}, {"strata": [-1] * 30}):
        with pytest.raises(ValueError, match="belong together"):
            LabelDesign.from_json({**design.to_json(), **change})


def test_what_cannot_be_estimated_is_said():
    with pytest.raises(InputError, match="at least 1"):
        draw_design(torch.ones(5), 0, generator())
    with pytest.raises(InputError, match="too few labels, or they are not from the top"):
        estimate_from_labels(torch.ones(4).bool(), torch.zeros(4, dtype=torch.long), torch.tensor([9, 9]))


def test_whether_an_estimate_held_is_said():
    measured = Estimate(0.7, 0.6, 0.8)
    few = compare_estimates(Estimate(0.78, 0.75, 0.9), Estimate(0.5, 0.16, 0.81))
    assert "cannot be refuted by so few labels: they allow anything from 16.0% to 81.0%" in few
    assert "held" in compare_estimates(Estimate(0.78, 0.75, 0.9), measured)
    assert "14 points too high, though" in compare_estimates(Estimate(0.84, 0.79, 0.9), measured)
    assert "did not hold: it is 20 points too high" in compare_estimates(Estimate(0.9, 0.85, 0.95), measured)
    assert "did not hold: it is 30 points too low" in compare_estimates(Estimate(0.4, 0.35, 0.45), measured)
