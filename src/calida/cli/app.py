"""The commands of `calida`."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.table import Table

from calida.adaptation import Adapted, load
from calida.cli.data import data_app
from calida.cli.options import (
    AsJson,
    Device,
    Label,
    Quiet,
    RunPath,
    SkipUnreadable,
    TargetLabels,
    Workers,
    parse_settings,
)
from calida.cli.screen import Screen, plain
from calida.data import INSIDE, DataCard, Loading, class_indices
from calida.errors import CalidaError, CheckpointError, InputError
from calida.recipes import RECIPES, get_recipe
from calida.report import score
from calida.runs import Metrics, RunConfig, RunFolder, evaluate_run, execute, open_new, republish, write_predictions
from calida.training import describe_target
from calida.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    help="Adapt a classifier to new, unlabelled data, and see whether to trust it.\n\nTry [bold]calida demo[/] first: "
    "real images, no download, under two minutes.",
)
app.add_typer(data_app, name="data")

# The target's digits have 8 pixels: a frame of 20 loses none of them and trains twice as fast as MNIST's 28.
DEMO = RunConfig(
    "mnist-5k",
    "uci-digits",
    target_labels=INSIDE,
    backbone="compact",
    size=20,
    settings={"pretrain_epochs": 10, "rounds": 6, "passes": 1},
)


def main() -> None:
    """Run a command; what the user can mend is one sentence and exit code 2."""
    try:
        app()
    except CalidaError as error:
        Screen().error(str(error))
        sys.exit(2)
    except OSError as error:  # a disk that is full, a folder that may not be written
        Screen().error(f"{error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(2)


@app.callback(invoke_without_command=True)
def top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def adapt(
    source: Annotated[
        str | None,
        typer.Option(
            help="Labelled data: class folders, a list, .npz, a table, or a named set such as mnist:2000.",
            rich_help_panel="Data",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Unlabelled data of the same kinds; folder names are not read as labels.", rich_help_panel="Data"
        ),
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="The method, calida if left out; see: calida recipes.", rich_help_panel="Method")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any setting of the recipe; repeatable.", rich_help_panel="Method"
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file with these options and a table of settings.", rich_help_panel="Run")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder of the run; by default a new one under runs.", rich_help_panel="Run")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the interrupted run in --out.", rich_help_panel="Run")
    ] = False,
    label: Label = None,
    target_labels: TargetLabels = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes a run repeatable; 0 by default.", rich_help_panel="Method")
    ] = None,
    device: Device = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="dtn, lenet, compact, mlp or timm:NAME; chosen by the data if left out.", rich_help_panel="Method"
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Height and width that images are brought to.", rich_help_panel="Data")
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(help="Share of source held out to look at; 0.1 by default.", rich_help_panel="Method"),
    ] = None,
    on_mismatch: Annotated[
        str | None,
        typer.Option(
            metavar="stop|match|ignore",
            help="If scale or polarity differ: stop, match the target to the source, or ignore.",
            rich_help_panel="Data",
        ),
    ] = None,
    skip_unreadable: SkipUnreadable = False,
    memory: Annotated[
        float | None,
        typer.Option(
            help="GB of decoded images a domain may take; larger sets stream from disk.", rich_help_panel="Data"
        ),
    ] = None,
    workers: Workers = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard logs into the run folder.", rich_help_panel="Run")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Adapt a classifier from labelled source data to unlabelled target data.

    Example: calida adapt --source photos --target camera
    """
    if resume and out is None:
        raise InputError("--resume needs the folder of the run: --out RUN")
    chosen = RunFolder(out).read_config() if resume and out else RunConfig()
    chosen = RunConfig.from_toml(config) if config else chosen
    given: dict[str, Any] = {
        "source": source,
        "target": target,
        "recipe": recipe,
        "label": label,
        "target_labels": target_labels,
        "seed": seed,
        "device": device,
        "backbone": backbone,
        "size": size,
        "validation": validation,
        "on_mismatch": on_mismatch,
        "skip_unreadable": skip_unreadable or None,
        "memory": memory,
        "workers": workers,
        "tensorboard": tensorboard or None,
    }
    if recipe is not None and recipe != chosen.recipe:
        chosen = chosen.changed({"recipe": recipe}).without_settings()  # another recipe's values are not this one's
    chosen = chosen.changed({key: value for key, value in given.items() if value is not None})
    chosen = chosen.changed({"settings": parse_settings(set_ or [])})
    screen = Screen(quiet, as_json)
    folder = out or _new_folder(chosen)
    metrics = _run(screen, chosen, folder, resume, _command_line())
    screen.show_files(folder)
    screen.result({"run": str(folder), **metrics})


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder of the run; an earlier demo in it is replaced.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed, another run.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Adapt from 5,000 MNIST digits to 1,797 unlabelled UCI digits: real data, no download, no network.

    The UCI labels are used once, at the end, to show what was gained.
    """
    screen = Screen(quiet, as_json)
    screen.say("Labelled: 5,000 MNIST digits of 28 x 28 pixels. Unlabelled: 1,797 UCI digits of 8 x 8 pixels.")
    folder = RunFolder(out)
    if folder.holds_run():
        earlier = folder.read_config()
        if (earlier.source, earlier.target) != (DEMO.source, DEMO.target):
            raise InputError(f"{out} holds another run; choose another --out")
        folder.remove()
    metrics = _run(screen, replace(DEMO, seed=seed), out, False, _command_line())
    before, after = (metrics[side]["oracle"] for side in ("source_only", "adapted"))
    screen.say(
        f"Without a single target label, accuracy on the new digits went from {before['accuracy']:.1%} to "
        f"{after['accuracy']:.1%} and ECE from {before['ece']:.1%} to {after['ece']:.1%}, in "
        f"{metrics['training_seconds']:.0f} s of training."
    )
    screen.show_files(out)
    screen.say(f"Look at {folder.report.resolve()} in a browser, then try your own data:")
    screen.say("  calida adapt --source FOLDER_WITH_CLASS_SUBFOLDERS --target FOLDER_OF_IMAGES")
    screen.result({"run": str(out), **metrics})


@app.command()
def predict(
    run: RunPath,
    data: Annotated[str, typer.Argument(metavar="DATA", help="New samples: anything that --target takes.")],
    out: Annotated[Path, typer.Option(help="The file of predictions.")] = Path("predictions.csv"),
    label: Label = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Monte-Carlo samples; by default the recipe's.")] = None,
    domain: Annotated[
        str, typer.Option(metavar="target|source", help="Whose preparation the new samples get.")
    ] = "target",
    skip_unreadable: SkipUnreadable = False,
    workers: Workers = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new samples with the classifier of a finished run, with uncertainties."""
    if domain not in ("source", "target"):
        raise InputError(f"--domain is source or target, not {domain!r}")
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"{out} cannot be a file of predictions: {'it is' if out.is_dir() else 'there is no'} folder")
    screen = Screen(quiet, as_json)
    adapted = load(run, device)
    card = _card(adapted, run)
    loading = Loading(workers=Loading.workers if workers is None else workers, skip_unreadable=skip_unreadable)
    loaded = open_new(data, card, loading, False, label, domain)
    prediction = adapted.predict(loaded.samples, num_samples=samples)
    write_predictions(out, loaded.collection, prediction, card.classes)
    summary = {"predictions": str(out), "samples": len(prediction), **describe_target(prediction)}
    screen.say(f"{loaded.collection.origin}: {'; '.join(loaded.notes)}")
    screen.say(
        f"{len(prediction):,} predictions in {out}: mean confidence {summary['confidence']:.1%}, "
        f"mean entropy {summary['entropy']:.3f} nats"
    )
    screen.result(summary)


@app.command()
def evaluate(
    run: RunPath,
    data: Annotated[
        str | None, typer.Argument(metavar="[DATA]", help="Other labelled data; by default the run's own target.")
    ] = None,
    target_labels: TargetLabels = None,
    label: Label = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with true labels: oracle figures, before and after adaptation.

    Without DATA the figures are added to the run's metrics.json and report.
    """
    screen = Screen(quiet, as_json)
    if data is None:
        metrics = evaluate_run(run, target_labels, label)
    else:
        if target_labels is not None:
            raise InputError("DATA carries its own labels; --target-labels is for the run's target")
        metrics = _evaluate_other(run, data, label, device)
    screen.show_result(metrics)
    screen.result(metrics)


def _evaluate_other(run: Path, data: str, label: str | None, device: str | None) -> Metrics:
    adapted = load(run, device)
    card = _card(adapted, run)
    loaded = open_new(data, card, Loading(), True, label, "target")
    truth = class_indices(loaded.collection.labels or (), card.classes, data)
    sides = {"source_only": adapted.source_only or adapted, "adapted": adapted}
    return {name: {"oracle": score(side.predict(loaded.samples).log_probs, truth)} for name, side in sides.items()}


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of finished runs.")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Draw the report of finished runs again, from what their folders hold."""
    screen = Screen(quiet, as_json)
    drawn = {str(run): str(republish(run)) for run in runs}
    for path in drawn.values():
        screen.say(path)
    screen.result(drawn)


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="Show every setting of this recipe.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods, or show every setting of one."""
    screen = Screen(as_json=as_json)
    if name is not None:
        values = get_recipe(name).to_json()
        table = Table("setting", "value", title=f"{values.pop('name')}: {values.pop('summary')}", title_justify="left")
        for key, value in values.items():
            table.add_row(key, "" if value is None else plain(str(value)))
    else:
        values = {recipe.name: recipe.summary for recipe in RECIPES.values()}
        table = Table("recipe", "what it does")
        for key, value in values.items():
            table.add_row(key, value)
    screen.console.print(table)
    if name is None:
        screen.say("Any order: rer-2, brer-0.5, rer-3-gvr. One recipe in full: calida recipes NAME")
    screen.result(values)


def _run(screen: Screen, config: RunConfig, folder: Path, resume: bool, command: str) -> Metrics:
    """Execute with progress; an interruption leaves a run that can be resumed, and says how."""
    with _terminable():
        try:
            with screen.progress() as progress:
                metrics = execute(config, folder, resume, progress.observe, progress.read, screen.show_data, command)
        except KeyboardInterrupt:
            if RunFolder(folder).holds_run():
                screen.error(f"stopped; go on with: calida adapt --resume --out {shlex.quote(str(folder))}")
            else:
                screen.error("stopped before training began; nothing was written")
            raise typer.Exit(130) from None
    screen.show_result(metrics)
    return metrics


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _new_folder(config: RunConfig) -> Path:
    """A folder under runs that is not there yet, named after the data and the recipe."""
    parts = (Path(config.source).name, Path(config.target).name, config.recipe, str(config.seed))
    name = re.sub(r"[^\w.-]+", "-", "-".join(parts)).strip("-.")[:80] or "run"
    path, number = Path("runs", name), 1
    while path.exists():
        number += 1
        path = Path("runs", f"{name}.{number}")
    return path


def _card(adapted: Adapted, run: Path) -> DataCard:
    if adapted.card is None:
        raise CheckpointError(f"the model in {run} was not trained from files; use it from Python: calida.load")
    return adapted.card


def _command_line() -> str:
    return shlex.join(["calida", *sys.argv[1:]])
