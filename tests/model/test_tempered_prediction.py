"""A prediction at another temperature, and the samples that it answers for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from calida.errors import InputError
from calida.model import Network, Prediction, build_classifier, predict
from calida.seeds import Seeds
from calida.uncertainty import SCORES, decompose, mean_log_probs, renyi_entropy, temper


@pytest.fixture(params=["Bayesian", "point"])
def prediction(request):
    """Of an untrained network on wide inputs: some samples certain, some not."""
    bayesian = request.param == "Bayesian"
    model = build_classifier(Network((5,), 4, "auto", bayesian, sampled="top" if bayesian else "none"), Seeds(0))
    x = 20 * torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    return predict(model, x, 6, Seeds(0))


@pytest.mark.parametrize("temperature", [0.05, 0.6, 2.5, 20.0])
def test_tempered_is_a_whole_prediction(prediction, temperature):
    tempered = prediction.tempered(temperature)
    torch.testing.assert_close(tempered.probabilities.sum(-1), torch.ones(200))
    torch.testing.assert_close(tempered.log_probs, temper(prediction.log_probs, temperature))
    torch.testing.assert_close(tempered.entropy, renyi_entropy(tempered.log_probs))
    torch.testing.assert_close(tempered.entropy, tempered.aleatoric + tempered.epistemic)
    assert (tempered.aleatoric >= 0).all()
    assert (tempered.epistemic >= 0).all()
    assert torch.equal(tempered.labels, prediction.labels)
    assert torch.equal(tempered.features, prediction.features)


def test_both_parts_of_the_entropy_keep_their_share(prediction):
    tempered = prediction.tempered(3.0)
    shares = [(one.epistemic / one.entropy).clamp(min=0) for one in (prediction, tempered)]
    torch.testing.assert_close(*shares, atol=1e-5, rtol=1e-4)
    assert (tempered.entropy > prediction.entropy).all()


def test_temperature_one_changes_nothing(prediction):
    assert prediction.tempered(1.0) is prediction
    again = prediction.tempered(4.0).tempered(0.25)
    torch.testing.assert_close(again.log_probs, prediction.log_probs, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(again.epistemic, prediction.epistemic.clamp(min=0), atol=1e-4, rtol=1e-3)


def test_certain_predictions_are_tempered_without_nan():
    """Probabilities of exactly 0 and 1, in all samples or in most of them: nothing to share out, or all of it."""
    certain = torch.eye(3)[torch.arange(6) % 3].log()
    samples = torch.stack([certain, certain.roll(1, 0)])  # two draws that contradict each other: all epistemic
    for draws in (certain[None], samples):
        split = decompose(draws)
        made = Prediction(mean_log_probs(draws), *split, torch.zeros(6, 2))
        for temperature in (0.05, 2.0, 20.0):
            tempered = made.tempered(temperature)
            for part in (tempered.probabilities, tempered.entropy, tempered.aleatoric, tempered.epistemic):
                assert part.isfinite().all()
            # -inf stays -inf, and equal probabilities stay equal: there is nothing that a temperature could do
            torch.testing.assert_close(tempered.probabilities, made.probabilities)
            torch.testing.assert_close(tempered.epistemic, made.epistemic, atol=1e-6, rtol=1e-5)


def test_scores_are_of_the_prediction_itself(prediction):
    found = prediction.scores()
    assert tuple(found) == SCORES
    assert torch.equal(found["confidence"], 1 - prediction.probabilities.amax(-1))
    assert torch.equal(found["entropy"], prediction.entropy)
    assert torch.equal(found["mutual-information"], prediction.epistemic)
    assert torch.equal(found["sum"], prediction.entropy + prediction.epistemic)


@pytest.mark.parametrize("order_by", SCORES)
def test_coverage_accepts_the_most_certain_by_any_order(prediction, order_by):
    scores = prediction.scores()[order_by].numpy()
    if order_by == "mutual-information" and not scores.any():
        with pytest.raises(InputError, match="a point network knows no mutual information"):
            prediction.accepted(coverage=0.5, order_by=order_by)
        return
    for coverage, count in ((0.0, 0), (0.25, 50), (1.0, 200)):
        keep = prediction.accepted(coverage=coverage, order_by=order_by).numpy()
        assert set(np.flatnonzero(keep)) == set(np.argsort(scores, kind="stable")[:count])


def test_risk_accepts_as_many_as_it_allows(prediction):
    """By confidence: the longest run of the surest samples whose mean doubt is within the risk."""
    doubt = np.sort(1 - prediction.confidence.double().numpy())
    means = np.cumsum(doubt) / np.arange(1, 201)
    for max_risk in np.linspace(means[0], means[-1], 9):
        keep = prediction.accepted(max_risk=float(max_risk))
        assert int(keep.sum()) == pytest.approx((means <= max_risk).sum(), abs=1)  # float32 scores, a sum in float64
        assert float((1 - prediction.confidence.double())[keep].mean()) <= max_risk + 1e-6
    assert prediction.accepted(max_risk=1.0).all()
    assert not prediction.accepted(max_risk=0.0).any()


def test_asked_for_nothing_all_are_accepted(prediction):
    assert prediction.accepted().all()
    assert torch.equal(prediction.accepted(), prediction.accepted(coverage=1.0))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"coverage": -0.5}, "coverage is a share between 0 and 1, not -0.5"),
        ({"coverage": float("nan")}, "coverage is a share between 0 and 1, not nan"),
        ({"max_risk": 5}, "max_risk is a share between 0 and 1, not 5"),
        ({"coverage": "half"}, "coverage is a share between 0 and 1, not 'half'"),
        ({"coverage": True}, "coverage is a share between 0 and 1, not True"),
        ({"max_risk": [0.1]}, "max_risk is a share between 0 and 1, not"),
        ({"coverage": 0.5, "max_risk": 0.1}, "choose one"),
        ({"order_by": "variance"}, "order_by is one of confidence, .* not 'variance'"),
    ],
)
def test_what_cannot_be_accepted_is_named(prediction, options, sentence):
    with pytest.raises(InputError, match=sentence):
        prediction.accepted(**options)


@pytest.mark.parametrize("kind", ["mask", "places", "list", "slice", "one"])
def test_some_samples_keep_their_names(prediction, kind):
    names, right = [f"s{row}" for row in range(200)], torch.linspace(0, 1, 200)
    named = replace(prediction, names=names, right=right)
    keep = torch.zeros(200, dtype=torch.bool)
    keep[[3, 50, 51]] = True
    rows = {"mask": keep, "places": torch.tensor([3, 50, 51]), "list": [3, 50, 51], "slice": slice(50, 52), "one": 7}
    expected = {"slice": [50, 51], "one": [7]}.get(kind, [3, 50, 51])
    some = named[rows[kind]]
    assert len(some) == len(expected)
    assert list(some.names) == [names[row] for row in expected]
    assert torch.equal(some.log_probs, prediction.log_probs[expected])
    assert torch.equal(some.right, right[expected])
    assert names[expected[0]] in repr(some)


def test_where_many_are_as_likely_right_the_surest_are_answered(prediction):
    flat = replace(prediction, right=torch.full((200,), 0.8, dtype=torch.float64))
    keep = flat.accepted(coverage=0.25)
    assert int(keep.sum()) == 50
    assert float(flat.confidence[keep].min()) >= float(flat.confidence[~keep].max())
