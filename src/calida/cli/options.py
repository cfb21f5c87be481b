"""Options that several commands share, and the reading of their values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calida.errors import InputError
from calida.files import parse_toml
from calida.workers import Workers as WorkersOfParts

if TYPE_CHECKING:
    from calida.data import Loading

# Names to choose from, for help texts: what they name takes seconds to import. A test compares both.
MODELS = ("network", "mlp", "logistic", "forest", "hgb", "auto")
CALIBRATIONS = ("none", "source", "transcal", "pseudocal", "matched")
SCORES = ("confidence", "entropy", "mutual-information", "sum")

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel="Output")]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json", help="Print the result as JSON on standard output, and nothing else.", rich_help_panel="Output"
    ),
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda or cuda:N; by default the GPU where there is one.", rich_help_panel="Run")
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The label column of a table; never used as a feature.", rich_help_panel="Data"
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="Only this column of a table is a feature; repeatable.", rich_help_panel="Data"
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="This column of a table is no feature; repeatable.", rich_help_panel="Data"),
]
Id = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that names a table's rows in predictions; no feature.",
        rich_help_panel="Data",
    ),
]
Text = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column of texts, in a table or JSON lines.", rich_help_panel="Data"),
]
TargetLabels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|inside",
        help="True target labels, for oracle figures only: a file, or 'inside' for those the target data carry.",
        rich_help_panel="Data",
    ),
]
SkipUnreadable = Annotated[
    bool, typer.Option("--skip-unreadable", help="Go on without images that cannot be read.", rich_help_panel="Data")
]
OnNewScale = Annotated[
    str,
    typer.Option(
        "--on-mismatch",
        metavar="stop|ignore",
        help="If new samples seem to be in another scale than the run's: stop, or take them as they are.",
        rich_help_panel="Data",
    ),
]
MaxPixels = Annotated[
    int | None,
    typer.Option(min=1, help="Images with more pixels cannot be read; 100 million by default.", rich_help_panel="Data"),
]
Workers = Annotated[int | None, typer.Option(min=0, help="Processes that decode image files.", rich_help_panel="Data")]

Engine = Annotated[
    str | None,
    typer.Option(
        metavar="local|dask",
        help="Work in parts, into a folder of Parquet files: by processes of this machine, or a Dask cluster.",
        rich_help_panel="Run",
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The Dask scheduler's address.", rich_help_panel="Run")
]
RowsPerPart = Annotated[
    int | None,
    typer.Option(min=1, help="Samples a part; 100,000 rows or 5,000 images by default.", rich_help_panel="Run"),
]


def workers_of(engine: str | None, scheduler: str | None, device: str | None) -> WorkersOfParts | None:
    """Who works in parts; None where one process does all."""
    if engine is None:
        if scheduler is not None:
            raise InputError("--scheduler belongs to --engine dask")
        return None
    workers = WorkersOfParts(engine, scheduler=scheduler, device=device)  # type: ignore[arg-type]
    workers.check()
    return workers


def loading_of(skip_unreadable: bool, max_pixels: int | None, workers: int | None = None) -> Loading:
    """How files are to be read."""
    from calida.data import Loading

    given = {"max_pixels": max_pixels, "workers": workers}
    known: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return Loading(skip_unreadable=skip_unreadable, **known)


def checks_scale(on_mismatch: str) -> bool:
    """Whether new samples of another scale are refused."""
    if on_mismatch not in ("stop", "ignore"):
        raise InputError(f"--on-mismatch is stop or ignore here, not {on_mismatch!r}")
    return on_mismatch == "stop"


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """`key=value` pairs; values are numbers, true, false, lists or words."""
    settings = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set takes key=value, not {pair!r}")
        settings[key.strip()] = _value(text.strip())
    return settings


def _value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
