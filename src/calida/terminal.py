"""Text from anywhere, as a terminal may have it."""

from __future__ import annotations


def plain(text: str) -> str:
    """Text from the user's disk for rich to print: no markup, and control characters as escapes."""
    from rich.markup import escape

    visible = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return escape(visible)
