"""Check classifiers: each against what it should know, the panel against panels with a known answer."""

import numpy as np
import pytest
import torch
from sklearn.metrics import cohen_kappa_score

from calida.panel import MEMBERS, Opinion, Panel, beyond_chance, fit_panel, mean_agreement
from calida.panel.views import Scaling, seen_as
from calida.seeds import Seeds


def blobs(count, seed=0, moved=0.0, classes=3):
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    angles = 2 * np.pi * labels / classes
    centers = 4 * np.stack([np.cos(angles), np.sin(angles), np.zeros(count)], 1)
    x = (centers + generator.normal(size=(count, 3)) + moved).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(labels)


def panel_of(moved=0.0, **options):
    (x, y), (v, w), (t, truth) = blobs(300), blobs(90, 1), blobs(300, 2, moved)
    return fit_panel(x, y, v, w, t, 3, Seeds(0), **options), truth


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_knows_blobs_far_apart(name):
    panel, truth = panel_of(members=[name])
    for opinion in panel.opinions:
        assert torch.allclose(opinion.target.sum(1), torch.ones(300), atol=1e-5)
        assert (opinion.target.argmax(1) == truth).double().mean() > 0.97
        assert (opinion.validation.argmax(1) == panel.labels).double().mean() > 0.95


@pytest.mark.parametrize("name", MEMBERS)
def test_members_do_not_care_how_classes_are_numbered(name):
    (x, y), (t, _) = blobs(120), blobs(60, 1)
    order = np.array([2, 0, 1])
    plain, renamed = (
        MEMBERS[name].classify(x.numpy(), labels, [t.numpy()], 3, 0)[0] for labels in (y.numpy(), order[y.numpy()])
    )
    same = (order[plain.argmax(1)] == renamed.argmax(1)).mean()
    assert same > 0.98  # trees draw other samples for other class numbers


@pytest.mark.parametrize("name", MEMBERS)
def test_a_class_without_a_labeled_row_is_never_answered(name):
    (x, y), (t, _) = blobs(120), blobs(60, 1)
    kept = y != 1
    answers = MEMBERS[name].classify(x[kept].numpy(), y[kept].numpy(), [t.numpy()], 3, 0)[0]
    assert np.isfinite(answers).all()
    assert (answers.argmax(1) != 1).all()


def test_the_own_scale_undoes_a_drift_of_every_sensor():
    panel, truth = panel_of(moved=6.0)
    right = {one.name: float((one.target.argmax(1) == truth).double().mean()) for one in panel.opinions}
    assert right["logistic regression, own scale"] > 0.97
    assert right["logistic regression, shared scale"] < 0.7
    assert float((panel.consensus().argmax(1) == truth).double().mean()) > 0.97


def test_a_column_that_hardly_moves_is_not_blown_up():
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    x[:, 1] *= 1e-5
    x[:, 2] = 7.0
    scaled = Scaling(x)(x)
    assert scaled[:, 0].std() == pytest.approx(1.0, abs=1e-5)
    assert scaled[:, 1].std() < 0.05
    assert (scaled[:, 2] == 0).all()


def test_two_scales_are_one_where_domains_are_the_same():
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    first, second = seen_as("own", x, x)
    assert np.array_equal(first(x), second(x))


@pytest.mark.parametrize("seed", range(3))
def test_agreement_beyond_chance_is_cohens_kappa(seed):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(4, (200,), generator=generator)
    second = torch.where(
        torch.rand(200, generator=generator) < 0.6, first, torch.randint(4, (200,), generator=generator)
    )
    assert beyond_chance(first, second, 4) == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)


def test_two_that_always_say_the_same_class_know_nothing():
    assert beyond_chance(torch.zeros(10, dtype=torch.long), torch.zeros(10, dtype=torch.long), 2) == 0.0


def test_mean_agreement_is_with_the_others_alone():
    labels = torch.tensor([[0, 1, 0, 1], [0, 1, 0, 1], [1, 0, 1, 0]])
    assert mean_agreement(labels, 2).tolist() == pytest.approx([0.0, 0.0, -1.0])


def test_who_does_not_know_the_source_or_stands_alone_is_hardly_heard():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(300) % 3

    def opinion(name, wrong_on_source, wrong_on_target):
        parts = []
        for wrong in (wrong_on_source, wrong_on_target):
            said = torch.where(
                torch.rand(300, generator=generator) < wrong, torch.randint(3, (300,), generator=generator), labels
            )
            parts.append(torch.nn.functional.one_hot(said, 3).float())
        return Opinion(name, name, *parts)

    panel = Panel(
        (opinion("a", 0, 0.1), opinion("b", 0, 0.1), opinion("poor", 0.8, 0.1), opinion("lost", 0, 0.9)), labels
    )
    weights = dict(zip("ab", panel.weights.tolist(), strict=False))
    assert panel.weights.sum().item() == pytest.approx(1.0)
    assert panel.weights[2] < 0.1 * weights["a"]
    assert panel.weights[3] < 0.1 * weights["b"]
    assert (panel.consensus().argmax(1) == labels).double().mean() > 0.93


def test_many_features_are_seen_along_their_main_directions():
    generator = torch.Generator().manual_seed(0)
    (x, y), (v, w), (t, truth) = blobs(300), blobs(60, 1), blobs(300, 2)
    mixing = torch.randn(3, 600, generator=generator)
    panel = fit_panel(x @ mixing, y, v @ mixing, w, t @ mixing, 3, Seeds(0), members=["logistic regression"])
    assert (panel.consensus().argmax(1) == truth).double().mean() > 0.97


def test_rare_classes_stay_as_rare_as_they_are_in_the_source():
    (x, y), (v, w), (t, _) = blobs(300), blobs(60, 1), blobs(300, 2)
    rows = torch.cat([(y != 1).nonzero().flatten(), (y == 1).nonzero().flatten()[:25]])
    weighed = fit_panel(x[rows], y[rows], v, w, t, 3, Seeds(0), ["prototypes"]).opinions[0]
    first, second = seen_as(weighed.view, x[rows].numpy(), t.numpy())
    alike = MEMBERS["prototypes"].classify(first(x[rows].numpy()), y[rows].numpy(), [second(t.numpy())], 3, 0)[0]
    odds = [
        torch.as_tensor(answers)[:, 1].double() / torch.as_tensor(answers)[:, 0] for answers in (weighed.target, alike)
    ]
    assert torch.allclose(odds[0] / odds[1], torch.tensor(0.25).double(), rtol=1e-3)  # 25 rows beside 100


def test_who_cannot_learn_from_the_rows_is_absent():
    """Discriminant analysis needs more rows than classes; the others answer all the same."""
    (x, y), (t, _) = blobs(3), blobs(30, 1)
    panel = fit_panel(x, y, t, y.repeat(10), t, 3, Seeds(0))
    kinds = {one.kind for one in panel.opinions}
    assert "gaussian" not in kinds
    assert {"linear", "trees", "neighbors", "prototypes", "graph"} <= kinds
    assert float(panel.weights.sum()) == pytest.approx(1)
