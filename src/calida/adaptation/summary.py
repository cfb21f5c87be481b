"""What a result says of itself: about ten lines for a prompt, a small table for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from calida.run_warnings import RunWarning, Severity
from calida.validation import Returned

if TYPE_CHECKING:
    from calida.adaptation.adapted import Adapted, Trust

Facts = list[tuple[str, str]]
_CLASSES, _WORRIES = 8, 2  # that are named
_WIDE = 0.2  # an interval from which an estimate says little
_WIDTH, _LABELS = 100, 16
_ORDER = (Severity.ALARM, Severity.CARE, Severity.NOTE)


def facts_of(adapted: Adapted) -> Facts:
    """What a user wants to know first, each with a word for it."""
    classes = adapted.classes
    shown = ", ".join(classes[:_CLASSES]) + (", ..." if len(classes) > _CLASSES else "")
    reads = " x ".join(map(str, adapted.network.input_shape))
    facts = [("classes", f"{len(classes)}: {shown}"), ("recipe", f"{adapted.recipe.name}, seed {adapted.seed}")]
    trust = adapted.trust
    if trust is None:
        return [*facts, ("reads", reads), ("next", "predict(samples)")]
    accuracy = trust.accuracy
    return [
        ("returned", f"{trust.returned}: {trust.reason}"),
        (
            "right on target",
            f"{accuracy.value:.1%} ({accuracy.low:.1%} to {accuracy.high:.1%}), estimated without labels",
        ),
        ("findings", _findings(trust.warnings)),
        ("next", next_step(trust)),
        *facts,
        ("reads", _reads(adapted, reads)),
    ]


def next_step(trust: Trust) -> str:
    """One thing to do with this result, by how far it can be trusted."""
    check = "label some 50 target samples and compare (docs/label-a-few.md)"
    if any(warning.severity == Severity.ALARM for warning in trust.warnings):
        return f"do not use it as it is: {check}"
    if trust.accuracy.high - trust.accuracy.low > _WIDE or any(one.severity == Severity.CARE for one in trust.warnings):
        return f"check it before you rely on it: {check}"
    if trust.decision.returned == Returned.SOURCE_ONLY:
        return f"adapting showed no gain; to be sure, {check}"
    return "predict(new samples); accepted(max_risk=0.02) of a prediction leaves out what is uncertain"


def as_text(adapted: Adapted) -> str:
    """Plain text for a prompt; names from anywhere cannot command the terminal."""
    lines = ["Adapted"]
    for name, words in facts_of(adapted):
        wrapped = textwrap.wrap(
            _visible(words), _WIDTH - _LABELS - 2, max_lines=2, placeholder=" ...", break_on_hyphens=False
        ) or [""]
        first, *more = wrapped
        lines += [f"  {name:<{_LABELS}}{first}", *(" " * (_LABELS + 2) + line for line in more)]
    return "\n".join(lines)


def as_html(adapted: Adapted) -> str:
    """A table for a notebook; what stands in it is text and nothing else."""
    rows = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(_visible(words))}</td></tr>'
        for name, words in facts_of(adapted)
    )
    return f"<table><caption>Adapted</caption>{rows}</table>"


def _findings(warnings: Sequence[RunWarning]) -> str:
    if not warnings:
        return "none"
    worst = sorted(warnings, key=lambda warning: _ORDER.index(warning.severity))[:_WORRIES]
    told = " ".join(f"[{warning.severity.value}] {warning}" for warning in worst)
    return told if len(warnings) <= _WORRIES else f"{told} (and {len(warnings) - _WORRIES} more in trust.warnings)"


def _reads(adapted: Adapted, shape: str) -> str:
    """What `predict` takes."""
    prepared = adapted.preparation
    if prepared is None:
        return f"arrays of {shape}"
    if prepared.encoder is not None:
        kind = "texts" if prepared.text is not None else "images or texts"
        return f"{kind}, by the encoder {prepared.encoder.name}"
    if prepared.table is not None:
        return f"tables, frames and rows with {len(prepared.table.columns)} columns"
    return (
        f"image files, folders and images, brought to {shape}"
        if len(prepared.target.shape) == 3
        else f"rows of {shape}"
    )


def _visible(text: str) -> str:
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
