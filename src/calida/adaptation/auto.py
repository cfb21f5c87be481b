"""Several recipes on the same data, and the one that label-free validators prefer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from calida.adaptation.adapted import Adapted
from calida.adaptation.task import Observe, Task
from calida.recipes import Recipe
from calida.training import Record, has_checkpoint
from calida.validation import Candidate, agreement_with_others, choose_candidate, returned_record


def try_recipes(task: Task, recipes: Sequence[Recipe], folder: Path | None, observe: Observe, resume: bool) -> Adapted:
    """Run each recipe in a folder of its own; return the chosen result, with what validators make of all of them."""
    results: dict[str, Adapted] = {}
    for recipe in recipes:
        behind = [record for result in results.values() for record in result.history]

        def tell(record: Record, name: str = recipe.name, behind: list[Record] = behind) -> None:
            told: dict[str, Any] = {**record, "recipe": name}
            if record["kind"] == "start":
                told["history"] = behind + [{**past, "recipe": name} for past in record["history"]]
            observe(told)

        place = None if folder is None else folder / recipe.name
        result = task.train(recipe, place, tell, resume and place is not None and has_checkpoint(place))
        results[recipe.name] = replace(result, history=[{**past, "recipe": recipe.name} for past in result.history])
    candidates = {
        name: Candidate(returned_record(result.history)["validators"], _target_log_probs(result))
        for name, result in results.items()
    }
    selection = choose_candidate(candidates)
    chosen = results[selection.chosen]
    assert chosen.trust is not None
    trust = replace(
        chosen.trust,
        reason=f"Of {len(results)} recipes, {selection.reason} {chosen.trust.reason}",
        accuracy=chosen.trust.accuracy.reaching(agreement_with_others(selection.chosen, candidates)),
        candidates=selection.table,
    )
    return replace(chosen, trust=trust)


def _target_log_probs(result: Adapted) -> Tensor:
    """Calibrated, of the target that it was trained for."""
    assert result.predictions is not None
    return result.predictions.target.tempered(result.temperature).log_probs
