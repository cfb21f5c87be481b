"""The report in a real browser: no error, every figure has content, hostile names stay text."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_results import HOSTILE, make
from scipy.stats import binomtest

from calida.report import RunPredictions, RunResults, compute_metrics, judge_results, render
from calida.report.run_predictions import ClassifierPredictions, flatten, rows_by_domain, telling_rows
from calida.report.svg import nice_ticks, tag
from calida.run_warnings import RunWarning, WarningCode
from calida.seeds import Seeds
from calida.validation import VALIDATORS

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
    unfold(page)
    drawn = ["map", "reliability", "risk", "entropy", "rounds"]
    drawn += ["confusion"] if results.truth is not None else []
    drawn += ["validators"] if results.adapted else []
    assert page.locator("details.card:has(svg)").count() == len(drawn)
    for key in drawn:
        for svg in page.locator(f"#{key} svg").all():
            box = svg.bounding_box()
            assert box["width"] > 100
            assert box["height"] > 60
            marks = svg.locator("circle, rect, polyline").count()
            assert marks >= 3, key
            assert svg.get_attribute("role") == "img"
            assert len(svg.get_attribute("aria-label")) > 10
        assert page.locator(f"#{key} tbody tr").count() >= 1
    for key, rows in (("abstain", 4), ("trusted", 3), ("classes", 3)):
        assert page.locator(f"#{key} .bar-row").count() == rows
        assert page.locator(f"#{key} .fill").first.bounding_box()["width"] > 0
    sides = 2 if results.changed else 1
    assert page.locator("#map svg").count() == sides
    assert page.locator("#map circle").count() == 50 * sides
    cells = page.locator("#map tbody td").all_text_contents()
    assert sum(int(cell) for cell in cells if cell.isdecimal()) == 20 + 30 * sides
    assert page.locator("#samples .group").count() == 3
    assert (page.locator("#samples img").count() > 0) == kind.get("images", True)
    assert page.locator("#domains img").count() == (16 if kind.get("images", True) else 0)


def test_class_shares_have_an_interval_that_old_runs_lack(open_page):
    results = make()
    shares = results.metrics["adapted"]["target"]["estimated_shares"]
    assert all(low <= 1 / 3 <= high for low, high in zip(shares["low"], shares["high"], strict=True))
    page = open_page(results)
    unfold(page)
    drawn = [float(one.rstrip("%")) / 100 for one in page.locator("#classes .value").all_inner_texts()]
    scale = max(*shares["high"], *drawn)
    for whisker, low in zip(page.locator("#classes .whisker").all(), shares["low"], strict=True):
        line, groove = whisker.bounding_box(), whisker.locator("..").bounding_box()
        assert (line["x"] - groove["x"]) / groove["width"] == pytest.approx(low / scale, abs=0.01)
    del results.metrics["adapted"]["target"]["estimated_shares"]
    page = open_page(results)
    assert page.locator("#classes .whisker").count() == 0
    assert "90% interval" not in page.locator("#classes").inner_text()


def test_images_that_look_least_like_the_source_come_first(open_page):
    page = open_page(make())
    names = [one.get_attribute("alt") for one in page.locator("#domains img").all()]
    rows = [int(re.search(r"/(\d+)\.png", name)[1]) for name in names]
    assert rows == [*range(25, 17, -1), *range(10, 18)]
    assert page.locator("#domains h4").all_text_contents() == ["Least like the source", "Most like the source"]


def test_samples_by_domain_are_both_ends_of_those_that_were_asked():
    scores = torch.rand(40, generator=torch.Generator().manual_seed(0))
    scores[::3] = torch.nan
    rows = rows_by_domain(scores)
    known = sorted((float(score), row) for row, score in enumerate(scores) if score == score)
    assert rows.tolist() == [row for _, row in known[:8] + known[-8:]]
    assert rows_by_domain(torch.full((5,), torch.nan)).tolist() == []
    assert rows_by_domain(torch.tensor([0.3, 0.1, 0.2])).tolist() == [1, 0]
    assert rows_by_domain(None).tolist() == []


def unfold(page):
    """Everything open but the tables."""
    page.evaluate("document.querySelectorAll('details.card').forEach((one) => { one.open = true; })")


NAMED = set(VALIDATORS) - {"source"}  # which is a word as well
FORBIDDEN = re.compile(rf"\b(nats?|temperature|oracle|entropy|{'|'.join(NAMED)})\b")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_first_screen_decides_and_the_rest_is_folded(open_page, kind):
    results = make(**kind)
    page = open_page(results, viewport={"width": 1300, "height": 900})
    verdict = judge_results(results)
    words = page.locator("body").inner_text()
    assert len(words.split()) <= 500
    assert sum(one.is_visible() for one in page.locator("figure").all()) <= 4
    assert not [one for one in page.locator("svg").all() if one.is_visible()]
    box = page.locator("#verdict").bounding_box()
    assert box["y"] + box["height"] < 900
    told = " ".join(page.locator("#verdict").inner_text().split())
    for text in (verdict.use.words, verdict.helped.words, verdict.estimate, verdict.action.words):
        assert text in told
    assert verdict.action.command in told
    assert FORBIDDEN.search(told.replace(HOSTILE, "")) is None
    assert page.locator("details.card[open]").count() == 0


def test_thousand_classes_with_names_of_5000_letters_stay_usable(open_page):
    rng = np.random.default_rng(0)
    count = 1000
    labels, target_labels = np.arange(2 * count) % count, np.arange(3 * count) % count
    logits = [5 * np.eye(count, dtype=np.float32)[rows] for rows in (labels, target_labels)]
    logits = [part + rng.normal(size=part.shape).astype(np.float32) for part in logits]
    validation, target = (x - np.log(np.exp(x).sum(1, keepdims=True)) for x in logits)
    places = rng.normal(size=(50, 2)).astype(np.float32)
    one = ClassifierPredictions(np.array(1.0), validation, target, np.ones((3 * count, 3), np.float32), places)
    right = torch.from_numpy(np.exp(target.max(1)))
    shown = telling_rows(torch.from_numpy(target.argmax(1)), right).numpy()
    assert len(shown) <= 240
    pictures = rng.integers(0, 256, (len(shown), 3, 8, 8)).astype(np.uint8)
    predictions = RunPredictions(one, one, labels, np.arange(20), np.arange(30), shown, pictures, target_labels)
    results, names = make(), [f"{index} " + "long name " * 500 for index in range(count)]
    lost = RunWarning(WarningCode.RARE_CLASS, {"name": names[0], "share": 0.001, "count": 1, "classes": count})
    trust = {**results.metrics["trust"], "warnings": [lost.to_json()]}
    metrics = {**results.metrics, **compute_metrics(predictions), "classes": names, "trust": trust}
    files = [f"folder/{row}/{'x' * 5000}.png" for row in range(3 * count)]
    results = RunResults(metrics, results.rounds, predictions, "path", files)
    assert len(render(results)) < 5_100_000 + 5_000_000  # every name in full once, and all the rest
    page = open_page(results, viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert len(page.locator("body").inner_text().split()) <= 500
    assert page.locator("#verdict").bounding_box()["height"] < 800
    assert page.locator("#suspects img").count() > 0
    assert page.locator("#class-filter option").count() == count + 1
    assert page.locator(".chip").count() == 0
    page.locator("#names summary").click()
    assert page.locator("#names dd").nth(7).inner_text() == names[7].strip()


def test_the_phone_shows_charts_whole_and_names_in_full(open_page):
    results = make(candidates={"calida": {"im": 1.25, "entropy": 0.5}, "rer-inf-gvr": {"im": 0.75, "entropy": 0.25}})
    names = ["a class with quite a long name", "another one, even longer than the first", "c&d"]
    page = open_page(
        replace(results, metrics={**results.metrics, "classes": names}), viewport={"width": 400, "height": 800}
    )
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for name in names:  # beside a bar, and in the key of the matrix
        assert name in page.locator("#classes").inner_text()
        assert name in page.locator("#confusion").inner_text()
    cut = page.evaluate(
        """[...document.querySelectorAll('.plot')].filter(one => one.scrollWidth > one.clientWidth).length"""
    )
    assert cut == 0
    outside = page.evaluate(
        """[...document.querySelectorAll('svg text')].map(text => [text.textContent, text.getBoundingClientRect(),
           text.ownerSVGElement.getBoundingClientRect()]).filter(([, a, b]) => a.left < b.left - 1 ||
           a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1).map(([words]) => words)"""
    )
    assert outside == []
    small = page.evaluate(
        """[...document.querySelectorAll('svg text')].filter(text => text.getBoundingClientRect().height < 9 &&
           text.getBoundingClientRect().width > 0).length"""
    )
    assert small == 0


def test_the_likeliest_errors_come_first_and_by_class(open_page):
    results = make(judged=True)
    page = open_page(results)
    right, answers = results.predictions.right, results.answers
    expected = {label: (1 - right[answers == label]).sum() for label in range(3)}
    groups = page.locator("#suspects .group")
    order = [int(one.get_attribute("data-class")) for one in groups.all()]
    assert order == sorted(order, key=lambda label: -expected[label])
    for group, label in zip(groups.all(), order, strict=True):
        rows = [row for row in results.predictions.shown if answers[row] == label]
        told = group.locator("li").evaluate_all("all => all.map(one => one.dataset.tip)")
        for tip in told:
            row = next(row for row in rows if tip.startswith(f"{results.names[row]}:"))
            assert f"probability of {100 * right[row]:.1f}%" in tip
    by_hand = telling_rows(torch.tensor([0, 1, 0, 0, 1, 0]), torch.tensor([0.9, 0.8, 0.1, 0.5, 0.3, 0.7]))
    assert by_hand.tolist() == [0, 5, 3, 2, 1, 4]


def test_reliability_bars_have_counts_and_the_intervals_of_their_bins(open_page):
    results = make()
    page = open_page(results)
    unfold(page)
    log_probs, labels = results.predictions.after.validation, results.predictions.validation_labels
    # Target before, after uncalibrated and after; source validation before and after.
    assert page.locator("#reliability figure").count() == 5
    confidence, right = np.exp(log_probs.max(1)), log_probs.argmax(1) == labels
    figure = page.locator("#reliability figure").nth(4)
    tips = figure.locator("rect").evaluate_all("marks => marks.map(mark => mark.dataset.tip)")
    bins = np.clip(np.ceil(confidence * 10).astype(int) - 1, 0, 9)
    counts = []
    for index, tip in zip(sorted(set(bins)), tips, strict=True):
        members = bins == index
        exact = binomtest(int(right[members].sum()), int(members.sum())).proportion_ci(method="wilson")
        assert tip.startswith(f"{members.sum()} samples")
        assert f"{right[members].mean():.1%} right ({exact.low:.1%} to {exact.high:.1%})" in tip
        counts.append(str(members.sum()))
    assert figure.locator("text.count").all_text_contents() == counts


def test_hostile_names_stay_text(open_page):
    page = open_page(make())
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "1"
    assert HOSTILE in page.locator("h1").inner_text()
    unfold(page)
    assert page.locator("#class-filter option").nth(2).inner_text() == HOSTILE
    page.locator("#map circle.target").first.dispatch_event("pointermove", {"clientX": 5, "clientY": 5})
    point = page.locator("#map circle.target").first
    point.hover(force=True)
    assert HOSTILE in page.locator("#tip").inner_text()
    assert page.locator("img[src=x]").count() == 0


def test_the_filter_shows_one_class_by_mouse_and_by_keyboard(open_page):
    page = open_page(make())
    unfold(page)
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
    unfold(page)
    nameless = page.evaluate(
        """[...document.querySelectorAll('svg, select, button, img')].filter(one =>
           !(one.getAttribute('aria-label') || one.innerText || one.alt || one.labels?.length)).length"""
    )
    assert nameless == 0
    levels = [int(one.evaluate("e => e.tagName[1]")) for one in page.locator("h1, h2, h3").all()]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert page.locator("section.card").count() == page.locator("section[aria-labelledby]").count()
    assert page.locator("details.card > summary h3").count() == page.locator("details.card").count()


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
