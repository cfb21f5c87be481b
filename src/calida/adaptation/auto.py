"""Several recipes on the same data, and the one that label-free validators prefer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from calida.adaptation.adapted import Adapted
from calida.adaptation.task import Task
from calida.recipes import Recipe
from calida.training import Observe, RunEvent, RunStarted
from calida.validation import Candidate, RoundRecord, agreement_with_others, choose_candidate, returned_record


def train_each(
    runs: Mapping[str, tuple[Task, Recipe]], folder: Path | None, observe: Observe, resume: bool
) -> dict[str, Adapted]:
    """Train each in a folder of its own, one after the other; records say by name whose they are."""
    results: dict[str, Adapted] = {}
    for name, (task, recipe) in runs.items():
        behind = [record for result in results.values() for record in result.history]

        def tell(event: RunEvent, name: str = name, behind: list[RoundRecord] = behind) -> None:
            if isinstance(event, RunStarted):
                event = replace(event, history=(*behind, *(replace(past, recipe=name) for past in event.history)))
            observe(replace(event, recipe=name))

        place = None if folder is None else folder / name
        result = task.train(recipe, place, tell, resume)
        results[name] = replace(result, history=[replace(past, recipe=name) for past in result.history])
    return results


def try_recipes(task: Task, recipes: Sequence[Recipe], folder: Path | None, observe: Observe, resume: bool) -> Adapted:
    """Run each recipe; return the chosen result, with what validators make of all of them."""
    results = train_each({recipe.name: (task, recipe) for recipe in recipes}, folder, observe, resume)
    candidates = {
        name: Candidate(returned_record(result.history).validators, _target_log_probs(result))
        for name, result in results.items()
    }
    selection = choose_candidate(candidates)
    chosen = results[selection.chosen]
    assert chosen.trust is not None
    trust = replace(
        chosen.trust,
        decision=replace(chosen.trust.decision, tried=len(results), picks=selection.picks),
        accuracy=chosen.trust.accuracy.reaching(agreement_with_others(selection.chosen, candidates)),
        candidates=selection.table,
    )
    return replace(chosen, trust=trust)


def _target_log_probs(result: Adapted) -> Tensor:
    """Calibrated, of the target that it was trained for."""
    assert result.predictions is not None
    return result.predictions.target.tempered(result.temperature).log_probs
