"""What a report says on trust: every number against one that was computed in another way."""

import re
from dataclasses import replace

import numpy as np
import pytest
from made_results import HOSTILE, make, normalize

from calida.estimation import Agreement
from calida.report import judge_results, render
from calida.report.figures import courses, reliability, views
from calida.report.trust_figures import abstention, check_classifiers, recipes, risk_coverage, validators
from calida.run_warnings import RunWarning, WarningCode
from calida.validation import VALIDATORS, Returned

ORACLE_ROWS = {
    "adapted, by confidence (oracle)": lambda view: -view.target.max(1),
    "adapted, by entropy (oracle)": lambda view: view.uncertainty[:, 0],
    "adapted, by mutual information (oracle)": lambda view: view.uncertainty[:, 2],
    "adapted, by sum (oracle)": lambda view: view.uncertainty[:, 0].astype(float) + view.uncertainty[:, 2],
}
CANDIDATES = {
    "calida": {"im": 1.25, "entropy": 0.5, "ensv": 0.9},
    HOSTILE: {"im": 0.75, "entropy": 0.25, "ensv": 0.8},
}


def percent(text):
    return float(text.rstrip("%")) / 100


def everything(figure):
    """All the words and pictures of a figure as text."""
    return " ".join([figure.title, figure.caption, *(panel.title + panel.picture for panel in figure.panels)]) + str(
        [figure.legend, figure.table]
    )


@pytest.mark.parametrize("row", ORACLE_ROWS)
def test_errors_by_coverage_are_those_of_the_sorted_samples(row):
    results = make(sharpness=(1.0, 2.0))
    after = results.predictions.after
    wrong = (after.target.argmax(1) != results.truth)[np.argsort(ORACLE_ROWS[row](after), kind="stable")]
    _, area, *errors = next(cells for cells in risk_coverage(results).table.rows if cells[0] == row)
    assert wrong.any()
    for cell, kept in zip(errors, (45, 72, 81, 90), strict=True):
        assert percent(cell) == pytest.approx(wrong[:kept].sum() / kept, abs=5.1e-5)
    assert percent(area) == pytest.approx(np.mean([wrong[:kept].mean() for kept in range(1, 91)]), abs=5.1e-5)


def test_the_expected_risk_is_what_the_confidence_leaves_and_the_caption_tells_it():
    results = make(sharpness=(1.0, 5.0))
    doubt = np.sort(1 - np.exp(results.predictions.after.target.astype(float)).max(1))
    within = max(kept for kept in range(1, 91) if doubt[:kept].mean() <= 0.02)
    for figure in (risk_coverage(results), risk_coverage(make(sharpness=(1.0, 5.0), truth_known=False))):
        assert f"{doubt[:81].mean():.1%} of these answers are expected to be wrong" in figure.caption
        assert f"here that is {within / 90:.1%} of the samples" in figure.caption
        assert "<code>calida predict RUN DATA</code> <code>--coverage 0.9</code>" in figure.caption
        assert "<code>--max-risk 0.02</code>" in figure.caption
    expected = risk_coverage(results).table.rows[0]
    assert expected[0] == "adapted, expected without labels"
    assert [percent(cell) for cell in expected[2:]] == pytest.approx(
        [doubt[:kept].mean() for kept in (45, 72, 81, 90)], abs=5.1e-5
    )


def test_the_dots_stand_where_their_numbers_say():
    results = make(sharpness=(1.0, 2.0))
    counted = risk_coverage(results).panels[0].picture
    dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)".*?: ([\d.]+)% wrong of the most certain (\d+)%', counted)
    assert len(dots) == 30  # expected, by confidence, and source only
    x, y, share, coverage = np.array(dots, dtype=float).T
    for place, value in ((x, coverage), (y, share)):
        line = np.polyfit(value, place, 1)
        assert np.abs(np.polyval(line, value) - place).max() < 0.3
    assert np.polyfit(share, y, 1)[0] < 0
    after = results.predictions.after
    wrong = (after.target.argmax(1) != results.truth)[np.argsort(-after.target.max(1), kind="stable")]
    told = [float(found) for found in re.findall(r"by confidence \(oracle\): ([\d.]+)% wrong", counted)][:10]
    assert told == pytest.approx([100 * wrong[: 9 * tenth].mean() for tenth in range(1, 11)], abs=0.051)


def test_without_labels_nothing_is_counted():
    results = make(truth_known=False)
    figure = risk_coverage(results)
    assert "oracle" not in everything(figure)
    assert len(figure.panels) == 1
    doubt = np.sort(1 - np.exp(results.predictions.after.target.astype(float)).max(1))
    assert len(figure.table.rows) == 10
    for tenth, (coverage, answers, expected, least) in enumerate(figure.table.rows, start=1):
        assert (coverage, answers) == (f"{10 * tenth}%", str(9 * tenth))
        assert percent(expected) == pytest.approx(doubt[: 9 * tenth].mean(), abs=5.1e-5)
        assert percent(least) == pytest.approx(1 - doubt[9 * tenth - 1], abs=5.1e-4)


def test_a_point_network_is_not_ordered_by_what_it_has_not():
    def rows(results):
        return [cells[0] for cells in risk_coverage(results).table.rows]

    assert set(ORACLE_ROWS) < set(rows(make()))
    assert "source only, by confidence (oracle)" in rows(make())
    names = rows(make(point=True))
    assert "adapted, by entropy (oracle)" in names
    assert not any("mutual information" in name or "sum" in name for name in names)


def test_curves_stay_small_and_stand_equal_confidence():
    results = make()
    before, after = (
        replace(one, target=np.tile(one.target, (50, 1)), uncertainty=np.tile(one.uncertainty, (50, 1)))
        for one in (results.predictions.before, results.predictions.after)
    )
    many = replace(results.predictions, before=before, after=after, truth=np.tile(results.truth, 50))
    figure = risk_coverage(replace(results, predictions=many))
    for line in re.findall(r'<polyline points="([^"]*)" class="line by', "".join(p.picture for p in figure.panels)):
        assert len(line.split()) == 100
    sure = replace(
        results.predictions.after, target=np.log(np.tile([[0.8, 0.1, 0.1]], (90, 1))), uncertainty=np.ones((90, 3))
    )
    figure = risk_coverage(replace(results, predictions=replace(results.predictions, after=sure)))
    assert [percent(cell) for cell in figure.table.rows[0][1:]] == pytest.approx([0.2] * 5)
    assert "that is none" in figure.caption
    adapted = [cells for cells in figure.table.rows if cells[0].startswith("adapted, by")]
    assert [cells[0] for cells in adapted] == ["adapted, by confidence (oracle)"]
    assert [percent(cell) for cell in adapted[0][1:]] == pytest.approx([2 / 3] * 5, abs=5.1e-5)


def ece(log_probs, labels):
    """Expected calibration error over 15 bins, one at a time."""
    confidence, right = np.exp(log_probs.max(1)), log_probs.argmax(1) == labels
    bins = np.clip(np.ceil(confidence * 15).astype(int) - 1, 0, 14)
    return sum(
        (bins == index).mean() * abs(right[bins == index].mean() - confidence[bins == index].mean())
        for index in set(bins)
    )


def test_reliability_shows_calibrated_beside_raw():
    results = make(sharpness=(1.0, 2.0), temperature=0.6)
    calibrated = results.predictions.after.target.astype(float)
    told = {(name, domain): percent(error) for name, domain, error, _ in reliability(results).table.rows}
    raw = normalize(0.6 * calibrated)
    assert told["adapted", "target (oracle)"] == pytest.approx(ece(calibrated, results.truth), abs=5.1e-5)
    assert told["adapted", "target, not calibrated (oracle)"] == pytest.approx(ece(raw, results.truth), abs=5.1e-5)
    assert told["adapted", "target (oracle)"] != told["adapted", "target, not calibrated (oracle)"]
    assert "not calibrated" not in everything(reliability(make(temperature=1.0)))
    assert "not calibrated" not in everything(reliability(make(truth_known=False)))


def test_validators_are_told_for_every_candidate_and_the_returned_one_is_marked():
    results = make()
    results.rounds[-1] = replace(
        results.rounds[-1], kept=False
    )  # so the first round of adaptation is the one that was kept
    figure = validators(results)
    assert figure.table.header[3:] == ["source only", "round 1 (returned)", "round 2"]
    told = {cells[0]: cells[1:] for cells in figure.table.rows}
    assert set(VALIDATORS) < set(told)
    for name, validator in VALIDATORS.items():
        meaning, better, *values = told[name]
        assert meaning == validator.summary
        assert better == ("higher" if validator.higher_is_better else "lower")
        assert [float(value) for value in values] == pytest.approx(
            [record.validators[name] for record in results.rounds[1:]]
        )
        panel = next(panel for panel in figure.panels if panel.title == name)
        assert panel.note == f"{better} is better"
        dots = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', panel.picture)
        assert len(dots) == 4
        assert dots[3][:2] == dots[1][:2]  # the ring
        assert (float(dots[2][1]) < float(dots[0][1])) == validator.higher_is_better
    assert told["votes"][2:] == ["", "5 of 5", "5 of 5"]
    assert told["target accuracy (oracle)"][2:] == ["80.00%", "85.00%", "90.00%"]
    assert len(figure.panels) == len(VALIDATORS) + 1


def test_validators_need_no_labels_and_something_to_compare():
    figure = validators(make(truth_known=False))
    assert len(figure.panels) == len(VALIDATORS)
    assert "oracle" not in everything(figure)
    assert validators(make(adapted=False)) is None
    assert recipes(make()) is None


def test_recipes_are_ranked_by_each_validator():
    figure = recipes(make(candidates=CANDIDATES))
    assert figure.table.header == [
        "recipe",
        "im (higher is better)",
        "entropy (lower is better)",
        "ensv (higher is better)",
    ]
    assert figure.table.rows == [
        ["calida (returned)", "1.25", "0.5", "0.9"],
        [HOSTILE, "0.75", "0.25", "0.8"],
    ]
    strengths = [float(found) for found in re.findall(r"--strength:([\d.]+)", figure.panels[0].picture)]
    best = [column[0] > column[1] for column in np.array(strengths).reshape(3, 2)]
    assert best == [True, False, True]
    assert HOSTILE not in figure.panels[0].picture
    assert "rank 2 of 2" in figure.panels[0].picture


def test_the_rounds_mark_what_was_returned_and_why_it_stopped():
    results = make()
    stop = RunWarning(WarningCode.CLASS_TAKES_OVER, {"name": HOSTILE, "share": 0.97})
    results.rounds[-1] = replace(results.rounds[-1], kept=False, stopped=stop)
    figure = courses(results)
    notes = [cells[-1] for cells in figure.table.rows]
    assert notes == ["", "", "returned", str(stop)]
    assert str(replace(stop, round=1)) in figure.caption
    for panel in figure.panels:
        line = re.search(r'<line x1="([\d.]+)" x2="\1" y1="10" y2="\d+" class="returned">', panel.picture)
        dots = [float(found) for found in re.findall(r'<circle cx="([\d.]+)"', panel.picture)]
        assert float(line[1]) in dots
    assert HOSTILE not in render(results)


def test_a_fallen_back_run_says_so(open_page):
    for truth_known in (True, False):
        results = make(fell_back=True, truth_known=truth_known)
        assert [name for name, _ in views(results)] == ["source only"]
        assert "as it was before" in judge_results(results).helped.words
        page = open_page(results)
        assert "You get the classifier as it was before" in page.locator("#verdict").inner_text()
        page.locator("#facts summary").click()
        assert page.locator(".facts li").first.inner_text().startswith("Returned: source only (recipe")
        assert page.locator(".tiles .was").count() == 0
        assert "returned: source only" in page.locator("#validators .legend").text_content()
        assert "source only (returned)" in page.locator("#validators th").all_text_contents()
        assert "adapted" not in page.locator("#reliability").text_content()


def test_a_run_whose_classes_differ_in_frequency_alone_says_so():
    """With labels, the gain is what counts."""
    for returned in (Returned.PRIOR_CORRECTED, None):
        verdict = judge_results(make(truth_known=False, sharpness=(1.0, 7.0), returned=returned))
        assert ("frequencies" in verdict.helped.words) == (returned is not None)
    assert judge_results(make(returned=Returned.PRIOR_CORRECTED)).helped.short == "Yes"


def test_the_card_has_the_most_important_finding_in_its_color_and_all_below(open_page):
    rare = RunWarning(WarningCode.RARE_CLASS, {"name": HOSTILE, "share": 0.001, "count": 1, "classes": 3})
    alarm = RunWarning(WarningCode.OUTSIDE, {"share": 0.4})
    results = make(truth_known=False, sharpness=(7.0, 7.0), warnings=[rare, alarm])
    page = open_page(results)
    finding = page.locator("#verdict .finding")
    assert str(alarm) in finding.inner_text()
    color = "one => getComputedStyle(one).borderLeftColor"
    assert finding.evaluate(color) == page.locator("#verdict").evaluate(color)
    assert page.locator("#verdict").get_attribute("class") == "verdict bad"
    finding.locator("a").click()  # unfolds
    told = page.locator("#findings li")
    assert [str(one) in text for one, text in zip((alarm, rare), told.all_inner_texts(), strict=True)] == [True, True]
    assert told.nth(1).evaluate(color) != told.nth(0).evaluate(color)
    assert page.locator("img[src=x]").count() == 0
    assert (
        "No warning sign" in open_page(make(truth_known=False, sharpness=(7.0, 7.0))).locator("#verdict").inner_text()
    )


def test_an_estimate_that_missed_is_the_headline_and_its_place_is_shown(open_page):
    results = make()
    accuracy = results.after["oracle"]["accuracy"]
    page = open_page(results)
    mark, track = (page.locator(f"#estimate .{name}").bounding_box() for name in ("measured", "scale"))
    assert (mark["x"] + mark["width"] / 2 - track["x"]) / track["width"] == pytest.approx(accuracy, abs=0.01)
    band = page.locator("#estimate .band").bounding_box()
    assert (band["x"] - track["x"]) / track["width"] == pytest.approx(0.754, abs=0.01)
    assert band["width"] / track["width"] == pytest.approx(0.876 - 0.754, abs=0.01)
    assert page.locator("h2").first.inner_text() == str(judge_results(results).missed)
    assert f"even {accuracy:.1%}" in page.locator("h2").first.inner_text()
    held = make(estimate=(accuracy, accuracy - 0.01, accuracy))
    assert judge_results(held).missed is None
    page = open_page(make(estimate=(1.0, 0.99, 1.0), sharpness=(1.0, 1.0)))
    assert page.locator("h2").first.inner_text().startswith("The estimate missed")
    assert page.locator("#verdict").get_attribute("class") == "verdict bad"


def test_what_the_panel_says_takes_the_place_of_confidence():
    results = make(judged=True, truth_known=False)
    unsure = np.sort(1 - results.predictions.right.astype(float))
    rows = risk_coverage(results).table.rows
    for tenth, (_, _, expected, _) in enumerate(rows, start=1):
        assert percent(expected) == pytest.approx(unsure[: 9 * tenth].mean(), abs=5.1e-5)
    told = re.findall(r"([\d.]+)% wrong<", abstention(results).panels[0].picture)
    assert [float(one) for one in told] == pytest.approx(
        [100 * unsure[:kept].mean() for kept in (90, 81, 72, 45)], abs=0.051
    )
    assert "adapted, by panel (oracle)" in [cells[0] for cells in risk_coverage(make(judged=True)).table.rows]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_of_it_fits_a_phone(open_page, scheme):
    warnings = [
        RunWarning(WarningCode.RARE_CLASS, {"name": name, "share": 0.001, "count": 1, "classes": 3})
        for name in (f"{HOSTILE} " * 5, "x" * 200)
    ]
    results = make(warnings=warnings, candidates=CANDIDATES)
    page = open_page(results, viewport={"width": 360, "height": 700}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("img[src=x]").count() == 0
    assert HOSTILE in page.locator("#recipes td").all_text_contents()
    ink = page.locator("#risk polyline.expected").first.evaluate("line => getComputedStyle(line).stroke")
    levels = [int(part) for part in re.findall(r"\d+", ink)]
    assert (sum(levels) > 3 * 128) == (scheme == "dark")
    for place in (0, 1):  # the figure, and in it the table
        page.locator("#validators summary").nth(place).focus()
        page.keyboard.press("Enter")
    assert page.locator("#validators table").is_visible()


def test_check_classifiers_are_shown_with_their_shares_the_heaviest_first():
    light = Agreement("trees, own scale", "trees", 0.25, 0.9, 0.875, 0.5, 0.625, "own")
    heavy = Agreement(HOSTILE, "linear", 0.75, 1.0, 0.95, 0.75, 0.8, "shared")
    results = make(agreements=[light, heavy])
    figure = check_classifiers(results)
    assert figure.table.rows == [
        [HOSTILE, "100.0%", "95.0%", "75.0%", "80.0%", "75.0%"],
        ["trees, own scale", "90.0%", "87.5%", "50.0%", "62.5%", "25.0%"],
    ]
    assert HOSTILE not in everything(figure).replace(str(figure.table), "")
    assert "What other kinds of classifiers say" in render(results)
    assert check_classifiers(make()) is None
