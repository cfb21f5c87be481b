"""What a result says of itself: about ten lines for a prompt, a small table for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from calida.adaptation.verdict import BUDGET, Evidence, Verdict, judge
from calida.encoders.packaged import PACKAGED
from calida.run_warnings import RunWarning

if TYPE_CHECKING:
    from calida.adaptation.adapted import Adapted, Trust

Facts = list[tuple[str, str]]
_CLASSES, _WORRIES = 8, 2  # that are named
_WIDTH, _LABELS = 100, 16


def facts_of(adapted: Adapted) -> Facts:
    """What a user wants to know first, each with a word for it."""
    classes = adapted.classes
    shown = ", ".join(classes[:_CLASSES]) + (", ..." if len(classes) > _CLASSES else "")
    reads = " x ".join(map(str, adapted.network.input_shape))
    facts = [("classes", f"{len(classes)}: {shown}"), ("recipe", f"{adapted.recipe.name}, seed {adapted.seed}")]
    trust = adapted.trust
    if trust is None:
        return [*facts, ("reads", reads), ("next", "predict(samples)")]
    verdict = _verdict(adapted, trust)
    return [
        ("returned", f"{trust.returned}: {trust.reason}"),
        ("can I use it", f"{verdict.use.short}. {verdict.use.words}"),
        ("estimate", verdict.estimate),
        ("findings", _findings(verdict.findings)),
        ("next", verdict.action.in_python or f"{verdict.action.words} {verdict.action.command}"),
        *facts,
        ("reads", _reads(adapted, reads)),
    ]


def _verdict(adapted: Adapted, trust: Trust) -> Verdict:
    """What the report would say of it, as far as it is known here."""
    samples = BUDGET if adapted.predictions is None else len(adapted.predictions.target)
    return judge(Evidence(trust.decision, trust.accuracy, trust.warnings, len(adapted.classes), samples))


def as_text(adapted: Adapted) -> str:
    """Plain text for a prompt; names from anywhere cannot command the terminal."""
    lines = ["Adapted"]
    for name, words in facts_of(adapted):
        wrapped = textwrap.wrap(
            _visible(words), _WIDTH - _LABELS - 2, max_lines=3, placeholder=" ...", break_on_hyphens=False
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
    told = " ".join(f"[{warning.severity.value}] {warning}" for warning in warnings[:_WORRIES])
    return told if len(warnings) <= _WORRIES else f"{told} (and {len(warnings) - _WORRIES} more in trust.warnings)"


def _reads(adapted: Adapted, shape: str) -> str:
    """What `predict` takes."""
    prepared = adapted.preparation
    if prepared is None:
        return f"arrays of {shape}"
    if prepared.encoder is not None:
        kind = "texts" if prepared.text is not None else _read_by(prepared.encoder.name)
        return f"{kind}, by the encoder {prepared.encoder.name}"
    if prepared.table is not None:
        return f"tables, frames and rows with {len(prepared.table.columns)} columns"
    return (
        f"image files, folders and images, brought to {shape}"
        if len(prepared.target.shape) == 3
        else f"rows of {shape}"
    )


def _read_by(encoder: str) -> str:
    """What an encoder of this name reads; only the network of hf:REPO, which is not loaded here, could tell."""
    plain = encoder.partition("@")[0]
    if plain in PACKAGED:
        return PACKAGED[plain].reads
    return "images" if plain.startswith(("timm:", "torchvision:")) else "images or texts"


def _visible(text: str) -> str:
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
