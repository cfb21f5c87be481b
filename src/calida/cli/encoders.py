"""`calida encoders`, `calida embed` and `calida cache`: pre-trained networks, and what they have computed."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Annotated

import typer

from calida.allocator import keep_freed_memory
from calida.cli.options import (
    AsJson,
    Device,
    Engine,
    MaxPixels,
    Quiet,
    RowsPerPart,
    Scheduler,
    SkipUnreadable,
    Text,
    Workers,
    loading_of,
    workers_of,
)
from calida.cli.parts import embed_parts
from calida.cli.screen import Screen
from calida.cli.stopping import terminable
from calida.errors import InputError, MissingExtraError
from calida.files import write_atomically
from calida.terminal import plain, table_of

cache_app = typer.Typer(no_args_is_help=True, help="Embeddings that were computed before.")
_HUBS = {
    "timm:NAME": ("any model of timm", "timm"),
    "torchvision:NAME": ("any classifier of torchvision", "torchvision"),
    "hf:REPO": ("image and text models of Hugging Face", "transformers"),
}


def encoders(as_json: AsJson = False) -> None:
    """List the pre-trained networks by name, and which are installed."""
    from calida.encoders import PACKAGED

    screen = Screen(as_json=as_json)
    table = table_of("encoder", "reads", "what it is", "installed")
    for name, one in PACKAGED.items():
        state = "yes" if one.is_installed() else one.source.install
        table.add_row(name, one.reads, one.summary, plain(state))
    for name, (words, extra) in _HUBS.items():
        table.add_row(name, "", words, plain(f"pip install 'calida[{extra}]'; weights are fetched when first used"))
    screen.show_list(table)
    screen.result({name: {"reads": one.reads, "installed": one.is_installed()} for name, one in PACKAGED.items()})


def embed(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Images or texts: anything that --source takes.")],
    encoder: Annotated[str, typer.Option(metavar="auto|NAME", help="The encoder; see: calida encoders.")] = "auto",
    text: Text = None,
    size: Annotated[int | None, typer.Option(min=32, max=1024, help="Pixels a side of images.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write names and features to this .npz file, for other programs; with --engine a folder."
        ),
    ] = None,
    skip_unreadable: SkipUnreadable = False,
    max_pixels: MaxPixels = None,
    workers: Workers = None,
    engine: Engine = None,
    scheduler: Scheduler = None,
    rows_per_part: RowsPerPart = None,
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compute embeddings now, so that later runs on the same samples start at once.

    What is known is not computed again; stopped, the same command goes on where it was.
    """
    import numpy as np

    from calida.adaptation.arguments import choose_device
    from calida.data import ColumnChoice, read_collection
    from calida.encoders import (
        EmbeddingCache,
        embedding_precision,
        install_command,
        installed_encoders,
        load_encoder,
    )
    from calida.encoders import embed as compute
    from calida.seeds import Seeds

    screen = Screen(quiet, as_json)
    keep_freed_memory()
    if (cluster := workers_of(engine, scheduler, device)) is not None:
        if out is None or encoder == "auto":
            raise InputError("--engine needs the name of an --encoder, and a folder for the parts: --out FOLDER")
        options = {"size": size, "text": text, "loading": loading_of(skip_unreadable, max_pixels, 0)}
        embed_parts(screen, source, out, cluster, load_encoder(encoder, size).name, rows_per_part, options)
        return
    collection = read_collection(source, Seeds(0), False, ColumnChoice(text=text))
    if collection.kind == "feature vectors":
        raise InputError(f"{source} holds feature vectors, which need no encoder")
    if encoder == "auto":
        names = installed_encoders(collection.kind)  # type: ignore[arg-type]
        if not names:
            raise MissingExtraError(f"no encoder is installed: {install_command(collection.kind)}")  # type: ignore[arg-type]
        encoder = names[0]
    network, where = load_encoder(encoder, size), choose_device(device)
    loading = loading_of(skip_unreadable, max_pixels, workers)
    begun = time.perf_counter()
    with terminable(), screen.progress() as progress:
        try:
            found = compute(
                network,
                collection.samples,
                loading,
                where,
                lambda done, total: progress.read("embedding samples", done, total),
            )
        except KeyboardInterrupt:
            screen.error("stopped; what was computed is kept, and the same command goes on from there")
            raise typer.Exit(130) from None
    seconds = time.perf_counter() - begun
    if out is not None:
        content = io.BytesIO()
        np.savez(content, X=found.features.numpy(), names=np.array([collection.names[row] for row in found.rows]))
        write_atomically(out, content.getvalue())
    folder = EmbeddingCache(network, embedding_precision(where)).folder
    screen.say(
        f"{len(found.rows):,} {collection.kind} of {source}: {network.num_features:,} features each by {encoder}, "
        f"{seconds:.1f} s"
    )
    skipped = len(collection) - len(found.rows)
    if skipped:
        screen.say(f"{skipped:,} unreadable images were skipped")
    screen.say(f"kept in {folder}")
    shown = {"encoder": encoder, "samples": len(found.rows), "skipped": skipped, "features": network.num_features}
    screen.result({**shown, "seconds": round(seconds, 3), "folder": str(folder)})


@cache_app.command("list")
def list_(as_json: AsJson = False) -> None:
    """Show what is kept, by encoder."""
    from calida.encoders import cache_folder, list_cache

    screen, kept = Screen(as_json=as_json), list_cache()
    title = plain(f"in {cache_folder()} (CALIDA_CACHE names another folder)")
    table = table_of("encoder", "weights", "samples", "size", title=title, title_justify="left")
    for one in kept:
        table.add_row(plain(one.name), plain(one.weights[:12]), f"{one.samples:,}", f"{one.size / 1e6:,.1f} MB")
    screen.show_list(table)
    screen.result([{**one._asdict(), "folder": str(one.folder)} for one in kept])


@cache_app.command()
def clear(
    encoder: Annotated[str | None, typer.Argument(help="Only what this encoder computed.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Remove what is kept; it is computed again when it is needed."""
    from calida.encoders import clear_cache, list_cache

    screen = Screen(quiet, as_json)
    if encoder is not None and encoder not in {one.name for one in list_cache()}:
        raise InputError(f"nothing is kept of an encoder {encoder!r}; see: calida cache list")
    gone = clear_cache(encoder)
    screen.say(
        f"{sum(one.samples for one in gone):,} embeddings removed, {sum(one.size for one in gone) / 1e6:,.1f} MB"
    )
    screen.result({"removed": sum(one.samples for one in gone)})
