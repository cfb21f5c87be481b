"""Real shifts as values: which rows of which file are the source, which the target."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from calida.data import INSIDE
from calida.files import write_atomically
from calida.runs import RunConfig, open_data

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
MOST = 3000  # rows of a domain, drawn by the seed


class Shift(NamedTuple):
    """A labeled source and a target whose labels only the measuring sees."""

    source: Floats  # [S, D], or images [S, 1, H, W]
    labels: Integers  # [S]
    target: Floats  # [T, D], or images
    truth: Integers  # [T]; -1 for a class that the source never showed


@dataclass(frozen=True)
class ShiftTask:
    """A shift by name; `data_set` is what is left out together when anything is fitted."""

    name: str
    data_set: str
    load: Callable[[int], Shift]  # by seed
    kind: str = "natural"  # or label shift, unknown classes, nonsense
    options: Mapping[str, Any] = field(default_factory=dict)  # what `calida adapt` would choose by the files themselves


def folder() -> Path:
    """Where the data lie: `CALIDA_DATA`, or the shared folder beside a clone."""
    return Path(os.environ.get("CALIDA_DATA", "../shared/data"))


@lru_cache(maxsize=16)
def _arrays(name: str) -> dict[str, NDArray[Any]]:
    with np.load(folder() / name, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def draw(rows: Integers, seed: int, most: int = MOST) -> Integers:
    """At most so many of these rows, in their order."""
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).permutation(rows)[:most])


def shift_of(x: Floats, y: Integers, source: Integers, target: Integers, seed: int) -> Shift:
    """Rows of one table as two domains, of the classes that the source shows often enough to be learned."""
    counts = np.bincount(y[source], minlength=int(y.max()) + 1)
    known = np.flatnonzero(counts >= 5)
    place = np.full(len(counts), -1)
    place[known] = np.arange(len(known))
    source, target = (rows[place[y[rows]] >= 0] for rows in (source, target))
    source, target = draw(source, seed), draw(target, seed)
    return Shift(x[source], place[y[source]], x[target], place[y[target]])


def _table(file: str) -> tuple[Floats, Integers, NDArray[np.generic]]:
    arrays = _arrays(f"shifts/{file}.npz")
    x, y = arrays["X"].astype(np.float32), arrays["y"].astype(np.int64)
    return x, y, arrays.get("domain", np.arange(len(y)))


def _between(file: str, source: Sequence[str | int], target: Sequence[str | int]) -> Callable[[int], Shift]:
    """From rows whose domain is one of these to rows whose domain is one of those."""

    def load(seed: int) -> Shift:
        x, y, domain = _table(file)
        first, second = (np.isin(domain, np.array(some)) for some in (source, target))
        return shift_of(fill_missing(x, first), y, np.flatnonzero(first), np.flatnonzero(second), seed)

    return load


def fill_missing(x: Floats, source: NDArray[np.bool_]) -> Floats:
    """The source's medians where a value is missing, and a column that says so; 0 where the source has none at all."""
    missing = np.isnan(x)
    if not missing.any():
        return x
    seen = ~missing[source].all(0)
    medians = np.zeros(x.shape[1], dtype=np.float32)
    medians[seen] = np.nanmedian(x[source][:, seen], 0)
    said = missing[:, missing.any(0)].astype(np.float32)
    return np.concatenate([np.where(missing, medians, x), said], 1)


def gas() -> list[ShiftTask]:
    """Chemical sensors: from each batch to the next, and from early ones to later ones."""
    batches = (1, 2, 3, 4, 5, 6, 8, 9)
    pairs = {*pairwise(batches), (1, 3), (1, 6), (2, 6), (2, 9), (3, 8), (3, 9), (6, 9)}
    return [ShiftTask(f"gas {a} to {b}", "gas", _between("gas_drift_8batches", [a], [b])) for a, b in sorted(pairs)]


def heart() -> list[ShiftTask]:
    """Heart disease: from every hospital to every other."""
    pairs = permutations(("cleveland", "hungarian", "switzerland", "va"), 2)
    return [ShiftTask(f"heart {a} to {b}", "heart", _between("heart_disease_4hospitals", [a], [b])) for a, b in pairs]


def wisdm() -> list[ShiftTask]:
    """Activities: six groups of users, each group to the next two."""
    groups = [range(1 + 6 * group, 7 + 6 * group) for group in range(6)]
    pairs = [(a, b % 6) for a in range(6) for b in (a + 1, a + 2)]
    return [ShiftTask(f"wisdm {a} to {b}", "wisdm", _between("wisdm_ar_users", groups[a], groups[b])) for a, b in pairs]


def mushrooms() -> list[ShiftTask]:
    """Edible or not, by the shape of the stalk."""
    pairs = permutations(("enlarging", "tapering"))
    return [ShiftTask(f"mushrooms {a} to {b}", "mushrooms", _between("mushrooms_stalk", [a], [b])) for a, b in pairs]


def electricity() -> list[ShiftTask]:
    """Prices up or down: six periods, each to the next and the first to the last; the date is no column."""

    def load(a: int, b: int) -> Callable[[int], Shift]:
        def inner(seed: int) -> Shift:
            x, y, domain = _table("electricity_nsw")
            period = domain * 6 // len(domain)
            return shift_of(x[:, 1:], y, np.flatnonzero(period == a), np.flatnonzero(period == b), seed)

        return inner

    return [
        ShiftTask(f"electricity {a} to {b}", "electricity", load(a, b))
        for a, b in ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5))
    ]


def _digit_images(name: str) -> tuple[Floats, Integers]:
    """All images of a set in 0..1, cropped to the digit's frame."""
    if name == "uci":
        from sklearn.datasets import load_digits

        found = load_digits()
        return (found.images / 16).astype(np.float32), found.target.astype(np.int64)
    arrays = _arrays(f"{name}.npz")
    x = (arrays["x_train"] / 255).astype(np.float32)
    return x[:, 4:24, 4:24] if x.shape[1] == 28 else x, arrays["y_train"].astype(np.int64)


def _resized(x: Floats, side: int) -> Floats:
    images = torch.from_numpy(x)[:, None]
    return torch.nn.functional.interpolate(images, size=(side, side), mode="bilinear", antialias=True).numpy()


def _digit_pair(first: str, second: str, side: int, flat: bool) -> Callable[[int], Shift]:
    def load(seed: int) -> Shift:
        (x, y), (z, w) = _digit_images(first), _digit_images(second)
        rows, others = (draw(np.arange(len(labels)), seed, 2000) for labels in (y, w))
        source, target = _resized(x[rows], side), _resized(z[others], side)
        if flat:
            source, target = (part.reshape(len(part), -1) for part in (source, target))
        return Shift(source, y[rows], target, w[others])

    return load


def digits() -> list[ShiftTask]:
    """Small images as tables of pixels."""
    pairs = [
        ("mnist", "usps", 16),
        ("usps", "mnist", 16),
        *((a, b, 8) for a, b in permutations(("mnist", "usps", "uci"), 2) if "uci" in (a, b)),
    ]
    return [ShiftTask(f"digits {a} to {b}", "digits", _digit_pair(a, b, side, True)) for a, b, side in pairs]


def images() -> list[ShiftTask]:
    """Digits as the images that they are."""
    pairs = permutations(("mnist", "usps", "uci"), 2)
    return [ShiftTask(f"images {a} to {b}", "images", _digit_pair(a, b, 20, False)) for a, b in pairs]


def embedded() -> list[ShiftTask]:
    """Photographs and paintings (PACS), and reviews of three kinds of products, as encoders of the package see them."""
    photos = permutations(("photo", "art_painting"))
    reviews = permutations(("books", "dvd", "electronics"), 2)
    return [
        *(_embedded(f"pacs {a} to {b}", "pacs", lambda name: str(folder() / "pacs" / name), a, b) for a, b in photos),
        *(_embedded(f"reviews {a} to {b}", "reviews", _reviews_of, a, b) for a, b in reviews),
    ]


def _embedded(name: str, data_set: str, place: Callable[[str], str], source: str, target: str) -> ShiftTask:
    """What `calida adapt` makes of two places: features of the preferred encoder, and the recipe for them."""

    def load(seed: int) -> Shift:
        texts = {"text": "text", "label": "label"} if data_set == "reviews" else {}
        given = {"source": place(source), "target": place(target), "target_labels": INSIDE, **texts}
        data = open_data(RunConfig().changed(given))
        assert isinstance(data.source.samples, torch.Tensor)
        assert isinstance(data.target.samples, torch.Tensor)
        assert data.truth is not None
        x, z = data.source.samples.numpy(), data.target.samples.numpy()
        return Shift(x, data.labels.numpy(), z, data.truth.numpy())

    return ShiftTask(name, data_set, load, options={"recipe": "features", "backbone": "linear"})


def _reviews_of(kind: str) -> str:
    """A file with the reviews of one kind of products alone."""
    place = Path(tempfile.gettempdir()) / f"calida-reviews-{kind}.jsonl"
    with gzip.open(folder() / "shifts" / "amazon_reviews_text.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [line for line in file if json.loads(line)["domain"] == kind]
    write_atomically(place, "".join(lines).encode())
    return str(place)


def natural() -> list[ShiftTask]:
    """Every shift of a table as it was found."""
    return [*gas(), *heart(), *wisdm(), *mushrooms(), *electricity(), *digits()]


def _changed(task: ShiftTask, name: str, kind: str, change: Callable[[Shift, np.random.Generator], Shift]) -> ShiftTask:
    def load(seed: int) -> Shift:
        return change(task.load(seed), np.random.default_rng(seed))

    return ShiftTask(f"{task.name}, {name}", task.data_set, load, kind)


def _label_shift(concentration: float) -> Callable[[Shift, np.random.Generator], Shift]:
    """Target classes as frequent as a draw from a Dirichlet distribution says."""

    def change(shift: Shift, generator: np.random.Generator) -> Shift:
        classes = int(shift.labels.max()) + 1
        shares = generator.dirichlet(np.full(classes, concentration))
        weights = shares[shift.truth] / np.bincount(shift.truth, minlength=classes)[shift.truth]
        rows = generator.choice(len(shift.truth), len(shift.truth) // 2, p=weights / weights.sum())
        return shift._replace(target=shift.target[rows], truth=shift.truth[rows])

    return change


def _unknown(shift: Shift, generator: np.random.Generator) -> Shift:
    """The source never showed the classes that make up at least a fifth of the target."""
    counts = np.bincount(shift.truth, minlength=int(shift.labels.max()) + 1)
    order = generator.permutation(np.flatnonzero(counts))
    hidden: list[int] = []
    while counts[hidden].sum() < 0.2 * counts.sum():
        hidden.append(int(order[len(hidden)]))
    known = [one for one in range(len(counts)) if one not in hidden]
    place = np.full(len(counts), -1)
    place[known] = np.arange(len(known))
    kept = place[shift.labels] >= 0
    return Shift(shift.source[kept], place[shift.labels[kept]], shift.target, place[shift.truth])


def _permuted(shift: Shift, generator: np.random.Generator) -> Shift:
    return shift._replace(target=shift.target[:, generator.permutation(shift.target.shape[1])])


def _noise(shift: Shift, generator: np.random.Generator) -> Shift:
    mean, spread = shift.source.mean(0), shift.source.std(0)
    return shift._replace(target=generator.normal(mean, spread, shift.target.shape).astype(np.float32))


def _one_class(shift: Shift, generator: np.random.Generator) -> Shift:
    rows = np.flatnonzero(shift.truth == np.bincount(shift.truth).argmax())
    return shift._replace(target=shift.target[rows], truth=shift.truth[rows])


def _alike(shift: Shift, generator: np.random.Generator) -> Shift:
    """Both domains drawn from the source: nothing differs."""
    order = generator.permutation(len(shift.labels))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    return Shift(shift.source[first], shift.labels[first], shift.source[second], shift.labels[second])


def constructed() -> list[ShiftTask]:
    """Label shift, unknown classes, nonsense, and nothing at all, made from the natural ones."""
    every = {task.name: task for task in natural()}
    four = ("gas 3 to 4", "wisdm 0 to 1", "electricity 0 to 1", "digits mnist to usps")
    ten = [name for name in every if name.startswith(("gas", "wisdm", "digits"))][::3][:10]
    five = (
        "gas 6 to 8",
        "wisdm 2 to 3",
        "electricity 1 to 2",
        "digits mnist to uci",
        "mushrooms enlarging to tapering",
    )
    nonsense = [("permuted columns", _permuted), ("noise", _noise)]
    return [
        *(
            _changed(every[name], f"classes by Dirichlet {c:g}", "label shift", _label_shift(c))
            for name in four
            for c in (0.3, 1.0)
        ),
        *(_changed(every[name], "unknown classes", "unknown classes", _unknown) for name in ten),
        *(_changed(every[name], words, "nonsense", change) for name in five for words, change in nonsense),
        *(_changed(every[name], "one class", "one class", _one_class) for name in four),
        *(_changed(every[name], "domains alike", "alike", _alike) for name in (*five, "heart cleveland to hungarian")),
    ]
