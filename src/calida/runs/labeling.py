"""A few target samples for a person to label, as files; and what a run's accuracy is by the labels that come back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calida.adaptation import load
from calida.data import Collection, Texts, class_indices, decode_image, read_cells, read_collection, refuse_twice
from calida.errors import CheckpointError, InputError
from calida.estimation import (
    LABEL_LEVEL,
    Estimate,
    LabelDesign,
    compare_estimates,
    draw_design,
    estimate_from_labels,
)
from calida.files import make_folder, write_atomically
from calida.json_values import check_seal, read_json, sealed
from calida.report import SheetItem, picture, render_sheet
from calida.runs.config import RunConfig
from calida.runs.data import domain_in_words, domain_seeds
from calida.runs.execution import Metrics, publish
from calida.runs.folder import RunFolder
from calida.seeds import Seeds
from calida.spreadsheets import plain_text, write_csv

FOLDER, _SHEET, _LABELS, _DESIGN = "label", "sheet.html", "labels.csv", "design.json"
_FORMAT = 2
_LETTERS = 600  # of a text that are shown
_PIXELS = 224  # of a thumbnail's longer side
_COLUMNS = 40  # of a table that are shown


def no_class_mark(classes: Container[str]) -> str:
    """The label of a sample of no class that the source has: "(none)", or more brackets where that is a class."""
    mark = "(none)"
    while mark in classes:
        mark = f"({mark})"
    return mark


class LabelFiles(NamedTuple):
    """What `calida label` writes: a page to look at, a file to fill in, and how the samples were drawn."""

    sheet: Path
    labels: Path
    design: Path


def write_label_files(path: Path, budget: int, out: Path | None = None, seed: int = 0) -> tuple[LabelFiles, int]:
    """Draw samples of a finished run's target to be labeled; give the files and how many samples are in them.

    Labels that were filled in already are never replaced.
    """
    config, metrics, predictions, _, (named_by, names) = RunFolder(path).read_finished()
    named_by = "name" if named_by in ("number", "label") else named_by  # which are columns of the file's own
    place = path / FOLDER if out is None else out
    files = LabelFiles(place / _SHEET, place / _LABELS, place / _DESIGN)
    if place.is_file():
        raise InputError(f"{place} is a file; the sheet needs a folder", "out")
    if files.labels.exists() and any(word for *_, word in _read_answers(files.labels)):
        raise InputError(f"{files.labels} has labels in it already, which are not replaced: name another folder", "out")
    others = [file for file in sorted(place.glob("*.csv")) if file != files.labels]
    if files.design.exists() and others:
        raise InputError(f"{others[0]} may have labels of the last draw, which a new one would lose", "out")
    known, sure = predictions.right, torch.from_numpy(predictions.after.target).double().amax(-1).exp()
    right = torch.from_numpy(known).double() if len(known) else sure
    design = draw_design(right, budget, Seeds(seed).at("label").generator("design"))
    items = _show(config, path, names, design.rows.tolist())
    record = {
        "format": _FORMAT,
        "target": config.target,
        "names": _digest(names),
        "seed": seed,
        **design.to_json(),
        "probabilities": design.probabilities.tolist(),
    }
    make_folder(place)
    key = f"{record['names']} {seed} {len(items)}"
    page = render_sheet(items, metrics["classes"], no_class_mark(metrics["classes"]), named_by, config.target, key)
    write_atomically(files.design, (json.dumps(sealed(record)) + "\n").encode())
    write_atomically(files.sheet, page.encode())
    numbers, names = [item.number for item in items], [item.name for item in items]
    write_csv(files.labels, [("number", numbers), (named_by, names), ("label", [""] * len(items))])
    return files, len(items)


def evaluate_with_labels(path: Path, labels: Path) -> Metrics:
    """A run's accuracy by labels of a few samples; it is added to the run's metrics and its report.

    The samples may have been drawn for another run on the same target: how they were drawn is what counts.
    """
    folder = RunFolder(path)
    config, metrics, predictions, _, named = folder.read_finished()
    if not labels.is_file():
        raise InputError(f"there is no file {labels}")
    design = _read_design(path, labels, config, named[1])
    written = _read_answers(labels)
    answers = dict(_checked([(number, word) for number, _, word in written], len(design.rows), labels))
    given = sorted(number for number, word in answers.items() if word)
    if not given:
        raise InputError(f"{labels} has no label in it yet: fill in the column label")
    truth = _class_numbers([answers[number] for number in given], metrics["classes"], str(labels))
    _check_names(written, [named[1][row] for row in design.rows.tolist()], set(named[1]), labels)
    places = torch.tensor(given) - 1
    rows, strata = design.rows[places].numpy(), design.strata[places]
    found = {
        name: _accuracy(log_probs[rows], truth, strata, design.sizes)
        for name, log_probs in (("source_only", predictions.before.target), ("adapted", predictions.after.target))
    }
    said = Estimate(**{end: metrics["trust"]["accuracy"][end] for end in ("value", "low", "high")})
    labeled: dict[str, Any] = {
        "labels": len(given),
        "drawn": len(design.rows),
        "of_no_class": int((truth < 0).sum()),
        "left_empty": given[-1] - len(given),  # above the last label
        "level": LABEL_LEVEL,
        **{name: asdict(estimate) for name, estimate in found.items()},
        "verdict": compare_estimates(said, found["adapted"]),
    }
    return publish(folder, predictions, {**metrics, "labeled": labeled}, named)


def _accuracy(log_probs: np.ndarray, truth: Tensor, strata: Tensor, sizes: Tensor) -> Estimate:
    return estimate_from_labels(torch.from_numpy(log_probs.argmax(-1)) == truth, strata, sizes)


def _show(config: RunConfig, path: Path, names: Sequence[str], rows: Sequence[int]) -> list[SheetItem]:
    """What there is to see of these rows, as the user has them, not as the network does."""
    preparation = load(path, "cpu").preparation
    table = None if preparation is None else preparation.table
    target = read_collection(config.target, domain_seeds(config, "target"), False, config.column_choice, table)
    if len(target) != len(names):  # images that could not be read have no prediction
        places = {name: place for place, name in enumerate(target.names)}
        target = target.take([places[name] for name in names if name in places])
    if list(target.names) != list(names):
        raise InputError(f"{domain_in_words(config, 'target')} has other samples than when it was run; run it again")
    shown = target.take(rows)
    return [SheetItem(place + 1, names[row], *_seen(shown, place)) for place, row in enumerate(rows)]


def _seen(collection: Collection, place: int) -> tuple[str, list[tuple[str, str]]]:
    """A thumbnail, the beginning of a text, or the values of a row."""
    samples = collection.samples
    if isinstance(samples, Texts):
        return "", [("text", samples[place][:_LETTERS])]
    if not isinstance(samples, Tensor):
        return picture(decode_image(samples[place], 3).numpy(), _PIXELS), []
    if collection.is_images:
        return picture(_as_bytes(samples, place), _PIXELS), []
    if collection.frame is not None:
        values = collection.frame.row(place, named=True).items()
        return "", [(name, "" if value is None else str(value)) for name, value in list(values)[:_COLUMNS]]
    return "", [(str(column), f"{value:.6g}") for column, value in enumerate(samples[place, :_COLUMNS].tolist())]


def _as_bytes(images: Tensor, place: int) -> np.ndarray:
    """One image as bytes; numbers of another kind from the least to the greatest of all."""
    if images.dtype == torch.uint8:
        return images[place].numpy()
    low, high = images.amin(), images.amax()
    return ((images[place] - low) / (high - low).clamp(min=1e-12) * 255).byte().numpy()


def _read_answers(labels: Path) -> list[tuple[str, str, str]]:
    """Number, name and label of every row; the number is what counts, since programs change names."""
    header, *rows = read_cells(labels) or [[]]
    columns = [cell.strip().lower() for cell in header]
    refuse_twice([name for name in columns if name in ("number", "label")], str(labels))
    absent = [name for name in ("number", "label") if name not in columns]
    if absent:
        raise InputError(f"{labels} has no column {absent[0]!r}; it is to be a file that calida label wrote")
    number, label = columns.index("number"), columns.index("label")
    name = next((place for place in range(len(columns)) if place not in (number, label)), len(columns))
    return [tuple(row[place].strip() if place < len(row) else "" for place in (number, name, label)) for row in rows]  # type: ignore[misc]


def _check_names(
    written: Sequence[tuple[str, str, str]], drawn: Sequence[str], known: Container[str], labels: Path
) -> None:
    """Refuse labels of samples that were drawn at another time: names of others stand beside the numbers."""
    for number, name, word in written:
        own = drawn[int(number.removesuffix(".0")) - 1]
        if word and name != own and plain_text(name) != own and plain_text(name) in known:
            raise InputError(
                f"{labels} is of another draw: number {number} is {own!r} here, and {name!r} in the file. Evaluate it "
                f"beside the {_DESIGN} that was written with it"
            )


def _checked(answers: Sequence[tuple[str, str]], count: int, labels: Path) -> list[tuple[int, str]]:
    """Numbers as such, each of a sample that was drawn, and none of them twice with different labels."""
    checked: dict[int, str] = {}
    for text, word in answers:
        number = int(text.removesuffix(".0")) if text.removesuffix(".0").isdecimal() else 0
        if not 1 <= number <= count:
            raise InputError(f"{labels} has a row with the number {text!r}; numbers are 1 to {count}")
        if checked.setdefault(number, word) != word:
            raise InputError(f"{labels} has two labels for number {number}: {checked[number]!r} and {word!r}")
    return list(checked.items())


def _class_numbers(words: Sequence[str], classes: Sequence[str], origin: str) -> Tensor:
    """Labels as numbers of classes, [m]; -1 for those of none. Spreadsheets write 01 as 1, and 1 perhaps as 1.0."""
    values: dict[float, list[str]] = {}
    for name in classes:
        if (value := _number(name)) is not None:
            values.setdefault(value, []).append(name)

    def meant(word: str) -> str:
        if word in classes:
            return word
        word = plain_text(word).removeprefix("'")
        alike = [] if (value := _number(word)) is None else values.get(value, [])
        return alike[0] if word not in classes and len(alike) == 1 else word

    no_class = no_class_mark(classes)
    known = [place for place, word in enumerate(words) if word != no_class]
    truth = torch.full((len(words),), -1)
    if known:
        try:
            truth[known] = class_indices([meant(words[place]) for place in known], classes, origin)
        except InputError as error:
            raise InputError(f"{error}; for a sample of another class write {no_class}") from None
    return truth


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _read_design(path: Path, labels: Path, config: RunConfig, names: Sequence[str]) -> LabelDesign:
    """How the samples of a file of labels were drawn: from beside that file, or from the run."""
    files = [place / _DESIGN for place in (labels.parent, path / FOLDER)]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        raise InputError(f"there is no {_DESIGN} beside {labels}, which says how its samples were drawn")
    values = check_seal(read_json(file), str(file))
    try:
        if values["format"] != _FORMAT:
            raise ValueError("it is of another version")
        design, drawn_from = LabelDesign.from_json(values), (values["target"], values["names"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, OverflowError) as error:
        raise CheckpointError(f"{file} is not what calida label wrote: {error}") from None
    if drawn_from != (config.target, _digest(names)) or int(design.sizes.sum()) != len(names):
        raise InputError(f"the samples of {labels} were drawn from another target than that of {path}")
    if bool(((design.rows < 0) | (design.rows >= len(names))).any()):
        raise CheckpointError(f"{file} is not what calida label wrote: it has rows that the target has not")
    return design


def _digest(names: Sequence[str]) -> str:
    return hashlib.blake2b(json.dumps(list(names)).encode(), digest_size=16).hexdigest()
