"""Lines of tables and claims from records with known numbers, against scipy and hand counts."""

import math

import numpy as np
import pytest
from records import by_key, record, records, rows_of
from scipy import stats

from reproduction.claims import Finding, Interval, Verdict, examine_claims, of_differences, with_holm
from reproduction.summary import base_lines, table_lines
from reproduction.tables import MNIST_USPS, NUM_SAMPLES, SVHN_MNIST, TABLES
from reproduction.tasks import PROTOCOLS

SEEDS = range(4)
TASK = PROTOCOLS["main"][MNIST_USPS]
FLAT = [0.9, 0.91, 0.89, 0.9]


def findings(known, claim, task=MNIST_USPS):
    found = examine_claims(PROTOCOLS["main"], SEEDS, known)
    return [one for one in found if claim in one.claim if one.task == task]


def test_a_line_has_three_choices_with_mean_and_spread():
    ways = [[0.80, 0.90, 0.95, 0.93], [0.82, 0.91, 0.92, 0.96], [0.78, 0.94, 0.93, 0.92]]
    makers = rows_of(TASK)
    mine = [record(makers["RER-inf"](seed), rounds, chosen=1) for seed, rounds in enumerate(ways)]
    before = [record(makers["Source-DTN"](seed), rounds[:1]) for seed, rounds in enumerate(ways)]
    lines = {line.row.name: line for line in table_lines(TABLES["table2a"], TASK, range(3), by_key([*mine, *before]))}
    line = lines["RER-inf"]
    expected = {"label-free": [0.90, 0.91, 0.94], "last": [0.93, 0.96, 0.92], "oracle best": [0.95, 0.96, 0.94]}
    for name, values in expected.items():
        assert line.accuracy[name].mean == pytest.approx(np.mean(values))
        assert line.accuracy[name].std == pytest.approx(np.std(values, ddof=1))
        assert line.accuracy[name].seeds == 3
    assert line.gain == pytest.approx(np.mean(expected["label-free"]) - 0.80)
    assert line.distance == pytest.approx(100 * np.mean(expected["label-free"]) - 93.57)
    assert line.still_rising == pytest.approx(100 * np.mean([0.03, 0.05, -0.02]))
    assert line.ece.mean == pytest.approx(0.025)  # calibrated
    assert line.uncalibrated.mean == pytest.approx(0.05)
    assert lines["Source-DTN"].gain is None
    assert lines["Source-DTN"].accuracy["last"].mean == pytest.approx(0.80)
    assert lines["BRER-1"].missing
    assert lines["RER-inf, expected shares"].missing  # the same recipe with another setting is another row


def test_the_last_round_is_not_the_best_and_pretraining_is_neither():
    """A run that only ever got worse has its best adaptation round, not its start, as the oracle's choice."""
    known = by_key([record(rows_of(TASK)["RER-1"](0), [0.9, 0.7, 0.5])])
    line = next(line for line in table_lines(TABLES["table2a"], TASK, [0], known) if not line.missing)
    assert line.accuracy["oracle best"].mean == pytest.approx(0.7)
    assert line.accuracy["last"].mean == pytest.approx(0.5)
    assert math.isnan(line.accuracy["last"].std)


def test_base_networks_are_trained_with_their_own_number_of_samples():
    makers = rows_of(TASK)
    assert {makers[f"BDTN-M{count}"](0).recipe.posterior.num_samples for count in NUM_SAMPLES} == set(NUM_SAMPLES)
    known = records(TASK, {f"BDTN-M{count}": [0.8 + count / 1000] * 4 for count in NUM_SAMPLES})
    lines = base_lines(TASK, SEEDS, known)
    assert [line.row.num_samples for line in lines] == [None, *NUM_SAMPLES]
    assert lines[0].figures == {}
    assert [line.figures["oracle"].mean for line in lines[1:]] == pytest.approx([0.8 + n / 1000 for n in NUM_SAMPLES])


def test_an_interval_is_students():
    first, second = np.array([0.91, 0.95, 0.93, 0.96]), np.array([0.90, 0.91, 0.94, 0.92])
    reference = stats.ttest_rel(first, second)
    (found,) = of_differences("", "", "", list(first - second))
    bounds = reference.confidence_interval(0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((bounds.low, bounds.high))
    assert found.interval.mean == pytest.approx((first - second).mean())
    assert found.p_value == pytest.approx(reference.pvalue)


def test_one_seed_settles_nothing():
    (found,) = with_holm(of_differences("", "", "", [5.0]))
    assert found.verdict == Verdict.OPEN


def test_holms_correction_against_its_definition():
    """The i-th smallest p-value times the number of those not smaller, and never less than the one before."""
    p_values = [0.01, 0.04, 0.03, 0.005, 0.9]
    made = with_holm([Finding("", "", "", Interval(1, 0.5, 1.5), 0.0, p, 4) for p in p_values])
    assert [one.adjusted for one in made] == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])
    assert [one.verdict for one in made] == [Verdict.HOLDS, Verdict.OPEN, Verdict.OPEN, Verdict.HOLDS, Verdict.OPEN]


def test_an_interval_that_touches_its_border_settles_nothing():
    for low, border in ((0.5, 0.5), (0.5, 0.7), (-0.1, 0.0)):
        (found,) = with_holm([Finding("", "", "", Interval(1.0, low, 1.5), border, 1e-9, 4)])
        assert found.verdict == Verdict.OPEN
    (clear,) = with_holm([Finding("", "", "", Interval(1.0, 0.5, 1.5), 0.4, 1e-9, 4)])
    assert clear.verdict == Verdict.HOLDS


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        ([1.0, 1.2, 0.9, 1.1], Verdict.HOLDS),
        ([-1.0, -1.2, -0.9, -1.1], Verdict.FAILS),
        ([2.0, -1.0, 0.5, -0.7], Verdict.OPEN),
    ],
)
def test_bayesian_against_point(gain, verdict):
    point = [0.90, 0.85, 0.92, 0.88]
    names = ("RER-1", "RER-inf", "RER-inf, expected shares")
    values = dict.fromkeys(names, point)
    values |= {f"B{name}": [p + g / 100 for p, g in zip(point, gain, strict=True)] for name in names}
    (found,) = findings(records(TASK, values), "Bayesian variants")
    assert found.verdict == verdict
    assert found.interval.mean == pytest.approx(np.mean(gain))
    assert found.seeds == 4


def test_spread_over_seeds_is_an_f_interval():
    generator = np.random.default_rng(0)
    wide = {one: generator.normal(0.8, 0.05, 4).tolist() for one in ("RER-1", "BRER-1")}
    narrow = {one: generator.normal(0.9, 0.001, 4).tolist() for one in ("RER-inf", "BRER-inf")}
    found = findings(records(TASK, wide | narrow), "more stable")[0]
    pooled = [np.mean([np.var(values, ddof=1) for values in some.values()]) for some in (wide, narrow)]
    ratio = pooled[0] / pooled[1]
    bounds = ratio / stats.f.ppf([0.975, 0.025], 6, 6)
    assert found.interval == pytest.approx((math.sqrt(ratio), *np.sqrt(bounds)))
    assert found.verdict == Verdict.HOLDS


def test_gvr_is_judged_against_its_groups_for_each_order_and_network():
    better, same = [0.93, 0.94, 0.92, 0.931], [0.90, 0.911, 0.889, 0.9]
    values = {f"{b}RER-{order}, groups alone": FLAT for b in ("", "B") for order in ("1", "inf")}
    values |= {"RER-inf-GVR": better, "BRER-inf-GVR": same, "RER-1-GVR": same, "BRER-1-GVR": better}
    verdicts = {one.claim: one.verdict for one in findings(records(TASK, values), "GVR")}
    assert verdicts == {
        "GVR helps at order inf (point)": Verdict.HOLDS,
        "GVR does not help at order 1 (point)": Verdict.HOLDS,
        "GVR helps at order inf (Bayesian)": Verdict.OPEN,
        "GVR does not help at order 1 (Bayesian)": Verdict.FAILS,
    }


def test_samples_variance_and_certainty():
    values = dict.fromkeys(("RER-inf", "BRER-inf", "Source-DTN", "Source-BDTN"), FLAT)
    values |= {"BDTN-M1": [0.8, 0.81, 0.82, 0.8], "BDTN-M100": [0.82, 0.83, 0.841, 0.82]}
    known = records(TASK, values)
    more = findings(known, "Larger M")
    assert more[0].interval.mean == pytest.approx(100 * np.mean([0.02, 0.02, 0.021, 0.02]))
    (variance,) = findings(known, "Gradient variance")
    assert variance.interval.mean == pytest.approx(math.log(2))
    assert variance.verdict == Verdict.HOLDS
    (certainty,) = findings(known, "less certain")
    assert certainty.interval.mean == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("ece", "accuracy", "verdicts"),
    [
        (0.02, [0.900, 0.911, 0.890, 0.901], [Verdict.HOLDS, Verdict.HOLDS]),
        (0.02, [0.850, 0.861, 0.840, 0.851], [Verdict.HOLDS, Verdict.FAILS]),  # calibrated at the price of accuracy
        (0.08, [0.900, 0.911, 0.890, 0.901], [Verdict.FAILS, Verdict.HOLDS]),
    ],
)
def test_dual_ascent_needs_both_lower_ece_and_equal_accuracy(ece, accuracy, verdicts):
    found = findings(records(TASK, {"RER-1": FLAT, "dual": accuracy}, dual={"ece": ece}), "Dual")
    assert [one.verdict for one in found] == verdicts


def test_claims_are_made_only_where_their_runs_are():
    task = PROTOCOLS["main"][SVHN_MNIST]
    known = records(task, {"Source-DTN": [0.5] * 4, "Source-BDTN": [0.5] * 4})
    found = examine_claims(PROTOCOLS["main"], SEEDS, known)
    assert {one.task for one in found} == {SVHN_MNIST}
    assert {one.claim.split()[0] for one in found} == {"The"}
