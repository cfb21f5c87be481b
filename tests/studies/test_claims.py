"""Cells and claims from records with known numbers, against scipy and hand counts."""

import math

import numpy as np
import pytest
from scipy import stats

from calida.studies import MNIST_USPS, PROTOCOLS, SVHN_MNIST, TABLES, base_lines, examine_claims, table_lines
from calida.studies.claims import FAILS, HOLDS, OPEN, Interval
from calida.studies.paper import NUM_SAMPLES

SEEDS = range(4)
TASK = PROTOCOLS["paper"][MNIST_USPS]
RECIPES = (*(row.recipe for row in TABLES["table2a"].rows), "dual")


def oracle(accuracy, ece=0.05):
    return {"accuracy": accuracy, "mean_class_accuracy": accuracy - 0.01, "ece": ece}


def record(task, recipe, seed, rounds, chosen=-1, ece=0.05, variances=(2.0, 1.0), entropies=(0.1, 0.4)):
    """A run whose target accuracy went through `rounds`, the first of them before adaptation."""
    parts = [
        {
            "phase": "adapt" if index else "pretrain",
            "round": max(index - 1, 0),
            "oracle": oracle(value, ece),
            "source": {"entropy": entropies[0]},
            "target": {"entropy": entropies[1]},
            "gradient_variance": {"source": variances[0], "target": variances[1]},
        }
        for index, value in enumerate(rounds)
    ]
    return {
        "key": task.job(recipe, seed).key,
        **task.job(recipe, seed).identity(),
        "start": None if "source" in recipe else task.job(recipe, seed).start.key,
        "rounds": parts,
        "returned": {"oracle": oracle(rounds[chosen], ece / 2), "oracle_uncalibrated": oracle(rounds[chosen], ece)},
        "by_samples": {
            str(count): {
                name: oracle(0.8 + 0.01 * math.log10(count) + 0.001 * seed)
                for name in ("source_trained_on", "source_held_out", "oracle")
            }
            for count in ((1,) if recipe == "source" else NUM_SAMPLES)
        },
        "seconds": 10.0,
    }


def records(values, task=TASK, **options):
    """Records by key from last-round accuracies {recipe: [one a seed]}."""
    made = [
        record(task, recipe, seed, [0.8, value] if "source" not in recipe else [value], **options.get(recipe, {}))
        for recipe, some in values.items()
        for seed, value in zip(SEEDS, some, strict=True)
    ]
    return {one["key"]: one for one in made}


def findings(known, claim, task=MNIST_USPS):
    found = examine_claims(PROTOCOLS["paper"], SEEDS, known)
    return [one for one in found if claim in one.claim if one.task == task]


def test_a_line_has_three_choices_with_mean_and_spread():
    ways = [[0.80, 0.90, 0.95, 0.93], [0.82, 0.91, 0.92, 0.96], [0.78, 0.94, 0.93, 0.92]]
    mine = [record(TASK, "rer-inf", seed, rounds, chosen=1) for seed, rounds in enumerate(ways)]
    before = [record(TASK, "source", seed, rounds[:1]) for seed, rounds in enumerate(ways)]
    known = {one["key"]: one for one in (*mine, *before)}
    lines = {line.row.recipe: line for line in table_lines(TABLES["table2a"], TASK, range(3), known)}
    line = lines["rer-inf"]
    expected = {"label-free": [0.90, 0.91, 0.94], "last": [0.93, 0.96, 0.92], "oracle best": [0.95, 0.96, 0.94]}
    for name, values in expected.items():
        assert line.accuracy[name].mean == pytest.approx(np.mean(values))
        assert line.accuracy[name].std == pytest.approx(np.std(values, ddof=1))
        assert line.accuracy[name].seeds == 3
    assert line.gain == pytest.approx(np.mean(expected["label-free"]) - 0.80)
    assert line.ece["label-free"].mean == pytest.approx(0.025)  # calibrated
    assert line.uncalibrated.mean == pytest.approx(0.05)
    assert lines["source"].gain is None
    assert lines["source"].accuracy["last"].mean == pytest.approx(0.80)
    assert lines["brer-1"].missing


def test_the_last_round_is_not_the_best_and_pretraining_is_neither():
    """A run that only ever got worse has its best adaptation round, not its start, as the oracle's choice."""
    known = {(one := record(TASK, "rer-1", 0, [0.9, 0.7, 0.5]))["key"]: one}
    line = next(line for line in table_lines(TABLES["table2a"], TASK, [0], known) if not line.missing)
    assert line.accuracy["oracle best"].mean == pytest.approx(0.7)
    assert line.accuracy["last"].mean == pytest.approx(0.5)
    assert math.isnan(line.accuracy["last"].std)


def test_base_lines_read_the_figures_of_each_number_of_samples():
    known = records({"source": [0.8] * 4, "bsource": [0.8] * 4})
    lines = base_lines(TASK, SEEDS, known)
    assert [line.row.num_samples for line in lines] == [None, *NUM_SAMPLES]
    assert lines[-1].figures["oracle"].mean == pytest.approx(0.82 + 0.0015)
    assert lines[1].figures["oracle"].mean == pytest.approx(0.80 + 0.0015)


def test_an_interval_is_students():
    first, second = np.array([0.91, 0.95, 0.93, 0.96]), np.array([0.90, 0.91, 0.94, 0.92])
    reference = stats.ttest_rel(first, second).confidence_interval(0.95)
    interval = Interval.of(list(first - second))
    assert (interval.low, interval.high) == pytest.approx((reference.low, reference.high))
    assert interval.mean == pytest.approx((first - second).mean())


def test_one_seed_settles_nothing():
    assert Interval.of([5.0]).is_above() == OPEN


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [([1.0, 1.2, 0.9, 1.1], HOLDS), ([-1.0, -1.2, -0.9, -1.1], FAILS), ([2.0, -1.0, 0.5, -0.7], OPEN)],
)
def test_bayesian_against_point(gain, verdict):
    point = [0.90, 0.85, 0.92, 0.88]
    names = ("rer-1", "rer-1-gvr", "rer-inf", "rer-inf-gvr")
    values = dict.fromkeys(names, point)
    values |= {f"b{name}": [p + g / 100 for p, g in zip(point, gain, strict=True)] for name in names}
    (found,) = findings(records(values), "Bayesian")
    assert found.verdict == verdict
    assert found.interval == pytest.approx(Interval.of(gain))
    assert found.seeds == 4


def test_spread_over_seeds_is_an_f_interval():
    generator = np.random.default_rng(0)
    pairs = [("rer-1", "rer-inf"), ("rer-1-gvr", "rer-inf-gvr"), ("brer-1", "brer-inf"), ("brer-1-gvr", "brer-inf-gvr")]
    wide = {one: generator.normal(0.8, 0.05, 4).tolist() for one, _ in pairs}
    narrow = {inf: generator.normal(0.9, 0.001, 4).tolist() for _, inf in pairs}
    found = findings(records(wide | narrow), "more stable")[0]
    pooled = [np.mean([np.var(values, ddof=1) for values in some.values()]) for some in (wide, narrow)]
    ratio = pooled[0] / pooled[1]
    bounds = ratio / stats.f.ppf([0.975, 0.025], 12, 12)
    assert found.interval == pytest.approx((math.sqrt(ratio), *np.sqrt(bounds)))
    assert found.verdict == HOLDS


def test_gvr_is_judged_apart_at_each_order():
    values = {name: [0.9, 0.91, 0.89, 0.9] for name in RECIPES}
    values["rer-inf-gvr"] = values["brer-inf-gvr"] = [0.93, 0.94, 0.92, 0.931]
    values["rer-1-gvr"] = values["brer-1-gvr"] = [0.90, 0.911, 0.889, 0.9]
    known = records(values)
    assert [one.verdict for one in findings(known, "GVR helps")] == [HOLDS]
    assert [one.verdict for one in findings(known, "does not help")] == [HOLDS]
    values["rer-1-gvr"] = values["brer-1-gvr"] = [0.93, 0.94, 0.92, 0.931]
    assert [one.verdict for one in findings(records(values), "does not help")] == [FAILS]


def test_samples_variance_and_certainty():
    known = records({name: [0.9, 0.91, 0.89, 0.9] for name in RECIPES})
    more = findings(known, "Larger M")
    assert [one.interval.mean for one in more] == pytest.approx([2.0, 1.0])
    (variance,) = findings(known, "Gradient variance")
    assert variance.interval.mean == pytest.approx(math.log(2))
    assert variance.verdict == HOLDS
    (certainty,) = findings(known, "less certain")
    assert certainty.interval.mean == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("ece", "accuracy", "verdict"),
    [
        (0.02, [0.900, 0.911, 0.890, 0.901], HOLDS),
        (0.02, [0.850, 0.861, 0.840, 0.851], FAILS),  # calibrated at the price of accuracy
        (0.08, [0.900, 0.911, 0.890, 0.901], FAILS),
    ],
)
def test_dual_ascent_needs_both_lower_ece_and_equal_accuracy(ece, accuracy, verdict):
    values = {"rer-1": [0.9, 0.91, 0.89, 0.9], "dual": accuracy}
    found = findings(records(values, dual={"ece": ece}), "Dual")
    assert [one.verdict for one in found] == [verdict] * 2


def test_claims_are_made_only_where_their_runs_are():
    task = PROTOCOLS["paper"][SVHN_MNIST]
    known = records({"source": [0.5] * 4, "bsource": [0.5] * 4}, task)
    found = examine_claims(PROTOCOLS["paper"], SEEDS, known)
    assert {one.task for one in found} == {SVHN_MNIST}
    assert {one.claim.split()[0] for one in found} == {"Larger", "The"}
