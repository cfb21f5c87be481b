"""The sheet on which a person labels a few samples: thumbnails or table rows, a choice beside each, one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calida.report.templating import asset, render_template


@dataclass(frozen=True)
class SheetItem:
    """A sample to label: its number in the file of labels, its name, and what there is to see of it."""

    number: int
    name: str
    picture: str = ""  # a data address
    values: Sequence[tuple[str, str]] = ()  # columns and their values


def render_sheet(
    items: Sequence[SheetItem], classes: Sequence[str], no_class: str, named_by: str, target: str, key: str
) -> str:
    """The page as text. It shows no prediction, which would lead the eye; `key` is what a browser keeps answers under.

    `no_class` is the answer for a sample of none of the classes, and `named_by` what names are: paths or rows.
    """
    return render_template(
        "label_sheet.html",
        items=items,
        classes=classes,
        no_class=no_class,
        named_by=named_by,
        target=target,
        key=key,
        style=asset("style.css"),
        sheet_style=asset("label_sheet.css"),
        script=asset("label_sheet.js"),
    )
