"""A constructed shift with a known answer: blobs in the plane, turned, moved and stretched on target."""

import math

import torch

CLASSES = 4


def make(rows=400, angle=28.0, seed=0, features=6):
    """((x, y), target x, target y): the classes stay apart on target, but not where the source's borders run."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % CLASSES
    radius = torch.tensor([2.4, 3.0, 3.6, 3.0])[labels]
    direction = torch.tensor([0.0, 1.7, 3.0, 4.6])[labels]
    centres = torch.stack([radius * direction.cos(), radius * direction.sin()], 1)
    source, target = 0.5 * torch.randn(2, rows, features, generator=generator)
    turn = math.radians(angle)
    rotation = torch.tensor([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    source[:, :2] += centres
    target[:, :2] = (target[:, :2] + centres) @ rotation.T + torch.tensor([0.5, -0.5])
    return (source, labels), target, labels
