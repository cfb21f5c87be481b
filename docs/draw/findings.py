"""The page of findings, from their codes, severities and sentences in the code."""

import re
from pathlib import Path

from calida.run_warnings import WORDS, WarningCode, severity_of

_OPENING = """# Findings

What a run can find, by code. Codes and values are in `metrics.json` and in `trust.warnings`. The report has the
sentences, and opens with the most severe. *Alarm* means: do not use the result as it is. *Care* means: look before you
do. A *note* is worth knowing. This page is made by `python docs/draw findings`.

| code | severity | sentence |
|---|---|---|
"""


def page() -> str:
    """Every code with its sentence, the most severe first; numbers are shown as `...`."""
    codes = sorted(WarningCode, key=lambda code: -severity_of(code).rank)
    return _OPENING + "".join(f"| `{code.value}` | {severity_of(code).value} | {_sentence(code)} |\n" for code in codes)


def _sentence(code: WarningCode) -> str:
    return re.sub(r"\{[^{}]*\}", "...", WORDS[code])


def draw(pictures: Path) -> None:
    """Write it, beside the folder of pictures."""
    (pictures.parent / "findings.md").write_text(page(), encoding="utf-8")
