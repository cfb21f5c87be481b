"""A study as a TOML file: recipes x variants x seeds on one pair of domains."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from calida.errors import InputError
from calida.files import read_toml
from calida.recipes import DEFAULT_RECIPE
from calida.runs import RunConfig
from calida.studies.job import Job

_PLAIN = "as it is"  # the variant that changes nothing


@dataclass(frozen=True)
class StudyPlan:
    """Options that all runs share, the recipes and seeds to run, and named settings to run each of them with."""

    name: str
    config: RunConfig
    recipes: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {_PLAIN: {}})

    def jobs(self) -> dict[str, Job]:
        """The runs by a name that says what is special about each."""
        found = {}
        for recipe, (variant, settings), seed in itertools.product(self.recipes, self.variants.items(), self.seeds):
            config = replace(self.config, recipe=recipe, seed=seed, settings={**self.config.settings, **settings})
            words = [recipe, *[variant] * (variant != _PLAIN), f"seed {seed}"]
            found[", ".join(words)] = Job(self.name, config, draw=True)
        return found

    @staticmethod
    def read(path: Path) -> StudyPlan:
        """From a file with a run's options, and `recipes`, `seeds` and `variants` beside them."""
        values = read_toml(path)
        recipes = values.pop("recipes", None) or [values.pop("recipe", DEFAULT_RECIPE)]
        seeds, variants = values.pop("seeds", 1), values.pop("variants", {})
        if not isinstance(recipes, list) or not all(isinstance(name, str) for name in recipes):
            raise InputError(f"{path}: recipes is a list of names, not {recipes!r}")
        if isinstance(seeds, bool) or not isinstance(seeds, int | list) or (isinstance(seeds, int) and seeds < 1):
            raise InputError(f"{path}: seeds is a number of seeds, at least 1, or a list of them, not {seeds!r}")
        if not isinstance(variants, dict) or not all(isinstance(some, dict) for some in variants.values()):
            raise InputError(f"{path}: variants is a table of names, each with a table of settings")
        config = RunConfig.parsed(values, str(path))
        numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
        plan = StudyPlan(path.stem, config, tuple(recipes), numbers, {_PLAIN: {}, **variants})
        for job in plan.jobs().values():
            job.config.check()
        return plan
