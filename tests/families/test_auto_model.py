"""`model="auto"`: every family is adapted, and check classifiers say which is returned."""

import pytest
import shift
import torch

import calida
from calida.adaptation import auto_model
from calida.data import Labeled
from calida.families import FAMILIES
from calida.run_warnings import WarningCode
from calida.seeds import Seeds
from calida.training import Domains

SOURCE, TARGET, TRUTH = shift.make(rows=400)


@pytest.fixture(scope="module")
def adapted():
    return calida.adapt(SOURCE, TARGET, model="auto", oracle_labels=TRUTH)


def accuracy(one):
    return float((one.predict(TARGET).labels == TRUTH).double().mean())


def test_the_highest_estimate_is_returned_if_it_is_clearly_above_source_only(adapted):
    decision = adapted.trust.decision
    first, *others = decision.estimates
    assert first.endswith(", source only")
    assert others == [*FAMILIES, "mean"]
    best = max(decision.estimates, key=decision.estimates.get)
    clear = decision.estimates[best] > decision.estimates[first] + auto_model._MARGIN
    assert decision.family == (best if clear else first)
    assert decision.family in adapted.trust.reason


def test_without_a_margin_it_finds_classes_that_have_turned(monkeypatch):
    monkeypatch.setattr(auto_model, "_MARGIN", -1.0)
    assert accuracy(calida.adapt(SOURCE, TARGET, model="auto")) > 0.93


def test_no_estimate_is_clear_enough_for_a_margin_of_one(monkeypatch):
    monkeypatch.setattr(auto_model, "_MARGIN", 1.0)
    kept = calida.adapt(SOURCE, TARGET, model="auto")
    assert kept.trust.returned == "source only"
    before, after = (one.predict(TARGET, raw=True).log_probs for one in (kept.source_only, kept))
    assert torch.equal(before, after)


def test_the_mean_is_that_of_the_families(monkeypatch):
    monkeypatch.setattr(auto_model, "_MARGIN", -1.0)
    monkeypatch.setattr(auto_model, "_estimates", lambda candidates, *_: {n: float(n == "mean") for n in candidates})
    mean = calida.adapt(SOURCE, TARGET, model="auto", calibration="none")
    single = {"guard": False, "choice": "last", "calibration": "none"}
    each = [calida.adapt(SOURCE, TARGET, model=name, **single).predict(TARGET).probabilities for name in FAMILIES]
    torch.testing.assert_close(mean.predict(TARGET).probabilities, torch.stack(each).mean(0), atol=1e-5, rtol=0)


def test_a_saved_choice_predicts_the_same_and_says_why(adapted, tmp_path):
    adapted.save(tmp_path)
    loaded = calida.load(tmp_path)
    assert torch.equal(loaded.predict(TARGET).log_probs, adapted.predict(TARGET).log_probs)
    assert loaded.trust.decision == adapted.trust.decision


def test_target_labels_change_nothing(adapted):
    garbage = calida.adapt(SOURCE, TARGET, model="auto", oracle_labels=TRUTH.flip(0))
    assert torch.equal(garbage.predict(TARGET).log_probs, adapted.predict(TARGET).log_probs)


def test_cross_validation_knows_what_can_be_known():
    """On a source that any fold separates, and on labels that no fold can know."""
    x, y = SOURCE
    fitted = calida.adapt(SOURCE, TARGET, "source", model="logistic")
    noise = torch.randint(4, (400,), generator=torch.Generator().manual_seed(0))
    right, random = (
        auto_model.cross_validated(
            FAMILIES["logistic"], Domains(Labeled(x, labels), Labeled(x[:0], labels[:0]), TARGET, 4), fitted, Seeds(0)
        )
        for labels in (y, noise)
    )
    assert right > 0.99
    assert random == pytest.approx(0.25, abs=0.08)


def test_a_class_of_two_rows_is_no_obstacle():
    """A fold may hold both of them, and what is left is one class, which nobody can learn."""
    x, y = SOURCE
    few = [*range(0, 240, 4), 1, 5]
    assert y[few].unique().tolist() == [0, 1]
    fitted = calida.adapt(SOURCE, TARGET, "source", model="logistic")
    domains = Domains(Labeled(x[few], y[few]), Labeled(x[:0], y[:0]), TARGET, 4)
    for seed in range(8):
        assert auto_model.cross_validated(FAMILIES["logistic"], domains, fitted, Seeds(seed)) > 0.9


def test_given_the_target_s_class_shares_source_only_stays_what_it_was():
    """Overlapping classes of another frequency: what is returned is corrected, what it is compared with is not."""
    generator = torch.Generator().manual_seed(3)
    y, truth = (torch.rand(1500, generator=generator) < share for share in (0.5, 0.9))
    x, z = (torch.randn(1500, 4, generator=generator) + 0.8 * one[:, None] for one in (y, truth))
    adapted = calida.adapt((x, y.long()), z, model="auto")
    assert adapted.trust.returned == "source only, with the target's class shares"
    before, after = (float((one.predict(z).labels == truth).double().mean()) for one in (adapted.source_only, adapted))
    assert after > before + 0.02
    codes = {one.code for one in adapted.trust.warnings}
    assert WarningCode.CLASS_COLLAPSED not in codes  # its class shares are meant to differ
