"""Text from anywhere, as a terminal may have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def plain(text: str) -> str:
    """Text from the user's disk for rich to print: no markup, and control characters as escapes."""
    from rich.markup import escape

    visible = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return escape(visible)


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number and what it counts: 1 row, 1,000 rows."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def about(seconds: float) -> str:
    """A time that is only roughly known, in words."""
    if seconds < 90:
        return f"about {max(round(seconds / 10), 1) * 10} seconds"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} minutes"
    return f"about {round(seconds / 3600)} hours" if seconds < 36 * 3600 else f"about {round(seconds / 86400)} days"


def table_of(*columns: str, **options: Any) -> Table:
    """A table whose cells are folded, not cut, where a terminal is narrow."""
    from rich.table import Column, Table

    return Table(*(Column(name, overflow="fold") for name in columns), **options)
