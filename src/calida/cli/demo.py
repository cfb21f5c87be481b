"""`calida demo`: a run that needs no data of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calida.cli.adapt import command_line, run_config
from calida.cli.options import AsJson, Quiet
from calida.cli.screen import Screen
from calida.errors import InputError
from calida.launch import is_first

if TYPE_CHECKING:
    from calida.runs import Metrics, RunFolder

# The target's digits have 8 pixels: a frame of 20 loses none of them and trains twice as fast as MNIST's 28.
DEMO: dict[str, Any] = {
    "source": "mnist-5k",
    "target": "uci-digits",
    "target_labels": "inside",
    "size": 20,
}
_IMAGES = "images"  # the folder of generated parts, within the run's


def demo(
    out: Annotated[
        Path | None, typer.Option(help="The folder of the run, runs/demo by default; an earlier demo is replaced.")
    ] = None,
    photos: Annotated[
        bool,
        typer.Option(
            "--photos",
            help="Show a pre-trained encoder, on parts of photographs that packages carry or on your folders.",
        ),
    ] = False,
    source: Annotated[str | None, typer.Option(help="With --photos: your folder of labeled class folders.")] = None,
    target: Annotated[str | None, typer.Option(help="With --photos: your folder of other images.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another run.")] = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Adapt from 5,000 MNIST digits to 1,797 unlabeled UCI digits: real data, no download, no network.

    The UCI labels are used once, at the end, to show what was gained. With --photos, an encoder reads photographs.
    """
    from calida.runs import RunFolder

    screen = Screen(quiet, as_json)
    if (source is None) != (target is None) or (source is not None and not photos):
        raise InputError("--source and --target belong together, and to --photos")
    out = out or Path("runs", "demo-photos" if photos else "demo")
    folder = RunFolder(out)
    metrics = _photographs(screen, folder, source, target, seed) if photos else _digits(screen, folder, seed)
    screen.show_files(out)
    screen.say(f"Look at {folder.report.resolve()} in a browser, then try your own data:")
    screen.say("  calida adapt --source FOLDER_WITH_CLASS_SUBFOLDERS --target FOLDER_OF_IMAGES")
    screen.result({"run": str(out), **metrics})


def _digits(screen: Screen, folder: RunFolder, seed: int) -> Metrics:
    from calida.runs import RunConfig

    screen.say("Labeled: 5,000 MNIST digits of 28 x 28 pixels. Unlabeled: 1,797 UCI digits of 8 x 8 pixels.")
    _replace_earlier(folder, DEMO["source"], DEMO["target"])
    metrics = run_config(screen, RunConfig().changed({**DEMO, "seed": seed}), folder.path, False, command_line())
    before, after = (metrics[side]["oracle"] for side in ("source_only", "adapted"))
    screen.say(
        f"Without a single target label, accuracy on the new digits went from {before['accuracy']:.1%} to "
        f"{after['accuracy']:.1%} and ECE from {before['ece']:.1%} to {after['ece']:.1%}, in "
        f"{metrics['training_seconds']:.0f} s of training."
    )
    return metrics


def _photographs(screen: Screen, folder: RunFolder, source: str | None, target: str | None, seed: int) -> Metrics:
    """A run with an encoder: on folders of the user's, whose target labels nobody asks for, or on made-up ones."""
    from calida.data import write_parts
    from calida.encoders import install_command, installed_encoders
    from calida.errors import MissingExtraError
    from calida.runs import RunConfig
    from calida.seeds import Seeds

    installed = installed_encoders("images")
    if not installed:
        raise MissingExtraError(f"no encoder of photographs is installed: {install_command('images')}")
    config: dict[str, Any] = {"seed": seed, "encoder": installed[0]}
    if source is not None and target is not None:
        _replace_earlier(folder, source, target)
        metrics = run_config(
            screen,
            RunConfig().changed({**config, "source": source, "target": target}),
            folder.path,
            False,
            command_line(),
        )
        screen.say("No target label was read: the accuracy above is an estimate. calida label RUN helps to check it.")
        return metrics
    places = (folder.path / _IMAGES / name for name in ("photographs", "prints"))
    _replace_earlier(folder, *map(str, places))
    first, second = write_parts(folder.path / _IMAGES, Seeds(seed))
    classes = sorted(path.name for path in first.iterdir())
    screen.say(
        f"Labeled: parts of the left halves of {len(classes)} photographs ({', '.join(classes)}). Unlabeled: parts "
        "of their right halves, made to look badly printed."
    )
    given = {"source": str(first), "target": str(second), "target_labels": "inside"}
    metrics = run_config(screen, RunConfig().changed({**config, **given}), folder.path, False, command_line())
    before, after = (metrics[side]["oracle"]["accuracy"] for side in ("source_only", "adapted"))
    screen.say(
        f"By {config['encoder']}, the source-only classifier told {before:.1%} of the prints right, and what "
        f"was returned {after:.1%}. {len(classes)} photographs and a made-up shift show how such a run goes, and not "
        "how well it does on yours: calida demo --photos --source FOLDER --target FOLDER"
    )
    return metrics


def _replace_earlier(folder: RunFolder, source: str, target: str) -> None:
    """Make room for a run on the same data; another one stays."""
    if not is_first() or not folder.holds_run():
        return
    earlier = folder.read_config()
    if [Path(part).name for part in (earlier.source, earlier.target)] != [Path(part).name for part in (source, target)]:
        raise InputError(f"{folder.path} holds another run; choose another --out")
    folder.remove()
