"""Check classifiers around a run: some rows of large domains are enough, and the same samples are checked once."""

from dataclasses import replace

import torch
from torch import Tensor

from calida.adaptation import panel_checks
from calida.adaptation.panel_checks import PanelFeatures, fit_panel_checks
from calida.estimation import estimate_by_agreement
from calida.model import Prediction
from calida.seeds import Seeds
from calida.validation import DomainPredictions


def features(validation, target):
    numbers = torch.Generator().manual_seed(0)

    def drawn(count, moved=0.0) -> tuple[Tensor, Tensor]:
        labels = torch.arange(count) % 2
        return torch.randn(count, 3, generator=numbers) + 3 * labels[:, None] + moved, labels

    (x, y), (held, held_labels), (met, truth) = drawn(300), drawn(validation), drawn(target, 0.5)
    return PanelFeatures(x, y, held, held_labels, met), truth


def said(labels):
    log_probs = torch.nn.functional.one_hot(labels, 2).double().clamp(min=0.01).log()
    nothing = torch.zeros(len(labels))
    return Prediction(log_probs, nothing, nothing, nothing, torch.zeros(len(labels), 1))


def test_some_rows_of_a_large_domain_are_enough(monkeypatch):
    x, truth = features(validation=120, target=900)
    wrong = truth.clone()
    wrong[::5] = 1 - wrong[::5]
    predictions = DomainPredictions(said(x.validation_labels), x.validation_labels, said(wrong), None)
    whole = fit_panel_checks(x, 2, Seeds(0))
    monkeypatch.setattr(panel_checks, "_MOST", 100)
    part = fit_panel_checks(x, 2, Seeds(0))
    assert [len(rows) for rows in whole.seen] == [120, 900]
    assert [len(rows) for rows in part.seen] == [100, 100]
    assert all(len(one.target) == 100 == len(one.validation) for one in part.panel.opinions)
    assert torch.equal(part.panel.labels, x.validation_labels[part.seen.validation])
    found = []
    for checks in (whole, part):
        seen = checks.of(predictions)
        assert torch.equal(seen.target.labels, wrong[checks.seen.target])
        found.append(estimate_by_agreement(checks.panel, seen.validation.labels, seen.target.labels, checks.apart))
        votes = checks.by_sample(found[-1], 900)
        assert torch.equal(votes[checks.seen.target], found[-1].by_sample)
    assert abs(found[0].value - found[1].value) < 0.1
    unseen = torch.ones(900, dtype=torch.bool)
    unseen[part.seen.target] = False
    assert votes[unseen].unique().tolist() == [float(found[1].by_sample.mean())]


def test_the_same_samples_are_checked_once_and_others_anew(monkeypatch):
    x, _ = features(validation=60, target=80)
    first = fit_panel_checks(x, 2, Seeds(0))
    with monkeypatch.context() as broken:
        broken.setattr(panel_checks, "fit_panel", None)  # nobody fits anything
        assert fit_panel_checks(replace(x, target=x.target.clone()), 2, Seeds(0)) is first
    moved = replace(x, target=x.target + 0.5)
    others = [fit_panel_checks(*other) for other in ((moved, 2, Seeds(0)), (x, 2, Seeds(1)), (x, 3, Seeds(0)))]
    assert all(other is not first for other in others)
    fit_panel_checks(replace(x, target=x.target - 0.5), 2, Seeds(0))
    again = fit_panel_checks(x, 2, Seeds(0))  # forgotten by now, and the same
    assert again is not first
    assert torch.equal(again.panel.consensus(), first.panel.consensus())
