"""GVR against brute force: every group's graph kept, the variance differentiated as it is written."""

import copy
from dataclasses import replace

import pytest
import torch

from calida.errors import InputError
from calida.model import scratch_buffers
from calida.objective import (
    GradientVariance,
    Objective,
    PredictiveLikelihood,
    PseudoLabelLikelihood,
    TargetEntropy,
    Weighted,
)

ORDERS = {"order 1": TargetEntropy(1.0), "order 2": TargetEntropy(2.0), "order inf": PseudoLabelLikelihood()}


def objective_of(term, regularizer=None):
    return Objective({"likelihood": Weighted(PredictiveLikelihood()), "target": Weighted(term, 0.7)}, regularizer)


def brute_force(step, term, regularizer):
    """Mean group loss, variance, bounded variance, and the gradient of the whole, by plain autograd."""
    parameters = [p for p in step.model.parameters() if p.requires_grad]
    names = [name for name, p in step.model.named_parameters() if p.requires_grad]
    losses, gradients = [], []
    with scratch_buffers(step.model):
        for group in step.groups("target", regularizer.groups):
            losses.append(0.7 * term(group))
            gradients.append(torch.autograd.grad(losses[-1], parameters, create_graph=True, allow_unused=True))
    vectors = torch.stack(
        [
            torch.cat(
                [g.flatten() for name, g in zip(names, row, strict=True) if g is not None and regularizer.part in name]
            )
            for row in gradients
        ]
    )
    updated = -regularizer.inner_step * vectors  # theta'_i up to the constant theta
    variance = torch.cov(updated.T).trace()
    bounded = {
        "none": variance,
        "cap": variance.clamp(max=regularizer.cap),
        "relative": variance / (updated.square().sum(1).mean()),
    }[regularizer.bound]
    loss = torch.stack(losses).mean()
    total = torch.autograd.grad(loss - regularizer.weight * bounded, parameters, allow_unused=True)
    return (
        loss,
        variance,
        bounded,
        [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, total, strict=True)],
    )


@pytest.mark.parametrize("bound", ["none", "cap", "relative"])
@pytest.mark.parametrize("gaussian", [False, True], ids=["point", "gaussian"])
@pytest.mark.parametrize("order", ORDERS)
def test_value_and_gradient_equal_brute_force(make_step, order, gaussian, bound):
    term = ORDERS[order]
    regularizer = GradientVariance(weight=50.0, groups=4, inner_step=0.3, bound=bound, cap=100.0)
    step = make_step(gaussian)
    loss, variance, bounded, expected = brute_force(step, term, regularizer)
    objective = objective_of(term)
    done = regularizer.backward(step, lambda group: objective.loss(group, {"target": 0.7}))
    torch.testing.assert_close(0.7 * done.terms["target"], loss.detach(), rtol=1e-10, atol=0)
    torch.testing.assert_close(done.variance, variance.detach(), rtol=1e-10, atol=0)
    torch.testing.assert_close(done.bounded, bounded.detach(), rtol=1e-10, atol=0)
    scale = max(g.abs().max() for g in expected)
    for parameter, gradient in zip(step.model.parameters(), expected, strict=True):
        assert (parameter.grad - gradient).abs().max() <= 1e-10 * scale


@pytest.mark.parametrize("gaussian", [False, True], ids=["point", "gaussian"])
@pytest.mark.parametrize("order", ORDERS)
def test_gradient_of_the_variance_reaches_every_parameter_that_the_loss_reaches(make_step, order, gaussian):
    """The published code took inner gradients without a graph: its variance had no gradient at all."""
    gradients = []
    for weight in (0.0, 1.0):
        step = make_step(gaussian)
        regularizer = GradientVariance(weight=weight, groups=4, bound="none", inner_step=1.0)
        objective = objective_of(ORDERS[order])
        regularizer.backward(step, lambda group, o=objective: o.loss(group, {"target": 1.0}))
        gradients.append([p.grad for p in step.model.parameters()])
    for (name, _), plain, regularized in zip(step.model.named_parameters(), *gradients, strict=True):
        assert plain.abs().max() > 1e-8, name
        assert (regularized - plain).abs().max() > 1e-8, name


def test_part_counts_only_named_parameters_but_moves_all(make_step):
    regularizer = GradientVariance(weight=50.0, groups=3, inner_step=0.3, bound="none", part="head")
    step = make_step()
    _, variance, _, expected = brute_force(step, TargetEntropy(1.0), regularizer)
    objective = objective_of(TargetEntropy(1.0))
    done = regularizer.backward(step, lambda group: objective.loss(group, {"target": 0.7}))
    torch.testing.assert_close(done.variance, variance.detach(), rtol=1e-10, atol=0)
    for parameter, gradient in zip(step.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-8, atol=1e-12)
    with pytest.raises(InputError, match="no parameter matches the part 'tail'"):
        replace(regularizer, part="tail").backward(step, lambda group: objective.loss(group, {"target": 0.7}))


def test_objective_adds_the_terms_that_the_variance_does_not_carry(make_step):
    """Source likelihood on the whole batch, target terms by groups, in one step."""
    regularizer = GradientVariance(weight=2.0, groups=4, inner_step=0.3, bound="none")
    step = make_step()
    *_, expected = brute_force(step, TargetEntropy(1.0), regularizer)
    with scratch_buffers(step.model):
        source = torch.autograd.grad(PredictiveLikelihood()(make_step_like(step)), list(step.model.parameters()))
    values = objective_of(TargetEntropy(1.0), regularizer).backward(step, {})
    assert values.keys() == {"likelihood", "target", "gradient_variance", "gradient_variance_bounded"}
    for parameter, carried, plain in zip(step.model.parameters(), expected, source, strict=True):
        torch.testing.assert_close(parameter.grad, carried + plain, rtol=1e-9, atol=1e-12)


class Shared(torch.nn.Module):
    """weight = base + delta: both parameters get the very same gradient tensor; `unused` gets none."""

    def __init__(self):
        super().__init__()
        self.base, self.delta = (torch.nn.Parameter(0.3 * torch.randn(64, 8)) for _ in range(2))
        self.unused = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("mask", torch.full((8,), -torch.inf))

    def forward(self, x):
        return torch.tanh(x.flatten(1) @ (self.base + self.delta))


def test_shared_gradients_unused_parameters_and_infinite_buffers(make_step):
    step = make_step()
    step.model.backbone = Shared().double()
    regularizer = GradientVariance(weight=50.0, groups=4, inner_step=0.3, bound="none")
    _, variance, _, expected = brute_force(step, TargetEntropy(1.0), regularizer)
    objective = objective_of(TargetEntropy(1.0))
    done = regularizer.backward(step, lambda group: objective.loss(group, {"target": 0.7}))
    torch.testing.assert_close(done.variance, variance.detach(), rtol=1e-10, atol=0)
    for (name, parameter), gradient in zip(step.model.named_parameters(), expected, strict=True):
        if name == "backbone.unused":
            assert parameter.grad is None
        else:
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-9, atol=1e-13)
    assert (step.model.backbone.mask == -torch.inf).all()


def make_step_like(step):
    return type(step)(step.model, step.batches, step.seeds, step.num_samples)


def test_cap_stops_the_push_and_shows_it(make_step):
    step, plain = make_step(), make_step()
    objective = objective_of(TargetEntropy(1.0))
    capped = GradientVariance(weight=10.0, groups=4, inner_step=0.3, cap=1e-9)
    done = capped.backward(step, lambda group: objective.loss(group, {"target": 1.0}))
    assert done.variance > 1e-9
    assert done.bounded == pytest.approx(1e-9)
    replace(capped, weight=0.0).backward(plain, lambda group: objective.loss(group, {"target": 1.0}))
    for a, b in zip(step.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad)


def test_running_statistics_move_once_by_the_average_of_the_groups(make_step):
    step, plain = make_step(), make_step()
    objective = objective_of(TargetEntropy(1.0))
    GradientVariance(groups=4).backward(step, lambda group: objective.loss(group, {"target": 1.0}))
    TargetEntropy(1.0)(plain)
    first, first_plain = step.model.backbone[1], plain.model.backbone[1]
    assert int(first.num_batches_tracked) == 1
    # The first layer sees the same samples either way, so its mean is that of the whole batch.
    torch.testing.assert_close(first.running_mean, first_plain.running_mean, rtol=1e-12, atol=1e-12)
    maps = [step.model.backbone[0](part).transpose(0, 1).flatten(1) for part in step.target.x.chunk(4)]
    spread = torch.stack([part.var(1) for part in maps]).mean(0).detach()
    torch.testing.assert_close(first.running_var, 0.9 + 0.1 * spread, rtol=1e-12, atol=1e-12)


def test_diagnostic_leaves_no_trace(make_step):
    step = make_step()
    before = copy.deepcopy(step.model.state_dict())
    objective = objective_of(TargetEntropy(1.0))
    measured = GradientVariance(groups=4, inner_step=0.3).measure(step, lambda g: objective.loss(g, {"target": 0.7}))
    _, variance, _, _ = brute_force(step, TargetEntropy(1.0), GradientVariance(groups=4, inner_step=0.3))
    assert measured == pytest.approx(variance.item(), rel=1e-10)
    assert all(p.grad is None for p in step.model.parameters())
    assert all(torch.equal(before[key], value) for key, value in step.model.state_dict().items())


def test_short_batch_is_cut_into_fewer_groups(make_step):
    step = make_step(rows=5)
    objective = objective_of(TargetEntropy(1.0))
    done = GradientVariance(groups=10).backward(step, lambda group: objective.loss(group, {"target": 1.0}))
    assert done.variance > 0
    single = make_step(rows=3)
    done = GradientVariance(groups=10).backward(single, lambda group: objective.loss(group, {"target": 1.0}))
    assert done.variance == 0


@pytest.mark.parametrize(("memory", "passes"), [(0, 7), (1 << 20, 4)], ids=["no graph", "all graphs"])
@pytest.mark.parametrize("bound", ["none", "relative"])
def test_the_same_gradient_with_kept_graphs_and_without(make_step, memory, passes, bound, monkeypatch):
    """Memory decides how often a group is run, and nothing else."""
    step, runs = make_step(), []
    run = type(step).run_own
    monkeypatch.setattr(type(step), "run_own", lambda self, *args: runs.append(1) or run(self, *args))
    regularizer = GradientVariance(weight=50.0, groups=4, inner_step=0.3, bound=bound, memory=memory)
    objective = objective_of(TargetEntropy(1.0))
    regularizer.backward(step, lambda group: objective.loss(group, {"target": 0.7}))
    assert len(runs) == passes
    *_, expected = brute_force(make_step(), TargetEntropy(1.0), regularizer)
    for parameter, gradient in zip(step.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-8, atol=1e-12)


def test_weight_zero_is_the_mean_of_the_groups_and_no_more(make_step):
    """The control: groups with BatchNorm, masks and noise of their own, whose variance is shown and not maximised."""
    step = make_step()
    regularizer = GradientVariance(weight=0.0, groups=4, inner_step=0.3)
    values = objective_of(TargetEntropy(1.0), regularizer).backward(step, {})
    reference = make_step()
    _, variance, _, expected = brute_force(reference, TargetEntropy(1.0), regularizer)
    with scratch_buffers(reference.model):
        source = torch.autograd.grad(PredictiveLikelihood()(reference), list(reference.model.parameters()))
    assert float(values["gradient_variance"]) == pytest.approx(float(variance), rel=1e-10)
    for parameter, carried, plain in zip(step.model.parameters(), expected, source, strict=True):
        torch.testing.assert_close(parameter.grad, carried + plain, rtol=1e-9, atol=1e-12)


def test_only_one_graph_is_alive_at_a_time_where_memory_is_short(make_step, monkeypatch):
    """Outputs of earlier groups are gone when a later group runs, in both passes."""
    import weakref

    step = make_step()
    alive = []
    run = type(step).run_own

    def watched(self, *args):
        assert not any(reference() is not None for reference in alive)
        output = run(self, *args)
        alive.append(weakref.ref(output.logits.mean))
        return output

    monkeypatch.setattr(type(step), "run_own", watched)
    objective = objective_of(TargetEntropy(1.0))
    regularizer = GradientVariance(groups=4, bound="none", memory=0)
    regularizer.backward(step, lambda group: objective.loss(group, {"target": 1.0}))
    assert len(alive) == 7  # the last group of the first pass opens the second


def test_a_share_of_steps_carries_the_term_at_a_weight_that_makes_up_for_the_others(make_step):
    """What a carried step adds to a plain one is the whole term over the share; other steps are plain steps."""
    lazy = GradientVariance(weight=3.0, groups=4, inner_step=0.3, bound="none", share=0.25)
    term = TargetEntropy(1.0)
    carried = [lazy.concerns(make_step(seed=seed)) for seed in range(200)]
    assert 0.15 < sum(carried) / 200 < 0.35
    seed = carried.index(True)
    assert lazy.concerns(make_step(seed=seed))  # drawn by the step's seeds, so the same when a run is resumed
    step, heavy = make_step(seed=seed), make_step(seed=seed)
    objective_of(term, lazy).backward(step, {})
    objective_of(term, replace(lazy, weight=12.0, share=1.0)).backward(heavy, {})
    for mine, theirs in zip(step.model.parameters(), heavy.model.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)
    seed = carried.index(False)
    step, plain = make_step(seed=seed), make_step(seed=seed)
    values = objective_of(term, lazy).backward(step, {})
    objective_of(term).backward(plain, {})
    assert values.keys() == {"likelihood", "target"}
    for mine, theirs in zip(step.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)
