"""Pages that are made of the code while the site is built: one of each package of the house, and the commands."""

import inspect
import re
from pathlib import Path

import typer
from mkdocs.structure.files import File

from calida.cli.app import app

PACKAGE = Path(__file__).parent.parent / "src" / "calida"
COMMANDS = "<!-- commands -->"
QUIET = "---\nsearch: {boost: 0.3}\n---\n\n"  # hand-written pages come first in a search


def packages():
    """The house's rooms: folders of the package that offer names."""
    return [path.parent.name for path in sorted(PACKAGE.glob("*/__init__.py"))]


def on_config(config):
    """The rooms follow the hand-written pages of the navigation's part API."""
    (api,) = [part["API"] for part in config.nav if "API" in part]
    api += [{name: f"api/{name}.md"} for name in packages()]
    return config


def on_files(files, config):
    for name in packages():
        text = f"{QUIET}# calida.{name}\n\n::: calida.{name}\n"
        files.append(File.generated(config, f"api/{name}.md", content=text))
    return files


def on_page_markdown(markdown, **_):
    return markdown.replace(COMMANDS, commands_text()) if COMMANDS in markdown else markdown


def commands_text():
    """Every command with its options, in the words of its own help."""
    parts = []
    for name, command in _commands(typer.main.get_command(app)):
        context = command.make_context(name, [], resilient_parsing=True)
        records = [record for one in command.params if (record := one.get_help_record(context))]
        parts += [f"## calida {name}", _plain(command.help)]
        if records:
            rows = [f"| `{_cell(option)}` | {_cell(meaning)} |" for option, meaning in records]
            parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _commands(group, before=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _cell(text):
    """Text for a cell of a table: a bar would end it, and a bracket could open a link."""
    return text.replace("|", "\\|").replace("  [", " [").replace("[", "(").replace("]", ")")


def _plain(text):
    """Help text without rich's marks, its paragraphs kept."""
    return re.sub(r"\[/?\w*\]", "", inspect.cleandoc(text or ""))
