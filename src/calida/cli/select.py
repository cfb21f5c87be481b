"""`calida select`: which of several runs to trust, without a target label."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calida.cli.options import AsJson, Quiet
from calida.cli.screen import Screen
from calida.terminal import plain, table_of

if TYPE_CHECKING:
    from calida.validation import Selection


def select(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs on one target.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Choose among finished runs without target labels, and say how far the validators disagree.

    Recipes, seeds, settings and networks may differ; the target may not.
    """
    from calida.runs import RunFolder, select_run

    screen = Screen(quiet, as_json)
    selection = select_run(runs)
    metrics = {str(run): RunFolder(run).read_metrics() for run in runs}
    estimates = {run: found["trust"]["accuracy"]["value"] for run, found in metrics.items()}
    show_selection(screen, selection, estimates)
    oracle = {run: found["adapted"].get("oracle", {}).get("accuracy") for run, found in metrics.items()}
    known = {run: value for run, value in oracle.items() if value is not None}
    if len(known) == len(runs):
        best = max(known.values())
        screen.say(
            f"Target labels were given to all runs: the chosen one has {known[selection.chosen]:.2%} (oracle), "
            f"{best - known[selection.chosen]:.2%} under the best."
        )
    told = {"reason": selection.reason, "estimates": estimates, "oracle_accuracy": known or None}
    screen.result({**selection._asdict(), **told})


def show_selection(
    screen: Screen, selection: Selection, estimates: Mapping[str, float], names: Mapping[str, str] | None = None
) -> None:
    """The table of runs, the best first, why it is, and how far others would choose another; `names` are for people."""
    from calida.validation import DECIDING

    called = {run: plain((names or {}).get(run, run)) for run in selection.table}
    heads = ("run", DECIDING, "estimated accuracy", "validators that would choose it")
    table = table_of(*heads, title="runs, the best first", title_justify="left")
    for name, row in sorted(selection.table.items(), key=lambda item: -item[1][DECIDING]):
        own = [validator for validator, pick in selection.picks.items() if pick == name]
        table.add_row(called[name], f"{row[DECIDING]:.3f}", f"{estimates[name]:.1%}", ", ".join(own) or "none")
    screen.console.print(table)
    screen.say(selection.reason)
    highest = max(estimates, key=lambda name: estimates[name])
    if estimates[highest] > estimates[selection.chosen]:
        screen.say(f"By the estimates {called[highest]} is right more often: look at both reports.")
    others = sorted(called[run] for run in set(selection.picks.values()) - {selection.chosen})
    screen.say(
        f"Rank correlation of the validators: {selection.agreement:.2f} (1 is full agreement). "
        + (f"Others would choose {', '.join(others)}." if others else "All would choose the same.")
    )
    if selection.agreement < 0.3:
        screen.say("They disagree widely: look at the reports, and label a few samples: calida label RUN")
