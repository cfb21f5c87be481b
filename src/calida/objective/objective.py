"""An objective: named terms with weights, and optionally the gradient variance of one domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from torch import Tensor

from calida.errors import InputError
from calida.objective.entropy import TargetEntropy
from calida.objective.gradient_variance import GradientVariance, StepLoss, sum_of
from calida.objective.multiplier import DualAscent, MultiplierState
from calida.objective.step import Domain, Step


class Term(Protocol):
    """A function of one step to a scalar that is minimized, on the domains that it names."""

    @property
    def domains(self) -> tuple[Domain, ...]: ...

    def __call__(self, step: Step, /) -> Tensor: ...


class Weighted(NamedTuple):
    """A term and its weight: a number, or dual ascent that moves it (then the term is the constrained quantity)."""

    term: Term
    weight: float | DualAscent = 1.0


@dataclass(frozen=True)
class Objective:
    """sum of weight * term, minus the weighted gradient variance where there is one.

    A term with weight 0 is never called: it equals the term's absence bit for bit. A term takes part in the steps
    that have all of its domains.
    """

    terms: Mapping[str, Weighted]
    gradient_variance: GradientVariance | None = None

    def __post_init__(self) -> None:
        for name, weighted in self.terms.items():
            _check_term(name, weighted)

    def multipliers(self) -> dict[str, MultiplierState]:
        """Fresh states for the weights that dual ascent moves."""
        return {name: MultiplierState() for name, (_, weight) in self.terms.items() if isinstance(weight, DualAscent)}

    def active(self, domains: Mapping[Domain, object], multipliers: Mapping[str, MultiplierState]) -> dict[str, float]:
        """Weights of the terms that a step with these domains evaluates."""
        weights: dict[str, float] = {}
        for name, (term, weight) in self.terms.items():
            present = all(domain in domains for domain in term.domains)
            if isinstance(weight, DualAscent):  # at 0 as well: what is not measured could never rise again
                if present:
                    weights[name] = multipliers[name].value
            elif weight != 0 and present:
                weights[name] = weight
        return weights

    def loss(self, step: Step, weights: Mapping[str, float]) -> StepLoss:
        """The weighted sum of the named terms, and each term by itself."""
        values = {name: self.terms[name].term(step) for name in weights}
        for name, value in values.items():
            if not isinstance(value, Tensor) or value.shape != ():
                raise InputError(f"the term {name!r} must give a scalar tensor, not {_kind(value)}")
        total = sum_of(weight * values[name] for name, weight in weights.items())
        return StepLoss(total, {name: value.detach() for name, value in values.items()})

    def backward(self, step: Step, multipliers: Mapping[str, MultiplierState]) -> dict[str, Tensor]:
        """Add the gradient of the objective to the parameters' .grad; give each term's value."""
        weights = self.active(step.batches, multipliers)
        values: dict[str, Tensor] = {}
        regularizer = self.gradient_variance
        if regularizer is not None and regularizer.concerns(step):
            carried = {n: w for n, w in weights.items() if set(self.terms[n].term.domains) == {regularizer.domain}}
            weights = {name: weight for name, weight in weights.items() if name not in carried}
            if carried:
                done = regularizer.backward(step, partial(self.loss, weights=carried), tuple(carried))
                values.update(done.terms, gradient_variance=done.variance, gradient_variance_bounded=done.bounded)
        if weights:
            loss = self.loss(step, weights)
            loss.total.backward()
            values.update(loss.terms)
        return values


def _check_term(name: str, weighted: object) -> None:
    """A mistake in a term of one's own would otherwise show as a term that silently never runs."""
    if not isinstance(weighted, tuple) or len(weighted) != 2:
        raise InputError(f"the term {name!r} must be Weighted(term, weight), not {_kind(weighted)}")
    term, weight = weighted
    domains = getattr(term, "domains", None)
    if (
        not callable(term)
        or not isinstance(domains, tuple | list)
        or not domains
        or set(domains) - {"source", "target"}
    ):
        raise InputError(
            f"the term {name!r} must be callable with domains like ('target',) or ('source', 'target'), not {domains!r}"
        )
    if isinstance(weight, DualAscent):
        if not isinstance(term, TargetEntropy):
            raise InputError(f"dual ascent moves the weight of a target entropy; the term {name!r} is {_kind(term)}")
    elif not isinstance(weight, int | float) or not math.isfinite(weight):
        raise InputError(f"the weight of the term {name!r} must be a finite number, not {weight!r}")


def _kind(value: object) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
