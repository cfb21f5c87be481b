"""What becomes of the logits' noise under each likelihood: `python -m reproduction.noise`.

With the expectation outside the log, E log P(y | x, w), the noise's own optimum is std 0: log-softmax is concave in the
logits, so by Jensen's inequality noise can only lower the mean. With it inside, log E P(y | x, w), noise can pay: where
a label contradicts its image, a wide distribution gives it more probability than a point does.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from calida.data import Labeled, split_validation, take, unit_range
from calida.model import Network, build_classifier, evaluation_mode, predict
from calida.objective import ExpectedLikelihood, Objective, PredictiveLikelihood, Term, Weighted
from calida.recipes import get_recipe, phases
from calida.runs import open_data
from calida.seeds import Seeds
from calida.training import Domains, Run, run_rounds
from reproduction.tables import MNIST_USPS
from reproduction.tasks import PROTOCOLS

LIKELIHOODS: dict[str, Term] = {"outside the log": ExpectedLikelihood(), "inside the log": PredictiveLikelihood()}


def measure(likelihood: Term, seed: int, epochs: int, mislabeled: float) -> dict[str, float]:
    """Train a BDTN on MNIST by a likelihood, some of whose labels are wrong; the noise it ends with on both domains."""
    job = PROTOCOLS["main"][MNIST_USPS].job("bsource", seed)
    data, seeds = open_data(job.config), Seeds(seed)
    assert data.truth is not None
    samples, target = data.source.samples, data.target.samples
    assert isinstance(samples, torch.Tensor)
    assert isinstance(target, torch.Tensor)
    kept, held = split_validation(data.labels, 0.1, seeds)
    labels = data.labels[kept]
    wrong = torch.rand(len(labels), generator=seeds.generator("wrong labels")) < mislabeled
    labels = torch.where(wrong, torch.randint(10, labels.shape, generator=seeds.generator("other labels")), labels)
    validation = Labeled(take(samples, held), data.labels[held])
    domains = Domains(Labeled(take(samples, kept), labels), validation, target, 10)
    recipe = get_recipe("bsource").with_settings(epochs=epochs)
    phase = replace(phases(recipe)[0], objective=Objective({"likelihood": Weighted(likelihood)}))
    network = Network(tuple(samples.shape[1:]), 10, "dtn", True, sampled=recipe.posterior.sampled)
    model = build_classifier(network, seeds)
    model.standardize.fit(samples)  # type: ignore[operator]
    run_rounds(Run([phase], domains, seeds, recipe.posterior.num_samples), model)
    with torch.no_grad(), evaluation_mode(model):
        mean, std = model(unit_range(target)).logits
    top = mean.topk(2).values
    prediction = predict(model, target, recipe.posterior.num_samples, seeds)
    return {
        "mean std of the logits": float(std.mean()),
        "gap of the two largest": float((top[:, 0] - top[:, 1]).mean()),
        "accuracy on target, %": 100 * float((prediction.labels == data.truth).double().mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    for mislabeled in (0.0, 0.3):
        for name, likelihood in LIKELIHOODS.items():
            for seed in range(options.seeds):
                found = measure(likelihood, seed, options.epochs, mislabeled)
                words = ", ".join(f"{key} {value:.3f}" for key, value in found.items())
                print(f"{mislabeled:.0%} of labels wrong, expectation {name}, seed {seed}: {words}", flush=True)


if __name__ == "__main__":
    main()
