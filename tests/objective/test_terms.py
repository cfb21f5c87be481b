"""One contract for every term, and for each the thing that it is for, against a slow reference."""

import copy
import math

import pytest
import torch
from torch import nn

from calida.data import SourceBatch, TargetBatch
from calida.errors import InputError
from calida.model import Classifier, build_head
from calida.objective import (
    Consistency,
    Diversity,
    DualAscent,
    ExpectedLikelihood,
    GradientVariance,
    MeanDiscrepancy,
    Objective,
    PredictiveLikelihood,
    PseudoLabelLikelihood,
    Step,
    TargetEntropy,
    UniformDivergence,
    VirtualAdversarial,
    Weighted,
    squared_mmd,
)
from calida.seeds import Seeds

TERMS = {
    "expected likelihood": ExpectedLikelihood(),
    "predictive likelihood": PredictiveLikelihood(),
    "entropy of order 1": TargetEntropy(1.0),
    "entropy of order 0.5": TargetEntropy(0.5),
    "entropy of order inf": TargetEntropy(math.inf),
    "pseudo-labels": PseudoLabelLikelihood(),
    "diversity": Diversity(),
    "mrkld": UniformDivergence(),
    "vat": VirtualAdversarial(),
    "vat on source": VirtualAdversarial(domain="source"),
    "mmd": MeanDiscrepancy(),
    "consistency": Consistency(threshold=0.34),  # of three classes: the label of nearly every plain view counts
}
EVERY = pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)


@EVERY
def test_scalar_with_a_gradient_on_what_it_reaches(make_step, term):
    step = make_step()
    value = term(step)
    assert value.shape == ()
    assert value.isfinite()
    value.backward()
    reached = list(step.model.backbone.parameters())
    if not isinstance(term, MeanDiscrepancy):  # which ends at the features
        reached += list(step.model.head.parameters())
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in reached)


@EVERY
def test_the_same_step_gives_the_same_value_and_other_seeds_another(make_step, term):
    first, again, other = (term(make_step(seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@EVERY
def test_renaming_the_classes_changes_nothing(make_step, term):
    step, renamed = make_step(gaussian=False), make_step(gaussian=False)
    order = torch.tensor([2, 0, 1])
    with torch.no_grad():
        for name in ("weight", "bias"):
            parameter = getattr(renamed.model.head.mean, name)
            parameter.copy_(parameter[order])
    back = order.argsort()
    batches = {
        "source": SourceBatch(step.source.x, back[step.source.y]),
        "target": TargetBatch(step.target.x, step.target.labels[:, order], step.target.selected),
    }
    moved = term(Step(renamed.model, batches, Seeds(0), 1))
    torch.testing.assert_close(moved, term(Step(step.model, step.batches, Seeds(0), 1)), rtol=1e-9, atol=1e-12)


@EVERY
@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_uniform_and_saturated_predictions_stay_finite_in_float32(term, scale):
    torch.manual_seed(0)
    model = Classifier(nn.Linear(4, 6), build_head("linear", 6, 3, gaussian=True))
    with torch.no_grad():
        model.head.mean.weight.mul_(scale)
        model.head.mean.bias.mul_(scale)
    labels = torch.softmax(torch.randn(8, 3), -1)
    batches = {
        "source": SourceBatch(torch.randn(8, 4), torch.arange(8) % 3),
        "target": TargetBatch(torch.randn(8, 4), labels, torch.ones(8)),
    }
    value = term(Step(model, batches, Seeds(0), 3))
    assert value.isfinite()
    value.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@EVERY
def test_weight_zero_is_absence_bit_for_bit(make_step, term):
    """BatchNorm's statistics included: a term without weight is never called."""
    with_zero, without = make_step(), make_step()
    base = {"likelihood": Weighted(PredictiveLikelihood())}
    values = Objective({**base, "extra": Weighted(term, 0.0)}).backward(with_zero, {})
    Objective(base).backward(without, {})
    assert values.keys() == {"likelihood"}
    for a, b in zip(with_zero.model.parameters(), without.model.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)
    assert all(torch.equal(a, b) for a, b in zip(with_zero.model.buffers(), without.model.buffers(), strict=True))


def test_adding_a_term_changes_no_other_terms_value(make_step):
    alone = Objective({"entropy": Weighted(TargetEntropy())}).backward(make_step(), {})
    everything = {name: Weighted(term) for name, term in TERMS.items()}
    together = Objective({"entropy": Weighted(TargetEntropy()), **everything}).backward(make_step(), {})
    assert torch.equal(alone["entropy"], together["entropy"])


def test_objective_is_the_weighted_sum(make_step):
    names = {
        "likelihood": (PredictiveLikelihood(), 1.0),
        "entropy": (TargetEntropy(), 0.3),
        "mmd": (MeanDiscrepancy(), 2),
    }
    step, plain = make_step(), make_step()
    Objective({name: Weighted(*pair) for name, pair in names.items()}).backward(step, {})
    sum(weight * term(plain) for term, weight in names.values()).backward()
    for a, b in zip(step.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_terms_wait_for_their_domains(make_step):
    step = make_step()
    target_only = Step(step.model, {"target": step.target}, Seeds(0))
    objective = Objective({name: Weighted(term) for name, term in TERMS.items()})
    active = objective.active(target_only.batches, {})
    assert {"expected likelihood", "predictive likelihood", "mmd", "vat on source"}.isdisjoint(active)
    assert {"entropy of order 1", "diversity", "vat"} <= active.keys()


def test_expectation_outside_and_inside_the_log(make_step):
    """Eq. 3 averages log P over samples, Eq. 5 takes the log of the average; Jensen orders them."""
    step = make_step(num_samples=6)
    probs = step.sample_log_probs("source").exp()  # [M, B, K]
    rows = range(len(step.source.y))
    chosen = torch.stack([probs[:, i, step.source.y[i]] for i in rows], 1)
    outside, inside = ExpectedLikelihood()(step), PredictiveLikelihood()(step)
    torch.testing.assert_close(outside, -chosen.log().mean())
    torch.testing.assert_close(inside, -chosen.mean(0).log().mean())
    assert outside > inside
    point = make_step(gaussian=False, num_samples=1)
    torch.testing.assert_close(ExpectedLikelihood()(point), PredictiveLikelihood()(point))


def test_pseudo_labels_of_the_model_itself_give_the_min_entropy(make_step):
    step = make_step()
    log_probs = step.log_probs("target").detach()
    hard = nn.functional.one_hot(log_probs.argmax(-1), 3).double()
    uses_pseudo_labels = {"target": TargetBatch(step.target.x, hard, torch.ones(12).double())}
    again = Step(step.model, uses_pseudo_labels, Seeds(0), step.num_samples)
    torch.testing.assert_close(PseudoLabelLikelihood()(again), TargetEntropy(math.inf)(step))


def test_only_selected_samples_teach(make_step):
    step = make_step()
    log_probs, labels, selected = step.log_probs("target"), step.target.labels, step.target.selected
    rows = [i for i in range(12) if selected[i]]
    expected = torch.stack([-(labels[i] * log_probs[i]).sum() for i in rows]).mean()
    torch.testing.assert_close(PseudoLabelLikelihood()(step), expected)
    uniform = torch.full((3,), 1 / 3, dtype=torch.float64)
    divergence = torch.stack([(uniform * (uniform.log() - log_probs[i])).sum() for i in rows]).mean()
    torch.testing.assert_close(UniformDivergence()(step), divergence)
    nobody = {"target": TargetBatch(step.target.x, labels, torch.zeros(12).double())}
    empty = Step(step.model, nobody, Seeds(0), step.num_samples)
    assert PseudoLabelLikelihood()(empty) == 0
    assert UniformDivergence()(empty) == 0


def test_diversity_is_zero_at_balance_and_log_k_at_collapse():
    class Fixed(nn.Module):
        def __init__(self, logits):
            super().__init__()
            self.mean = nn.Parameter(logits)

        def forward(self, features):
            from calida.model import Logits

            return Logits(self.mean, torch.zeros_like(self.mean))

    def value(logits):
        model = Classifier(nn.Identity(), Fixed(logits))
        batch = TargetBatch(torch.zeros(len(logits), 1), torch.zeros(len(logits), 4), torch.zeros(len(logits)))
        return float(Diversity()(Step(model, {"target": batch}, Seeds(0))).detach())

    assert value(100 * torch.eye(4)) == pytest.approx(0, abs=1e-6)
    assert value(torch.zeros(4, 4)) == pytest.approx(0, abs=1e-6)
    assert value(100 * torch.eye(4)[[1, 1, 1, 1]]) == pytest.approx(math.log(4), abs=1e-5)


def test_the_adversarial_direction_is_worse_than_random_ones(make_step):
    step = make_step(gaussian=False, num_samples=1)
    clean = step.log_probs("target").detach()

    def divergence(move):
        fresh = make_step(gaussian=False, num_samples=1)
        moved = fresh.draw("target", fresh.run("target", fresh.target.x + move).logits)[0]
        return float((clean.exp() * (clean - moved)).sum(-1).mean().detach())

    radius = 0.5
    found = float(VirtualAdversarial(radius, iterations=3)(step).detach())
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        random = torch.randn(step.target.x.shape, generator=generator, dtype=torch.float64)
        random = radius * random / random.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        assert divergence(random) < found
    assert VirtualAdversarial(0.0)(step).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("size", [1e-30, 1e-25, 1.0, 1e20])
def test_the_adversarial_step_has_its_length_however_faint_the_gradient(size):
    from calida.objective.adversarial import _unit

    direction = size * torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(_unit(direction).flatten(1).norm(dim=1), torch.ones(5))
    assert (_unit(torch.zeros(2, 3)) == 0).all()


def test_vat_moves_no_statistics_of_its_own(make_step):
    step, plain = make_step(), make_step()
    VirtualAdversarial()(step)
    plain.output("target")
    assert all(torch.equal(a, b) for a, b in zip(step.model.buffers(), plain.model.buffers(), strict=True))


def slow_mmd(a, b):
    both = torch.cat([a, b])
    n = len(both)
    bandwidth = sum((u - v).square().sum().item() for u in both for v in both) / (n * (n - 1))

    def mean_kernel(x, y):
        total = 0.0
        for u in x:
            for v in y:
                square = (u - v).square().sum()
                total = total + sum((-square / (bandwidth * s)).exp() for s in (0.25, 0.5, 1, 2, 4)) / 5
        return total / (len(x) * len(y))

    return mean_kernel(a, a) + mean_kernel(b, b) - 2 * mean_kernel(a, b)


def test_mmd_against_loops_value_and_gradient():
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(6, 3, generator=generator, dtype=torch.float64).requires_grad_()
    b = torch.randn(9, 3, generator=generator, dtype=torch.float64) + 1
    fast, slow = squared_mmd(a, b), slow_mmd(a, b)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(*(torch.autograd.grad(value, a)[0] for value in (fast, slow)))


def test_mmd_sees_a_shift_and_only_a_shift():
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    assert float(squared_mmd(x, x)) == pytest.approx(0, abs=1e-6)
    values = [float(squared_mmd(x, x + shift)) for shift in (0.5, 1.0, 2.0, 4.0)]
    assert values == sorted(values)
    assert values[0] > 0.01
    assert squared_mmd(torch.zeros(4, 2), torch.zeros(3, 2)) == pytest.approx(0, abs=1e-6)


class Own:
    domains = ("target",)

    def __call__(self, step):
        return step.log_probs("target").mean(0)


@pytest.mark.parametrize(
    ("weighted", "sentence"),
    [
        (Own(), "must be Weighted"),
        (Weighted(lambda step: 0.0), "must be callable with domains"),
        (Weighted(type("Typo", (Own,), {"domains": "target"})()), "must be callable with domains"),
        (Weighted(type("Typo", (Own,), {"domains": ("targets",)})()), "must be callable with domains"),
        (Weighted(Own(), float("inf")), "must be a finite number"),
        (Weighted(Own(), DualAscent()), "dual ascent moves the weight of a target entropy"),
    ],
)
def test_a_term_of_ones_own_that_could_not_run_is_named(weighted, sentence):
    with pytest.raises(InputError, match=sentence):
        Objective({"mine": weighted})


def test_a_term_gives_a_scalar_and_its_domains_may_be_a_list(make_step):
    with pytest.raises(InputError, match=r"the term 'mine' must give a scalar tensor, not a tensor of shape \(3,\)"):
        Objective({"mine": Weighted(Own())}).backward(make_step(), {})
    listed = type("Listed", (TargetEntropy,), {"domains": ["target"]})()
    carried = Objective({"mine": Weighted(listed)}, GradientVariance(groups=3)).backward(make_step(), {})
    assert "gradient_variance" in carried


def test_each_domain_runs_once_for_all_terms(make_step):
    step = make_step()
    calls = []
    step.model.backbone[0].register_forward_hook(lambda *arguments: calls.append(1))
    shared = {"a": Weighted(TargetEntropy()), "b": Weighted(Diversity()), "c": Weighted(MeanDiscrepancy())}
    Objective({**shared, "d": Weighted(PredictiveLikelihood())}).backward(step, {})
    assert len(calls) == 2


def test_steps_leave_torchs_global_generator_alone(make_step):
    step = make_step()
    state = torch.get_rng_state()
    model = copy.deepcopy(step.model)
    Objective({name: Weighted(term) for name, term in TERMS.items()}).backward(step, {})
    assert torch.equal(torch.get_rng_state(), state)
    assert not all(torch.equal(a, b) for a, b in zip(model.buffers(), step.model.buffers(), strict=True))
