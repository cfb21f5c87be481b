"""Validators that read predictions alone: pure functions of log-probabilities to a scalar."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calida.uncertainty import accuracy, mutual_information, renyi_entropy


def mean_entropy(log_probs: Tensor) -> float:
    """Mean Shannon entropy in nats; low means certain, right or wrong (Morerio et al., 2018)."""
    return float(renyi_entropy(log_probs.double()).mean())


def information(log_probs: Tensor) -> float:
    """H(mean p) - mean H(p) in nats (IM): certain predictions, spread over the classes (Bridle et al., 1991)."""
    return float(mutual_information(log_probs.double()))


def nuclear_norm(log_probs: Tensor) -> float:
    """|P|_* / N (BNM): the sum of singular values of the [N, K] probabilities, over N (Cui et al., 2020).

    By the eigenvalues of the K x K matrix P'P, so that memory does not grow with N squared.
    """
    probs = log_probs.double().exp()
    return float(torch.linalg.eigvalsh(probs.T @ probs).clamp(min=0).sqrt().sum()) / len(probs)


def class_correlation(log_probs: Tensor) -> float:
    """tr(P'P) / |P'P|_F (Corr-C), from 1, one class for all, to sqrt(K), all classes in use and told apart.

    Tu et al. (2023) take low values for good ones. The formula says otherwise where classes are balanced, so
    which end is better is left to the table of validators.
    """
    probs = log_probs.double().exp()
    correlation = probs.T @ probs
    return float(correlation.trace() / correlation.norm())


def ensemble_agreement(candidates: Sequence[Tensor]) -> list[float]:
    """How often each candidate's label is that of all candidates' mean prediction (EnsV): [C] of C times [N, K]."""
    total = torch.zeros_like(candidates[0], dtype=torch.float64)
    for log_probs in candidates:
        total += log_probs.double().exp()
    return [accuracy(log_probs, total.argmax(-1)) for log_probs in candidates]
