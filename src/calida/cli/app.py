"""The commands of `calida`, and what becomes of errors."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from calida.cli.adapt import adapt
from calida.cli.data import data_app
from calida.cli.demo import demo
from calida.cli.encoders import cache_app, embed, encoders
from calida.cli.label import label
from calida.cli.options import AsJson
from calida.cli.results import evaluate, predict, report
from calida.cli.screen import Screen
from calida.cli.select import select
from calida.cli.study import study
from calida.errors import CalidaError, CalidaWarning, InputError
from calida.launch import is_one_of_several
from calida.terminal import plain, table_of
from calida.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    help="Adapt a classifier to new, unlabeled data, and see whether to trust it.\n\nTry [bold]calida demo[/] first: "
    "real images, no download, under two minutes.",
)


def run() -> None:
    """Run a command; what the user can mend is one sentence and exit code 2."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", CalidaWarning)
    try:
        app()
    except CalidaError as error:
        hint = f" ({_flag(error.option)})" if error.option is not None and _takes(_flag(error.option)) else ""
        Screen().error(f"{error}{hint}")
        sys.exit(2)
    except OSError as error:  # a disk that is full, a folder that may not be written
        Screen().error(f"{error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _is_out_of_memory(error):
            raise
        Screen().error(f"there is not enough memory for this: {_first_line(error)}; give fewer or smaller samples")
        sys.exit(2)


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _takes(flag: str) -> bool:
    """Whether the command that was given has this option."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    named = next((commands[word] for word in sys.argv[1:] if word in commands), None)
    return named is None or any(flag in parameter.opts for parameter in named.params)


_usual = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Our own warnings as a sentence; those of others as Python shows them."""
    if issubclass(category, CalidaWarning):
        Screen().error(f"note: {message}")
    else:
        _usual(message, category, *place, **more)


def _is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch asked for memory in vain, which it says in words alone."""
    return any(words in str(error) for words in ("not enough memory", "can't allocate memory", "out of memory"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["none is left"])[0][:200].rstrip(".")


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if is_one_of_several() and context.invoked_subcommand not in (adapt.__name__, demo.__name__):
        raise InputError("several processes train together in adapt and demo; other commands run without torchrun")
    if version:
        print(__version__)
        raise typer.Exit


def recipes(
    name: Annotated[str | None, typer.Argument(help="Show every setting of this recipe.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="All settings and recipes as a page.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the methods and when to choose which, or show every setting of one."""
    from calida.adaptation import AUTO, AUTO_RECIPES
    from calida.recipes import RECIPES, WHEN, get_recipe
    from calida.recipes.document import settings_page
    from calida.recipes.settings import to_plain

    if markdown:
        print(settings_page(), end="")
        return
    screen = Screen(as_json=as_json)
    if name == AUTO:
        raise InputError(f"auto is no recipe of its own: it tries {', '.join(AUTO_RECIPES)}; show one of them")
    if name is not None:
        recipe = get_recipe(name)
        values = recipe.to_json()
        table = table_of("setting", "value", "meaning", title=f"{recipe.name}: {recipe.summary}", title_justify="left")
        for full, one in recipe.each().items():
            table.add_row(full, plain(str(to_plain(one.value))), one.words)
    else:
        values = {recipe.name: recipe.summary for recipe in RECIPES.values()}
        values[AUTO] = f"tries {', '.join(AUTO_RECIPES)} and returns what label-free validators prefer"
        table = table_of("recipe", "what it does", "choose it when", show_lines=True)
        for key, value in values.items():
            table.add_row(key, value, WHEN.get(key, ""))
    screen.show_list(table)
    if name is None:
        screen.say("Without --recipe: calida for images, consensus for tables, features with an encoder.")
        screen.say("Any order: rer-2, brer-0.5, rer-3-gvr. One recipe in full: calida recipes NAME")
    screen.result(values)


for command in (demo, adapt, predict, select, label, evaluate, report, study, encoders, embed):
    app.command()(command)
app.add_typer(data_app, name="data")
app.add_typer(cache_app, name="cache")
app.command()(recipes)
