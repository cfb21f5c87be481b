"""How frequent each class may be among unlabeled samples, and samples drawn so that classes are equally frequent."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

_DRAWS = 100  # of bootstrap
_MOST_CLASSES = 200  # that intervals are found for: each draw solves for all of them
_MOST_SAMPLES = 5000


def class_shares(labels: Tensor, num_classes: int) -> Tensor:
    """How frequent each class is: [N] -> [K]; nowhere, if there is no label."""
    counts = torch.bincount(labels, minlength=num_classes).double()
    return counts / counts.sum().clamp(min=1)


def shares_nearest_uniform(predicted: Tensor, error: float) -> Tensor:
    """Of the class shares that may lie behind predicted ones, those nearest to equal: [K] -> [K].

    Predictions of which a share `error` is wrong have class shares no further than that from the true ones, in total
    variation. So a classifier that errs much is no witness against equal classes, and one that errs little is.
    """
    equal = torch.full_like(predicted, 1 / len(predicted))
    distance = _distance_from_equal(predicted)
    return equal if distance <= error else torch.lerp(predicted, equal, error / distance)


def mlls_shares(log_probs: Tensor, known: Tensor, tolerance: float = 1e-6, most: int = 1000) -> Tensor:
    """Class shares under which predictions on unlabeled samples are likeliest: [N, K], [K] -> [K].

    `known` are the shares that the classifier was trained with. If classes look as they did and only their frequencies
    differ, expectation and maximization by turns find the new ones (Saerens et al., 2002).
    """
    probs, shares = log_probs.double().exp(), known.double()
    for _ in range(most):
        weighted = probs * (shares / known.clamp(min=tolerance))
        better = (weighted / weighted.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)).mean(0)
        if bool((better - shares).abs().max() < tolerance):
            break
        shares = better
    return shares


def rlls_shares(said: Tensor, labels: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """Class shares that explain how often each class is predicted: [V], [V], [T] -> [K].

    With C the joint shares of predicted and true classes on source, the target's predicted shares are C w where only
    class frequencies differ, w being the ratio of target to source shares. RLLS (Azizzadenesheli et al., 2019) solves
    min |C w - mu|^2 + rho |w - 1|^2 with w >= 0: what C cannot tell stays as in the source.
    """
    from scipy.optimize import nnls

    joint = torch.zeros(num_classes, num_classes, dtype=torch.float64)
    joint.index_put_((said, labels), torch.ones(len(labels), dtype=torch.float64), accumulate=True)
    joint /= max(len(labels), 1)
    rho = 1 / max(len(labels), 1)  # more than the noise of C C', whose entries are shares of so many samples
    ridge = math.sqrt(rho) * torch.eye(num_classes, dtype=torch.float64)
    wanted = torch.cat([class_shares(target, num_classes), ridge.diagonal()])
    ratios = torch.from_numpy(nnls(torch.cat([joint, ridge]).numpy(), wanted.numpy())[0])
    shares = ratios * class_shares(labels, num_classes)
    return shares / shares.sum().clamp(min=1e-12)


class TargetShares(NamedTuple):
    """Class shares of the target by two methods, and the interval that 90 % of drawn samples give: [K] each."""

    mlls: Tensor
    rlls: Tensor
    low: Tensor
    high: Tensor


def estimate_shares(
    validation: Tensor, labels: Tensor, target: Tensor, known: Tensor, generator: torch.Generator
) -> TargetShares | None:
    """From log-probabilities on source validation [V, K] and target [T, K], and the source's shares `known` [K].

    The interval is a bootstrap's over both domains' samples, and reaches over both methods. It holds as far as class
    frequencies alone differ. None where there are too few samples or too many classes to tell.
    """
    classes = len(known)
    if not 2 <= classes <= _MOST_CLASSES or min(len(labels), len(target)) < 2 * classes:
        return None
    target = target[torch.randperm(len(target), generator=generator)[:_MOST_SAMPLES]]
    said, seen = validation.argmax(-1), target.argmax(-1)
    found = [mlls_shares(target, known), rlls_shares(said, labels, seen, classes)]
    drawn = []
    for _ in range(_DRAWS):
        rows, others = (torch.randint(len(part), (len(part),), generator=generator) for part in (labels, seen))
        drawn.append(rlls_shares(said[rows], labels[rows], seen[others], classes))
    ends = torch.stack(drawn).quantile(torch.tensor([0.05, 0.95], dtype=torch.float64), 0)
    both = torch.stack([*found, *ends])
    return TargetShares(found[0], found[1], both.amin(0), both.amax(0))


def chance_distance(num_classes: int, batch_size: int) -> float:
    """How far from equal the shares of equally frequent classes are in one batch, by chance, in total variation.

    The mean of half the sum of |n_k / n - 1 / K|, each n_k binomial and taken for normal: sqrt((K - 1) / (2 pi n)).
    """
    return math.sqrt((num_classes - 1) / (2 * math.pi * batch_size))


def balancing_weights(labels: Tensor, shares: Tensor, tolerance: float = 1e-6) -> Tensor | None:
    """Weights by which every class is drawn equally often, [N] and [K] -> [N]; None where shares are equal enough."""
    if _distance_from_equal(shares) <= tolerance:
        return None
    return 1 / shares.clamp(min=1 / len(labels))[labels]


def prior_logit_offsets(shares: Tensor, count: int, tolerance: float) -> Tensor | None:
    """What to add to the logits of a classifier that saw classes equally often, by Bayes' rule: log(K shares), [K].

    None where shares are equal enough; a class that was not found among `count` samples may still be there once.
    """
    if _distance_from_equal(shares) <= tolerance:
        return None
    return (len(shares) * shares.clamp(min=1 / count)).log()


def _distance_from_equal(shares: Tensor) -> float:
    """In total variation."""
    return float((shares - 1 / len(shares)).abs().sum()) / 2


def thin_out(labels: Tensor, shares: Tensor, generator: torch.Generator) -> Tensor:
    """Rows of which each class has about its share, as many as there can be without repetition: [N], [K] -> [n]."""
    counts = torch.bincount(labels, minlength=len(shares))
    kept = torch.where(counts > 0, shares / counts.clamp(min=1), 0.0)
    return (torch.rand(len(labels), generator=generator) < (kept / kept.max())[labels]).nonzero().flatten()


def resample(weights: Tensor, generator: torch.Generator) -> Tensor:
    """As many indices as weights, each in proportion to its weight to within one: [N] -> [N], sorted.

    One random number places evenly spaced marks on the line of weights (systematic resampling), so that equal weights
    give every index once.
    """
    order = torch.randperm(len(weights), generator=generator)
    ends = weights[order].double().cumsum(0)
    marks = (torch.arange(len(weights)) + torch.rand((), generator=generator, dtype=torch.float64)) / len(weights)
    drawn = torch.searchsorted(ends, marks * ends[-1], right=True).clamp(max=len(weights) - 1)
    return order[drawn].sort().values
