"""The report in a real browser: no error, every figure has content, hostile names stay text."""

import json
import math

import numpy as np
import pytest
from made_results import HOSTILE, make

from calida.report import RunPredictions, RunResults, compute_metrics, judge, render
from calida.report.run_predictions import ClassifierPredictions, flatten
from calida.report.svg import nice_ticks, tag
from calida.seeds import Seeds

KINDS = [
    {"truth_known": True},
    {"truth_known": False},
    {"images": False},
    {"adapted": False, "truth_known": False},
    {"fell_back": True},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_figure_has_content(open_page, kind):
    results = make(**kind)
    page = open_page(results)
    expected = ["map", "reliability", "risk", "entropy", "classes", "rounds"]
    expected += ["confusion"] if results.truth is not None else []
    expected += ["validators"] if results.adapted else []
    assert page.locator("section.card:has(svg)").count() == len(expected)
    for key in expected:
        for svg in page.locator(f"#{key} svg").all():
            box = svg.bounding_box()
            assert box["width"] > 100
            assert box["height"] > 60
            marks = svg.locator("circle, rect, polyline").count()
            assert marks >= 3, key
            assert svg.get_attribute("role") == "img"
            assert len(svg.get_attribute("aria-label")) > 10
        assert page.locator(f"#{key} tbody tr").count() >= 1
    sides = 2 if results.changed else 1
    assert page.locator("#map svg").count() == sides
    assert page.locator("#map circle").count() == 50 * sides
    cells = page.locator("#map tbody td").all_text_contents()
    assert sum(int(cell) for cell in cells if cell.isdecimal()) == 20 + 30 * sides
    assert page.locator("#samples .group").count() == 3
    assert (page.locator("#samples img").count() > 0) == kind.get("images", True)
    assert page.locator("#verdict li").count() >= 2
    assert ("oracle" in page.locator("#verdict").inner_text()) == (results.truth is not None)


def test_reliability_bars_show_the_accuracy_of_their_bin(open_page):
    results = make()
    page = open_page(results)
    log_probs, labels = results.predictions.after.validation, results.predictions.validation_labels
    # Target before, after uncalibrated and after; source validation before and after.
    assert page.locator("#reliability figure").count() == 5
    confidence, right = np.exp(log_probs.max(1)), log_probs.argmax(1) == labels
    tips = (
        page.locator("#reliability figure")
        .nth(4)
        .locator("rect")
        .evaluate_all("marks => marks.map(mark => mark.dataset.tip)")
    )
    bins = np.clip((confidence * 15).astype(int), 0, 14)
    for index, tip in zip(sorted(set(bins)), tips, strict=True):
        members = bins == index
        assert tip.startswith(f"{members.sum()} samples")
        assert f"{right[members].mean():.1%} right" in tip


def test_hostile_names_stay_text(open_page):
    page = open_page(make())
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "1"
    assert HOSTILE in page.locator("h1").inner_text()
    assert page.locator("#class-filter option").nth(2).inner_text() == HOSTILE
    page.locator("#map circle.target").first.dispatch_event("pointermove", {"clientX": 5, "clientY": 5})
    point = page.locator("#map circle.target").first
    point.hover(force=True)
    assert HOSTILE in page.locator("#tip").inner_text()
    assert page.locator("img[src=x]").count() == 0


def test_the_filter_shows_one_class_by_mouse_and_by_keyboard(open_page):
    page = open_page(make())
    page.select_option("#class-filter", "1")
    assert page.locator("#samples .group:visible").count() == 1
    assert page.locator("#map circle[data-class='0'].faded").count() > 0
    assert page.locator("#map circle[data-class='1'].faded").count() == 0
    chip = page.locator(".chip[data-class='1']")
    assert chip.get_attribute("aria-pressed") == "true"
    chip.focus()
    page.keyboard.press("Enter")
    assert page.locator(".faded").count() == 0
    assert page.locator("#class-filter").input_value() == ""


def test_it_fits_a_phone_and_has_two_themes(open_page):
    phone = open_page(make(), viewport={"width": 360, "height": 700}, color_scheme="dark")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    color = "getComputedStyle(document.body).backgroundColor"
    dark = phone.evaluate(color)
    phone.click("#theme")
    light = phone.evaluate(color)
    assert dark != light
    for value, is_light in ((dark, False), (light, True)):
        levels = [int(part) for part in value.strip("rgb()").split(",")]
        assert (sum(levels) > 3 * 128) == is_light


def test_screen_readers_find_names_for_everything(open_page):
    page = open_page(make())
    nameless = page.evaluate(
        """[...document.querySelectorAll('svg, select, button, img')].filter(one =>
           !(one.getAttribute('aria-label') || one.innerText || one.alt || one.labels?.length)).length"""
    )
    assert nameless == 0
    levels = [int(one.evaluate("e => e.tagName[1]")) for one in page.locator("h1, h2, h3").all()]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert page.locator("section.card").count() == page.locator("section[aria-labelledby]").count()


def test_the_verdict_follows_the_figures():
    better = judge(make(sharpness=(1.0, 7.0), temperature=1.0))
    assert better.level == "good", better
    assert "raised target accuracy" in better.headline
    worse = judge(make(sharpness=(4.0, 0.5)))
    assert worse.level == "bad"
    assert "lowered target accuracy" in worse.headline
    lucky = make(sharpness=(4.0, 4.0))
    lucky.metrics["adapted"]["oracle"]["accuracy"] = lucky.metrics["source_only"]["oracle"]["accuracy"] + 0.006
    assert "left target accuracy where it was" in judge(lucky).headline  # no sample's answer turned from wrong to right
    blind = judge(make(truth_known=False))
    assert "No target label was given" in " ".join(blind.sentences)
    assert "accuracy" not in blind.headline
    assert judge(make(truth_known=False, sharpness=(7.0, 7.0))).badge == "no warning sign"
    assert better.badge == "✓ good"
    collapsed = make(truth_known=False)
    collapsed.metrics["adapted"]["target"]["class_shares"] = [1.0, 0.0, 0.0]
    verdict = judge(collapsed)
    assert verdict.level == "bad"
    assert "plain takes 100.0%" in verdict.warnings[0]
    assert HOSTILE in verdict.warnings[1]


def test_the_verdict_does_not_praise_false_certainty_nor_scold_a_rare_class():
    false = make()
    false.metrics["adapted"]["oracle"]["ece"] = 0.4
    assert judge(false).level == "care"
    rare = make(truth_known=False)
    rare.predictions.validation_labels[:] = 0
    rare.predictions.validation_labels[:4] = [1, 1, 2, 2]
    rare.metrics["adapted"]["target"]["class_shares"] = [0.94, 0.03, 0.03]
    assert "collapsed" not in " ".join(judge(rare).warnings)


def test_a_weak_or_too_sure_classifier_is_not_passed_over():
    weak = make(truth_known=False, sharpness=(7.0, 7.0))
    weak.metrics["source_only"]["source"]["accuracy"] = 0.45
    verdict = judge(weak)
    assert verdict.level == "care"
    assert "right on only 45.0% of held-out source" in verdict.warnings[0]
    assert "mean confidence on target" in verdict.warnings[1]


def test_many_classes_keep_the_page_small():
    rng = np.random.default_rng(0)
    labels, target_labels = np.arange(600) % 300, np.arange(900) % 300
    logits = [rng.normal(size=(n, 300)).astype(np.float32) for n in (600, 900)]
    validation, target = (x - np.log(np.exp(x).sum(1, keepdims=True)) for x in logits)
    uncertainty = np.ones((900, 3), np.float32)
    one = ClassifierPredictions(
        np.array(1.0), validation, target, uncertainty, rng.normal(size=(50, 2)).astype(np.float32)
    )
    nothing = np.zeros(0, np.int64)
    predictions = RunPredictions(one, one, labels, np.arange(20), np.arange(30), nothing, nothing, target_labels)
    results = make()
    metrics = {**results.metrics, **compute_metrics(predictions), "classes": [f"class {index}" for index in range(300)]}
    page = render(RunResults(metrics, results.rounds, predictions, "row", [str(row) for row in range(900)]))
    assert "the 40 of 300 classes that are confused most" in page
    assert len(page) < 3_000_000


def test_metrics_agree_with_scikit_learn():
    from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss

    results = make()
    probabilities = np.exp(results.predictions.after.target.astype(np.float64))
    probabilities /= probabilities.sum(1, keepdims=True)
    truth = results.truth
    oracle = results.after["oracle"]
    assert oracle["mean_class_accuracy"] == pytest.approx(balanced_accuracy_score(truth, probabilities.argmax(1)))
    assert oracle["nll"] == pytest.approx(log_loss(truth, probabilities), rel=1e-5)
    brier = sum(brier_score_loss(truth == label, probabilities[:, label]) for label in range(3))
    assert oracle["brier"] == pytest.approx(brier, rel=1e-5)
    assert json.dumps(results.metrics)


def test_arrays_survives_the_disk(tmp_path):
    predictions = make().predictions
    predictions.save(tmp_path / "predictions.npz")
    again = RunPredictions.load(tmp_path / "predictions.npz")
    assert np.array_equal(again.after.target, predictions.after.target)
    assert np.array_equal(again.before.map, predictions.before.map)
    assert np.array_equal(again.images, predictions.images)


def test_the_map_keeps_groups_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 30)
    features = rng.normal(size=(90, 8)) + 20 * np.eye(3)[groups] @ rng.normal(size=(3, 8))
    places = flatten(features, Seeds(0))
    middles = np.stack([places[groups == group].mean(0) for group in range(3)])
    nearest = ((places[:, None] - middles) ** 2).sum(-1).argmin(1)
    assert (nearest == groups).mean() > 0.95
    assert flatten(np.ones((5, 1)), Seeds(0)).shape == (5, 2)


def test_svg_escapes_and_ticks_are_round():
    assert (
        str(tag("text", "<b>", data_tip='"x"', class_="a")) == '<text data-tip="&#34;x&#34;" class="a">&lt;b&gt;</text>'
    )
    assert [text for _, text in nice_ticks(0, 1)] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert nice_ticks(2.0, 2.0) == [(2.0, "2")]
    assert all(math.isfinite(value) for value, _ in nice_ticks(-1e-9, 3e-9))
