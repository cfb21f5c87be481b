"""A term of your own: an objective is a mapping from names to weighted functions of a training step.

    python examples/custom_term.py

Here: target features should have the same mean and spread as source features, in every dimension. The example
adapts with and without the term and shows what it changed.
"""

import torch

import calida


class MatchMoments:
    """Squared distance of the domains' feature means and standard deviations."""

    domains = ("source", "target")  # the term is asked for in steps that have both

    def __call__(self, step):
        source, target = step.features("source"), step.features("target")  # [B, D]
        means = (source.mean(0) - target.mean(0)).square().mean()
        spreads = (source.std(0) - target.std(0)).square().mean()
        return means + spreads


def make_domain(rows: int, angle: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Four blobs on a circle, turned by an angle."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 4
    turn = labels * torch.pi / 2 + angle
    blobs = 3 * torch.stack([turn.cos(), turn.sin()], 1)
    return blobs + 0.5 * torch.randn(rows, 2, generator=generator), labels


def main() -> None:
    source = make_domain(600, 0.0, seed=0)
    target, truth = make_domain(600, 0.72, seed=1)  # the truth only makes the oracle figures below
    for name, terms in (("without", {}), ("with", {"moments": calida.Weighted(MatchMoments(), 0.5)})):
        adapted = calida.adapt(
            source,
            target,
            recipe="rer-1",
            terms=terms,
            epochs=10,
            rounds=5,
            oracle_labels=truth,
        )
        last = adapted.history[-1]
        print(f"{name} the term: oracle accuracy {last.oracle.accuracy:.1%}, terms of the last round:")
        print("  " + ", ".join(f"{term} {value:.3f}" for term, value in last.terms.items()))


if __name__ == "__main__":
    main()
