"""Every setting in words, as Markdown: what docs/settings.md is made of."""

from __future__ import annotations

from calida.recipes.named import RECIPES
from calida.recipes.recipe import Recipe
from calida.recipes.settings import Setting, kind_in_words, to_plain

_OPENING = """# Settings

A recipe is a set of values. Change one with `--set adaptation.rounds=20`, or in Python with `rounds=20`; the short name
will do where only one group has it. `calida recipes NAME` prints every value of a recipe. This page is made by
`calida recipes --markdown`.

A ramp moves from round to round: `[start, step, stop]`, or one number that stays. The step `"even"` reaches the stop in
the last round.
"""


def settings_page() -> str:
    """All groups with their settings, and what each recipe changes."""
    parts = [_OPENING]
    plain = Recipe("plain")
    for name, group in plain.groups().items():
        parts.append(f"## {name}\n\n{(type(group).__doc__ or '').strip()}\n")
        parts.append("| setting | if the recipe does not set it | values | meaning |\n|---|---|---|---|")
        parts += [_row(one) for one in group.each()]
        parts.append("")
    parts.append("## Recipes\n\nWhat each recipe sets, where it differs from the defaults above.\n")
    defaults = {full: one.value for full, one in plain.each().items()}
    for recipe in RECIPES.values():
        parts.append(f"### {recipe.name}\n\n{recipe.summary[0].upper()}{recipe.summary[1:]}.\n")
        changed = [
            f"`{full} = {_code(one.value)}`" for full, one in recipe.each().items() if one.value != defaults[full]
        ]
        parts.append(", ".join(changed) + ".\n" if changed else "The defaults.\n")
    return "\n".join(parts).rstrip() + "\n"


def _row(one: Setting) -> str:
    values = kind_in_words(one.kind) if one.constraint is None else one.constraint.words
    return f"| `{one.name}` | `{_code(one.value)}` | {values} | {one.words} |"


def _code(value: object) -> str:
    plain = to_plain(value)
    return '""' if plain == "" else "none" if plain is None else str(plain)
