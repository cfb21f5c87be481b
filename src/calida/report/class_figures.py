"""Figures by class: how far each answer can be trusted, shares of the domains, and what is taken for what."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from calida.report.bars import Bar, BarRow, bar_list
from calida.report.figures import Figure, Panel, Table, views
from calida.report.run_results import RunResults
from calida.report.svg import Plot, tag
from calida.uncertainty import wilson

_FIRST, _DRAWN = 6, 30  # classes on the first screen, and in a figure; the table has them all
_LARGEST_MATRIX = 20
_SHORT = 3  # letters that fit beside a matrix


def trusted_classes(results: RunResults) -> Figure:
    """Of the answers of each class, how many are right: counted where labels are known, expected otherwise."""
    answers, right = results.answers, results.probability_right.numpy()
    known = results.truth is not None
    if results.truth is not None:
        right = (answers == results.truth).astype(float)
    count = len(results.classes)
    given = np.bincount(answers, minlength=count)
    shares = np.bincount(answers, right, minlength=count) / np.maximum(given, 1)
    used = [int(label) for label in np.argsort(shares, kind="stable") if given[label]]
    kind = "truth" if known else "target"
    rows = []
    for label in used[:_FIRST]:
        ends = wilson(float(shares[label]), int(given[label])) if known else (None, None)
        text = f"{shares[label]:.0%} of {given[label]:,}"
        tip = f"{results.classes[label]}: {shares[label]:.1%} of {given[label]:,} answers right"
        rows.append(BarRow(results.classes[label], [Bar(kind, float(shares[label]), text, tip, *ends)], label))
    how = "counted with labels" if known else "expected without labels"
    title = "Which answers are weakest" if len(used) > len(rows) else "Which answers can be trusted"
    caption = f"Right answers among those of a class, {how}."
    if len(used) > len(rows):
        caption += f" The weakest {len(rows)} of {len(used):,} classes."
    header = ["class", "answers", f"right, {how}"]
    table = Table(header, [[results.classes[label], f"{given[label]:,}", f"{shares[label]:.1%}"] for label in used])
    picture = bar_list(rows, f"{title}: {caption}")
    return Figure("trusted", title, caption, [Panel("", picture)], table=table)


def class_shares(results: RunResults) -> Figure:
    """What share of each domain goes to which class."""
    classes = results.classes
    series: dict[str, tuple[str, np.ndarray]] = {"source": ("source", results.source_shares())}
    if results.changed:
        series["before"] = ("target, source only", np.array(results.before["target"]["class_shares"]))
    series["target"] = (f"target, {views(results)[-1][0]}", np.array(results.after["target"]["class_shares"]))
    if results.truth is not None:
        counts = np.bincount(results.truth, minlength=len(classes))
        series["truth"] = ("target in truth (oracle)", counts / counts.sum())
    values = np.stack([shares for _, shares in series.values()])  # [series, K]
    found = results.after["target"].get("estimated_shares")
    spans = list(zip(found["low"], found["high"], strict=True)) if found else []
    moved = np.abs(values - values[0]).max(0)
    drawn = sorted(np.argsort(-moved, kind="stable")[:_DRAWN].tolist())
    rows = [
        BarRow(
            classes[label],
            [
                Bar(
                    kind,
                    float(shares[label]),
                    f"{shares[label]:.1%}",
                    f"{classes[label]}: {shares[label]:.1%} of {words}",
                    *(spans[label] if spans and kind == "target" else ()),
                )
                for kind, (words, shares) in series.items()
            ],
            label,
        )
        for label in drawn
    ]
    caption = "What share of each domain goes to which class. A class that swallows others shows here first."
    if spans:
        caption += " Lines: where the true share lies in 90% of draws, if classes are confused as on held-out source."
    if len(drawn) < len(classes):
        caption += f" Drawn are the {len(drawn)} of {len(classes):,} whose shares differ most."
    header = ["class", *(words for words, _ in series.values()), *(["90% interval"] if spans else [])]
    cells = [
        [
            name,
            *(f"{shares[place]:.1%}" for shares in values),
            *(f"{low:.1%} to {high:.1%}" for low, high in spans[place : place + 1]),
        ]
        for place, name in enumerate(classes)
    ]
    legend = [(kind, words) for kind, (words, _) in series.items()]
    widest = max([float(values.max()), *(high for _, high in spans)])
    table = Table(header, cells)
    picture = bar_list(rows, f"Class shares of {len(classes)} classes", widest)
    return Figure("classes", "Class shares", caption, [Panel("", picture)], legend, table)


def confusion(results: RunResults) -> Figure | None:
    """True against predicted classes, where labels are known."""
    if results.truth is None:
        return None
    kept = _most_confused(results, results.truth)
    classes, truth = [results.classes[label] for label in kept], results.truth
    count = len(classes)
    short = max(map(len, classes)) <= _SHORT
    marks = classes if short else [str(number + 1) for number in range(count)]
    panels, rows = [], []
    for name, view in views(results):
        predicted = view.target.argmax(1)
        whole = np.zeros((len(results.classes), len(results.classes)), dtype=int)
        np.add.at(whole, (truth, predicted), 1)
        table, totals = whole[np.ix_(kept, kept)], whole.sum(1)[kept]
        ticks = [(i + 0.5, text) for i, text in enumerate(marks)]
        plot = Plot((0, count), (count, 0), "predicted", "true", (380, 360), x_ticks=ticks, y_ticks=[], left=44)
        for place, text in ticks:
            plot.row_label(place, text)
        for i in range(count):
            for j in range(count):
                share = table[i, j] / max(totals[i], 1)
                tip = f"{table[i, j]} of {totals[i]} samples of {classes[i]} predicted {classes[j]} ({share:.1%})"
                plot.cell(j, i, float(share), str(table[i, j]) if table[i, j] and count <= 12 else "", tip)
        right = float((predicted == truth).mean())
        panels.append(Panel(f"{name}: {right:.1%} right", plot.draw(f"Confusion matrix, {name}, {right:.1%} right")))
        worst = sorted(((table[i, j], i, j) for i in range(count) for j in range(count) if i != j), reverse=True)[:8]
        rows += [[name, classes[i], classes[j], str(number)] for number, i, j in worst if number]
    caption = Markup("Rows are true classes, columns predicted ones; oracle, as it needs target labels.")
    if count < len(results.classes):
        caption += f" Shown are the {count} of {len(results.classes):,} classes that are confused most."
    if not short:
        caption += tag("ol", *(tag("li", name) for name in classes), class_="names-key")
    table_ = Table(["classifier", "true", "predicted", "samples"], rows)
    return Figure("confusion", "What is taken for what (oracle)", caption, panels, table=table_)


def _most_confused(results: RunResults, truth: np.ndarray) -> list[int]:
    """All classes, or as many as a matrix can show: those that take part in the most errors."""
    wrong = results.answers != truth
    errors = np.bincount(truth[wrong], minlength=len(results.classes))
    errors += np.bincount(results.answers[wrong], minlength=len(results.classes))
    return sorted(np.argsort(-errors, kind="stable")[:_LARGEST_MATRIX].tolist())
