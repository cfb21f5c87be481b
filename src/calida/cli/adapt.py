"""`calida adapt`: a whole run, with progress, that can be interrupted."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calida.cli.options import (
    CALIBRATIONS,
    MODELS,
    AsJson,
    Columns,
    Device,
    Drop,
    Id,
    Label,
    MaxPixels,
    Quiet,
    SkipUnreadable,
    TargetLabels,
    Text,
    Workers,
    parse_settings,
)
from calida.cli.screen import Screen
from calida.cli.stopping import terminable
from calida.errors import InputError, LostProcessError
from calida.launch import is_first, is_restarted

if TYPE_CHECKING:
    from calida.runs import Metrics, RunConfig


def adapt(
    source: Annotated[
        str | None,
        typer.Option(
            help="Labeled data: class folders, a list, .npz, a table, or a named set such as mnist:2000.",
            rich_help_panel="Data",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Unlabeled data of the same kinds; folder names are not read as labels.", rich_help_panel="Data"
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="The method; if left out, the data decide; auto tries several; see: recipes.",
            rich_help_panel="Method",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A first look in about a fifth of the time.", rich_help_panel="Method"),
    ] = False,
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
    columns: Columns = None,
    drop: Drop = None,
    id: Id = None,
    text: Text = None,
    target_labels: TargetLabels = None,
    seed: Annotated[
        int | None, typer.Option(help="Makes a run repeatable; 0 by default.", rich_help_panel="Method")
    ] = None,
    device: Device = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="auto|fp32|bf16",
            help="Of the network's layers; auto takes what a half-second trial finds faster.",
            rich_help_panel="Run",
        ),
    ] = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the network by torch.compile, on a GPU.", rich_help_panel="Run")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="auto|none|NAME",
            help="A pre-trained network for photographs or texts; auto takes what is installed; see: calida encoders.",
            rich_help_panel="Method",
        ),
    ] = None,
    finetune: Annotated[
        bool,
        typer.Option(
            "--finetune",
            help="After adapting on an encoder's features, train the last blocks of its network as well.",
            rich_help_panel="Method",
        ),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(MODELS),
            help="The kind of classifier; a network by default, the others for tables.",
            rich_help_panel="Method",
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="dtn, lenet, compact, conv3, conv4, mlp, tabular, linear or an encoder; by the data if left out.",
            rich_help_panel="Method",
        ),
    ] = None,
    backbone_weights: Annotated[
        Path | None,
        typer.Option(help="A safetensors file that the backbone begins with.", rich_help_panel="Method"),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Begin with the source-only classifier of this run.", rich_help_panel="Method"
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Height and width that images are brought to.", rich_help_panel="Data")
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="balanced", help="Give every class of the source the same weight.", rich_help_panel="Method"
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(help="Share of source held out to look at; 0.1 by default.", rich_help_panel="Method"),
    ] = None,
    choice: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Which round to keep: default, last, or a validator such as im; see docs/concepts/choosing.md.",
            rich_help_panel="Trust",
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help=f"How probabilities are calibrated: {', '.join(CALIBRATIONS)}; by the kind of data if left out.",
            rich_help_panel="Trust",
        ),
    ] = None,
    no_guard: Annotated[
        bool,
        typer.Option(
            "--no-guard",
            help="Neither stop a run that collapses nor fall back to the source-only classifier.",
            rich_help_panel="Trust",
        ),
    ] = False,
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
    max_pixels: MaxPixels = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard logs into the run folder.", rich_help_panel="Run")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Adapt a classifier from labeled source data to unlabeled target data.

    Example: calida adapt --source photos --target camera
    """
    from calida.runs import RunConfig, RunFolder

    if resume and out is None:
        raise InputError("--resume needs the folder of the run: --out RUN")
    if out and is_first() and is_restarted():
        resume = resume or RunFolder(out).holds_run()
    chosen = RunFolder(out).read_config() if resume and out and is_first() else RunConfig()
    chosen = RunConfig.from_toml(config) if config else chosen
    given: dict[str, Any] = {
        "source": source,
        "target": target,
        "recipe": recipe,
        "quick": quick or None,
        "label": label,
        "columns": columns or None,
        "drop": drop or None,
        "id": id,
        "text": text,
        "encoder": encoder,
        "finetune": finetune or None,
        "target_labels": target_labels,
        "seed": seed,
        "device": device,
        "precision": precision,
        "compile": compile or None,
        "model": model,
        "backbone": backbone,
        "backbone_weights": None if backbone_weights is None else str(backbone_weights),
        "start": None if start is None else str(start),
        "size": size,
        "class_weight": class_weight,
        "validation": validation,
        "choice": choice,
        "calibration": calibration,
        "guard": False if no_guard else None,
        "on_mismatch": on_mismatch,
        "skip_unreadable": skip_unreadable or None,
        "memory": memory,
        "workers": workers,
        "max_pixels": max_pixels,
        "tensorboard": tensorboard or None,
    }
    if recipe is not None and recipe != chosen.recipe:
        chosen = chosen.changed({"recipe": recipe}).without_settings()  # another recipe's values are not this one's
    chosen = chosen.changed({key: value for key, value in given.items() if value is not None})
    chosen = chosen.changed({"settings": parse_settings(set_ or [])})
    screen = Screen(quiet, as_json)
    folder = out or _new_folder(chosen)
    metrics = run_config(screen, chosen, folder, resume, command_line())
    screen.show_files(folder)
    screen.result({"run": str(folder), **metrics})


def run_config(screen: Screen, config: RunConfig, folder: Path, resume: bool, command: str) -> Metrics:
    """Execute with progress; an interruption leaves a run that can be resumed, and says how."""
    from calida.runs import RunFolder, execute

    with terminable():
        try:
            with screen.progress() as progress:
                _, metrics = execute(config, folder, resume, progress.observe, progress.read, screen.show_data, command)
        except (KeyboardInterrupt, LostProcessError) as stop:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one is enough; torchrun may send more to those left
            lost = next((why for why in (stop, stop.__context__) if isinstance(why, LostProcessError)), None)
            reason = "stopped" if lost is None else str(lost)
            if RunFolder(folder).holds_run():
                screen.error(f"{reason}; go on with: calida adapt --resume --out {shlex.quote(str(folder))}")
            else:
                screen.error(f"{reason} before training began; nothing was written")
            raise typer.Exit(130 if lost is None else 1) from None
    if not is_first():
        raise typer.Exit
    screen.show_result(metrics)
    return metrics


def _new_folder(config: RunConfig) -> Path:
    """A folder under runs that is not there yet, named after the data and the recipe."""
    parts = (Path(config.source).name, Path(config.target).name, config.recipe, str(config.seed))
    name = re.sub(r"[^\w.-]+", "-", "-".join(filter(None, parts))).strip("-.")[:80] or "run"
    path, number = Path("runs", name), 1
    while path.exists():
        number += 1
        path = Path("runs", f"{name}.{number}")
    return path


def command_line() -> str:
    """The command as it was given."""
    return shlex.join(["calida", *sys.argv[1:]])
