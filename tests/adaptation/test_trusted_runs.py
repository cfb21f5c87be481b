"""Trust without target labels in whole runs: the round that is kept, the guard, temperatures, several recipes."""

from dataclasses import replace
from unittest import mock

import pytest
import shift
import torch
from histories import is_round, is_start, without_times

import calida
from calida.adaptation import AUTO_RECIPES, Trust, task
from calida.adaptation.panel_checks import PanelFeatures, fit_panel_checks
from calida.data import Labeled, split_validation
from calida.estimation import (
    CALIBRATIONS,
    DEFAULT_CALIBRATION,
    CalibrationData,
    averaged,
    fit_temperature,
    name_calibration,
)
from calida.estimation.temperature import lowest_temperature
from calida.objective import Weighted
from calida.panel import MEMBERS
from calida.run_warnings import WarningCode
from calida.seeds import Seeds
from calida.training import read_bundle
from calida.validation import (
    DECIDING,
    ENSV,
    PSEUDOCAL_SHARE,
    SOURCE_ONLY,
    VALIDATORS,
    Predictor,
    Returned,
    returned_record,
    validate,
)

SMALL = {"batch_size": 40, "epochs": 2, "rounds": 3, "passes": 1, "groups": 4, "device": "cpu"}
SOURCE, TARGET, TRUTH = shift.make(rows=200)


def run(recipe="brer-inf", target=TARGET, **options):
    return calida.adapt(SOURCE, target, recipe, **{**SMALL, **options})


def weights(adapted):
    return adapted.classifier.state_dict()


def assert_same(a, b):
    assert a.keys() == b.keys()
    assert all(torch.equal(value, b[key]) for key, value in a.items())


def predictor(adapted):
    """What the run looked at its classifiers with."""
    (x, y), recipe = SOURCE, adapted.recipe
    held = split_validation(y, 0.1, Seeds(0))[1]
    return Predictor(
        Labeled(x[held], y[held]), TARGET, recipe.posterior.num_samples, Seeds(0), 4 * recipe.optimization.batch_size
    )


@pytest.fixture
def keep(monkeypatch):
    """Rounds of adaptation that are preferred to those before them, by their numbers from 0."""

    def only(*rounds):
        monkeypatch.setattr(task, "prefers", lambda rule, record, *_: record.round in rounds)

    return only


@pytest.mark.parametrize(("preferred", "returned"), [((), -1), ((0,), 0), ((0, 1), 1), ((0, 2), 2)])
def test_the_round_that_was_kept_is_returned(keep, tmp_path, preferred, returned):
    """Its weights are those of the checkpoint after it, and predict as was recorded then."""
    keep(*preferred)
    saved = []

    def observe(record):
        if is_round(record):
            tensors = read_bundle(tmp_path, "checkpoint").tensors
            saved.append({key.removeprefix("model/"): tensors[key] for key in tensors if key.startswith("model/")})

    adapted = run(folder=tmp_path, observe=observe, guard=False)
    assert_same(weights(adapted), saved[2 + returned])
    record = adapted.history[2 + returned]
    assert returned_record(adapted.history) == record
    assert adapted.trust.returned == (SOURCE_ONLY if returned < 0 else f"round {returned + 1} of 3")
    prediction = adapted.predict(TARGET, raw=True)
    assert float(prediction.entropy.mean()) == pytest.approx(record.target.entropy, rel=1e-5)
    assert float(prediction.confidence.mean()) == pytest.approx(record.target.confidence, rel=1e-5)
    values = validate(predictor(adapted).predict_domains(adapted.classifier), Seeds(0))
    assert values == pytest.approx(record.validators, rel=1e-4)
    others = [past.target.entropy for past in adapted.history[1:] if past is not record]
    assert all(abs(entropy - record.target.entropy) > 1e-4 for entropy in others)


class Stop(Exception):
    """Raised by an observer, as an interrupt would be."""


def stop(record):
    if is_round(record):
        raise Stop


@pytest.mark.parametrize("preferred", [(), (0,), (0, 1), None], ids=str)
def test_interrupted_after_any_round_and_resumed_returns_the_same_round(keep, tmp_path, preferred):
    """Also one that was followed by others, of which the checkpoint holds both weights; None is the rule itself."""
    if preferred is not None:
        keep(*preferred)
    options = {"guard": preferred is None, "recipe": "dual"}
    for _ in range(5):
        with pytest.raises(Stop):
            run(folder=tmp_path, resume=True, observe=stop, **options)
    resumed, straight = run(folder=tmp_path, resume=True, **options), run(**options)
    assert_same(weights(resumed), weights(straight))
    assert_same(weights(resumed.source_only), weights(straight.source_only))
    assert without_times(resumed.history) == without_times(straight.history)
    assert resumed.trust == straight.trust
    if preferred is not None:
        assert straight.trust.returned == (f"round {len(preferred)} of 3" if preferred else SOURCE_ONLY)


class ToOneClass:
    """Drives every target sample to class 0."""

    domains = ("target",)

    def __call__(self, step):
        return -step.log_probs("target")[:, 0].mean()


COLLAPSING = {
    "recipe": "rer-1",
    "terms": {"one class": Weighted(ToOneClass(), 50.0)},
    "adaptation.learning_rate": 0.01,
    "rounds": 5,
}


def test_the_guard_ends_a_run_that_collapses_and_returns_the_source_only_classifier(tmp_path):
    adapted = run(**COLLAPSING, folder=tmp_path)
    *before, last = adapted.history
    assert last.stopped.code == WarningCode.CLASS_TAKES_OVER
    assert last.stopped.values["name"] == "0"
    assert not any(record.stopped is not None for record in before)
    assert last.phase == "adapt"
    assert last.round + 1 < 5
    assert adapted.trust.returned == SOURCE_ONLY
    assert adapted.trust.decision.stopped_round == last.round
    assert replace(last.stopped, round=last.round) in adapted.trust.warnings
    alone = run("source", rounds=0)
    assert_same(weights(adapted), weights(alone))
    assert_same(weights(adapted), weights(adapted.source_only))
    assert adapted.temperature == pytest.approx(alone.temperature)
    resumed = run(**COLLAPSING, folder=tmp_path, resume=True)  # nothing is left to do
    assert resumed.history == adapted.history
    assert_same(weights(resumed), weights(alone))


def test_without_the_guard_a_collapsing_run_goes_to_its_end():
    adapted = run(**COLLAPSING, guard=False, choice="last")
    assert [record.round for record in adapted.history if record.phase == "adapt"] == list(range(5))
    assert not any(record.stopped is not None for record in adapted.history)
    assert (adapted.predict(TARGET).labels == 0).all()
    assert adapted.trust.returned == "round 5 of 5"
    assert WarningCode.CLASS_COLLAPSED in {one.code for one in adapted.trust.warnings}  # which anybody can see


@pytest.mark.parametrize("options", [{}, {"choice": "source", "guard": False}], ids=str)
def test_garbage_target_labels_change_nothing_that_is_returned(options):
    """Weights, the round that was chosen, temperature, estimate and all that is said of them."""
    blind = run("rer-1", **options)
    for labels in (TRUTH, torch.zeros(200, dtype=torch.long)):
        told = run("rer-1", oracle_labels=labels, **options)
        assert_same(weights(blind), weights(told))
        assert told.trust == blind.trust
        assert without_times(told.history, oracle=None) == without_times(blind.history)
        assert told.history[-1].oracle is not None


@pytest.mark.parametrize("name", ["source", "entropy", "dev"])
def test_a_validators_name_returns_its_best_round(name):
    adapted = run("rer-1", choice=name, guard=False)
    keys = [VALIDATORS[name].key(record.validators[name]) for record in adapted.history[2:]]
    assert adapted.trust.returned == f"round {keys.index(max(keys)) + 1} of 3"


def test_choice_and_guard_do_not_touch_training():
    """Every round is the same round, whichever is returned in the end."""
    runs = [run("rer-1", **options) for options in ({}, {"choice": "last", "guard": False}, {"choice": "source"})]
    for other in runs[1:]:
        assert without_times(runs[0].history, kept=True) == without_times(other.history, kept=True)


def test_each_calibration_finds_its_temperature_on_the_returned_round(tmp_path):
    """A finished run is settled again: no weight moves, and the temperature is that of a look from outside."""
    first = run(folder=tmp_path, calibration="none")
    view = predictor(first)
    predictions = view.predict_domains(first.classifier)
    if first.trust.decision.returned == Returned.AVERAGE:
        predictions = averaged(view.predict_domains(first.source_only.classifier), predictions)
    data = CalibrationData(predictions, view.mix(first.classifier, predictions.target.labels, PSEUDOCAL_SHARE))
    assert first.temperature == 1.0
    for given in (*CALIBRATIONS, DEFAULT_CALIBRATION):
        again = run(folder=tmp_path, resume=True, calibration=given)
        name = name_calibration(given, images=False, checked=True)
        data = replace(data, accuracy=again.trust.accuracy.value)
        assert_same(weights(again), weights(first))
        assert again.trust.calibration == name
        assert again.temperature == pytest.approx(CALIBRATIONS[name].temperature(data), rel=1e-4)
        assert again.trust.accuracy == first.trust.accuracy  # by agreement, whatever the calibration
        if name == "matched":  # unless so few held-out samples allow no sharpening
            confidence = float(again.predict(TARGET).confidence.mean())
            assert confidence <= again.trust.accuracy.value + 1e-3
            bounded = again.temperature == lowest_temperature(len(predictions.labels))
            assert bounded or confidence == pytest.approx(again.trust.accuracy.value, abs=1e-3)
        if name == "source":
            held = view.validation
            fitted = fit_temperature(first.predict(held.x, raw=True).log_probs, held.y)
            assert again.temperature == pytest.approx(fitted, rel=1e-4)


@pytest.fixture(scope="module")
def adapted():
    return run(guard=False, choice="last", calibration="pseudocal")


def test_predictions_are_raw_ones_at_the_temperature(adapted):
    assert adapted.temperature == adapted.trust.temperature != 1.0
    raw, calibrated = adapted.predict(TARGET, raw=True), adapted.predict(TARGET)
    expected = raw.tempered(adapted.temperature)
    for part in ("log_probs", "entropy", "aleatoric", "epistemic", "features"):
        assert torch.equal(getattr(calibrated, part), getattr(expected, part))
    assert torch.equal(calibrated.labels, raw.labels)
    assert not torch.allclose(calibrated.log_probs, raw.log_probs, atol=1e-3)
    assert adapted.source_only.temperature == 1.0


def test_saved_and_loaded_is_trusted_alike(adapted, tmp_path):
    adapted.save(tmp_path)
    loaded = calida.load(tmp_path, device="cpu")
    assert loaded.trust == adapted.trust
    assert loaded.temperature == adapted.temperature
    assert torch.equal(loaded.predict(TARGET).log_probs, adapted.predict(TARGET).log_probs)
    assert torch.equal(loaded.predict(TARGET, raw=True).log_probs, adapted.predict(TARGET, raw=True).log_probs)
    assert Trust.from_json(adapted.trust.to_json()) == adapted.trust
    assert torch.equal(loaded.predict_sets(TARGET, 0.8), adapted.predict_sets(TARGET, 0.8))
    assert loaded.source_only.trust is None


def test_classes_that_differ_in_frequency_alone_are_weighed_and_nothing_else(tmp_path):
    """Equal classes two apart, and a target that has nine of the one for one of the other: 84 % without a word of it,
    93 % at the boundary that Bayes' rule puts between them."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.arange(2000) % 1000 < torch.where(torch.arange(2000) < 1000, 500, 100)).long()
    x = torch.randn(2000, 2, generator=generator)
    x[:, 0] += 2 * labels
    source, target, truth = (x[:1000], labels[:1000]), x[1000:], labels[1000:]
    options = {"epochs": 20, "rounds": 1, "passes": 1, "device": "cpu"}
    adapted = calida.adapt(source, target, **options)
    assert adapted.trust.decision.returned == Returned.PRIOR_CORRECTED
    before, after = (one.predict(target, raw=True) for one in (adapted.source_only, adapted))
    right = [float((one.labels == truth).double().mean()) for one in (before, after)]
    assert right[1] > right[0] + 0.04
    assert adapted.trust.accuracy.value == pytest.approx(right[1], abs=0.05)
    found = returned_record(adapted.history).shift
    ratio = torch.tensor(found.target_shares) / torch.tensor(found.source_shares)
    torch.testing.assert_close(after.log_probs, (before.log_probs + ratio.log()).log_softmax(-1), atol=1e-4, rtol=1e-3)
    adapted.save(tmp_path)
    assert torch.equal(calida.load(tmp_path, "cpu").predict(target).log_probs, adapted.predict(target).log_probs)
    alone = calida.adapt(source, target, **options, guard=False)
    assert alone.trust.returned == "round 1 of 1"
    few = calida.adapt(source, target[:8] + 9, **options, start=adapted.source_only)  # of which nothing can be told
    assert few.history[-2].shift.separation is None


def test_an_adapted_classifier_gets_back_the_class_shares_that_its_batches_did_not_have():
    """Moved clusters, nine of the one class for one of the other: batches are equal, and answers by Bayes' rule not."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.arange(1200) % 600 < torch.where(torch.arange(1200) < 600, 300, 60)).long()
    x = torch.randn(1200, 2, generator=generator)
    x[:, 0] += 3 * labels
    x[600:, 1] += 3
    source, target = (x[:600], labels[:600]), x[600:]
    options = {"epochs": 10, "rounds": 1, "device": "cpu", "guard": False}
    adapted = calida.adapt(source, target, "calida", **options)
    with mock.patch("calida.adaptation.finalize._learned_prior_offsets", return_value=None):
        equal = calida.adapt(source, target, "calida", **options)
    assert adapted.trust.decision == replace(equal.trust.decision, weighs_classes=True)
    seen = adapted.history[-2].target  # by the source-only classifier
    predicted, error = torch.tensor(seen.class_shares), 1 - seen.confidence
    shares = predicted + torch.tensor([-1.0, 1.0]) * error * (predicted[0] - predicted[1]).sign()
    before, after = (one.predict(target, raw=True).log_probs for one in (equal, adapted))
    torch.testing.assert_close(after, (before + (2 * shares).log()).log_softmax(-1), atol=1e-4, rtol=1e-3)
    assert not torch.allclose(before, after, atol=0.1)
    even = calida.adapt(source, target[torch.cat([torch.arange(60), torch.arange(540, 600)])], "calida", **options)
    assert not even.trust.decision.weighs_classes


def test_the_data_are_looked_at_while_the_guard_is_on():
    far = TARGET.clone()
    far[:, 4] *= 1000
    options = {"target": far, "rounds": 1, "recipe": "rer-1"}
    warnings = run(**options).trust.warnings
    assert [one.values["feature"] for one in warnings if one.code == WarningCode.FEATURE_SCALE] == [4]
    assert run(**options, guard=False).trust.warnings == ()


def test_images_of_any_number_of_channels_can_be_trusted():
    x = torch.rand(24, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    options = {"batch_size": 8, "epochs": 1, "rounds": 1, "device": "cpu"}
    made = calida.adapt((x, torch.arange(24) % 2), x + 0.1, "rer-1", **options)
    assert 0 <= made.trust.accuracy.low <= made.trust.accuracy.value <= made.trust.accuracy.high <= 1


AUTO = {"recipe": "auto", "rounds": 2}


@pytest.fixture(scope="module")
def automatic():
    records = []
    return run(**AUTO, observe=records.append), records


def test_auto_returns_the_run_of_one_of_its_recipes(automatic):
    """Bit for bit what the recipe gives alone, with the same temperature."""
    chosen, _ = automatic
    assert chosen.recipe.name in AUTO_RECIPES
    alone = run(chosen.recipe.name, rounds=2)
    assert_same(weights(chosen), weights(alone))
    assert_same(weights(chosen.source_only), weights(alone.source_only))
    assert chosen.temperature == alone.temperature
    assert chosen.trust.accuracy.value == alone.trust.accuracy.value
    assert chosen.trust.returned == alone.trust.returned
    assert replace(chosen.trust.decision, tried=1, picks={}) == alone.trust.decision
    assert without_times(chosen.history, recipe=None) == without_times(alone.history)


TRIED = ["consensus", *AUTO_RECIPES[1:]]  # samples are vectors


def test_auto_tells_what_validators_make_of_all_recipes(automatic):
    chosen, records = automatic
    table = chosen.trust.candidates
    assert list(table) == TRIED
    assert max(table, key=lambda name: table[name][DECIDING]) == chosen.recipe.name
    assert all(row.keys() == {*VALIDATORS, ENSV} for row in table.values())
    assert chosen.trust.decision.tried == len(AUTO_RECIPES)
    assert chosen.trust.decision.picks[DECIDING] == chosen.recipe.name
    returned = returned_record(chosen.history).validators
    assert {name: table[chosen.recipe.name][name] for name in VALIDATORS} == returned
    starts = [record for record in records if is_start(record)]
    assert [record.recipe for record in starts] == TRIED
    assert [len(record.history) for record in starts] == [0, 4, 8]
    assert Trust.from_json(chosen.trust.to_json()) == chosen.trust


def test_auto_is_resumed_in_the_recipe_that_was_interrupted(automatic, tmp_path):
    chosen, records = automatic
    seen = []

    def stop_late(record):
        seen.append(record)
        if sum(is_round(one) for one in seen) == 6:  # in the middle of the second recipe
            raise Stop

    with pytest.raises(Stop):
        run(**AUTO, folder=tmp_path, observe=stop_late)
    after = []
    resumed = run(**AUTO, folder=tmp_path, resume=True, observe=after.append)
    assert_same(weights(resumed), weights(chosen))
    assert resumed.trust == chosen.trust
    assert without_times(resumed.history) == without_times(chosen.history)
    rounds = [record for record in seen + after if is_round(record)]
    assert without_times(rounds) == without_times(record for record in records if is_round(record))
    with pytest.raises(calida.InputError, match="already holds a run"):
        run(**AUTO, folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"choice": "best"}, "unknown choice 'best'; there are default"),
        ({"calibration": "plat"}, "unknown calibration 'plat'; there are auto"),
    ],
)
def test_unknown_names_are_refused_before_any_work(options, sentence, tmp_path):
    with pytest.raises(calida.InputError, match=sentence):
        run(folder=tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_what_check_classifiers_say_of_the_returned_one_is_kept(tmp_path):
    adapted = run("rer-1")
    said = adapted.trust.agreements
    assert [one.view for one in said] == ["shared"] * len(MEMBERS) + ["own"] * len(MEMBERS)
    assert sum(one.weight for one in said) == pytest.approx(1)
    checks = fit_panel_checks(features_of_run(), 4, Seeds(0))
    returned = adapted.predict(TARGET).labels
    for one, opinion in zip(said, checks.panel.opinions, strict=True):
        assert one.target == pytest.approx(float((opinion.target.argmax(-1) == returned).double().mean()))
    shares = [float((returned == label).double().mean()) for label in range(4)]
    expected = sum(share * (right or 0) for share, right in zip(shares, adapted.trust.by_class, strict=True))
    assert expected == pytest.approx(adapted.trust.accuracy.value, abs=1e-6)  # class by class, the whole
    adapted.save(tmp_path)
    assert calida.load(tmp_path).trust == adapted.trust


def features_of_run():
    """The rows that the run's panel learns from and is asked about."""
    (x, y) = SOURCE
    fit, held = split_validation(y, 0.1, Seeds(0))
    return PanelFeatures(x[fit], y[fit], x[held], y[held], TARGET)
