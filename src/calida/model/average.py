"""A network that follows another slowly: the mean teacher of Tarvainen and Valpola (2017)."""

from __future__ import annotations

import copy

import torch
from torch import nn

from calida.model.classifier import Classifier


def make_teacher(student: Classifier) -> Classifier:
    """A copy that no gradient reaches."""
    teacher = copy.deepcopy(student)
    for parameter in teacher.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    return teacher


@torch.no_grad()
def follow(teacher: nn.Module, student: nn.Module, decay: float) -> None:
    """Move the teacher's weights to decay * teacher + (1 - decay) * student; statistics are its own affair."""
    for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
        slow.lerp_(fast, 1 - decay)
