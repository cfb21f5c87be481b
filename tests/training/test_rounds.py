"""Runs as a whole: the firewall, resuming after a kill, numbers that go wrong, what is recorded."""

import json
import multiprocessing
import signal

import pytest
import shift
import torch
from histories import is_round, without_times
from killed import adapt_and_die

import calida
from calida.data import split_validation
from calida.objective import TargetEntropy, Weighted
from calida.seeds import Seeds
from calida.training import Bundle, read_bundle, write_bundle
from calida.uncertainty import renyi_entropy
from calida.validation import RoundRecord

# The last round is returned, whatever it is worth: these tests are about what training did.
LAST = {"choice": "last", "guard": False}
SMALL = {"batch_size": 40, "epochs": 2, "rounds": 3, "passes": 1, "groups": 4, "device": "cpu", **LAST}


def run(recipe="brer-inf-gvr", **options):
    source, target, _ = shift.make(rows=200)
    return calida.adapt(source, target, recipe, **{**SMALL, **options})


def weights(adapted):
    return adapted.classifier.state_dict()


def assert_same(a, b):
    assert all(torch.equal(value, weights(b)[key]) for key, value in weights(a).items())


def test_garbage_target_labels_change_no_weight():
    _, _, truth = shift.make(rows=200)
    blind = run()
    for labels in (truth, torch.zeros(200, dtype=torch.long), 3 - truth):
        told = run(oracle_labels=labels)
        assert_same(blind, told)
        assert told.history[-1].oracle is not None
        assert without_times(told.history, oracle=None) == without_times(blind.history)
    assert blind.history[-1].oracle is None


def test_the_same_seed_is_the_same_run_and_another_is_not():
    state = torch.get_rng_state()
    first, again, other = run(seed=1), run(seed=1), run(seed=2)
    assert_same(first, again)
    assert without_times(first.history) == without_times(again.history)
    assert not torch.equal(*(weights(adapted)["head.mean.weight"] for adapted in (first, other)))
    assert torch.equal(torch.get_rng_state(), state)


def test_weight_zero_is_the_terms_absence_in_a_whole_run():
    plain = run("rer-1", multiplier=0.0)
    assert_same(plain, run("rer-1", order=None))
    assert_same(plain, run("rer-1", order=2.0, multiplier=0.0))
    extra = {"mine": Weighted(TargetEntropy(0.5), 0.0)}
    for recipe in ("rer-1", "rer-inf", "brer-inf-gvr"):
        assert_same(run(recipe), run(recipe, terms=extra))


def test_a_term_of_ones_own_takes_part():
    class Shrink:
        domains = ("source",)

        def __call__(self, step):
            return step.features("source").square().mean()

    plain, shrunk = run("rer-1", rounds=6), run("rer-1", rounds=6, terms={"shrink": Weighted(Shrink(), 10.0)})
    (x, _), _, _ = shift.make(rows=200)
    assert shrunk.predict(x).features.square().mean() < 0.75 * plain.predict(x).features.square().mean()
    assert "shrink" in shrunk.history[-1].terms


@pytest.mark.parametrize("recipe", ["brer-inf-gvr", "dual"])
def test_killed_after_any_round_and_resumed_is_uninterrupted_bit_for_bit(tmp_path, recipe):
    """Each process is killed with SIGKILL after its first round; the last one finds nothing left to do."""
    server = multiprocessing.get_context("forkserver")
    # Processes that need not import torch and scikit-learn anew.
    server.set_forkserver_preload(["calida.estimator", "sklearn.cluster", "sklearn.linear_model", "scipy.optimize"])
    short = {"epochs": 1, "rounds": 2}
    for _ in range(3):
        child = server.Process(target=adapt_and_die, args=(recipe, tmp_path, {**SMALL, **short}))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
    resumed, straight = run(recipe, folder=tmp_path, resume=True, **short), run(recipe, **short)
    assert_same(resumed, straight)
    assert without_times(resumed.history) == without_times(straight.history)


class Stop(Exception):
    """Raised by an observer, as an interrupt would be."""


def test_images_resume_bit_for_bit_across_the_change_of_memory_layout(tmp_path):
    """Convolutions round differently in the layout that gradient variance uses; resuming must not notice."""
    x, target = torch.rand(2, 40, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    options = {"batch_size": 16, "epochs": 1, "rounds": 2, "passes": 1, "groups": 2, "device": "cpu"}

    def adapt(**more):
        return calida.adapt((x, torch.arange(40) % 2), target, "brer-inf-gvr", **options, **LAST, **more)

    def stop(record):
        if is_round(record):
            raise Stop

    for _ in range(3):
        with pytest.raises(Stop):
            adapt(folder=tmp_path, resume=True, observe=stop)
    assert_same(adapt(folder=tmp_path, resume=True), adapt())


def test_killed_while_writing_leaves_the_round_before(tmp_path, monkeypatch):
    """The process dies between the tensors' file and the JSON that points to it."""
    from calida.training import store

    original, count = store.write_atomically, 0

    def dying(path, content):
        nonlocal count
        count += path.suffix == ".json"
        if count == 4:
            raise KeyboardInterrupt
        original(path, content)

    monkeypatch.setattr(store, "write_atomically", dying)
    with pytest.raises(KeyboardInterrupt):
        run(folder=tmp_path)
    monkeypatch.undo()
    assert len(list(tmp_path.glob("checkpoint-*.safetensors"))) == 2
    assert_same(run(folder=tmp_path, resume=True), run())
    assert len(list(tmp_path.glob("checkpoint-*.safetensors"))) == 1


def test_a_folder_is_not_overwritten_and_only_its_own_run_resumes(tmp_path):
    run(folder=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(calida.InputError, match="already holds a run"):
        run(folder=tmp_path)
    for options, word in (
        ({"seed": 5}, "seed"),
        ({"rounds": 4}, "recipe"),
        ({"backbone": torch.nn.Linear(6, 3)}, "network"),
        ({"validation": 0.3}, "source"),
    ):
        with pytest.raises(calida.CheckpointError, match=f"belongs to another run: it differs in {word}"):
            run(folder=tmp_path, resume=True, **options)
    source, target, _ = shift.make(rows=200)
    with pytest.raises(calida.CheckpointError, match="differs in target"):
        calida.adapt(source, target + 1, "brer-inf-gvr", folder=tmp_path, resume=True, **SMALL)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_damaged_checkpoint_is_refused(tmp_path):
    run(folder=tmp_path)
    path = tmp_path / "checkpoint.json"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    with pytest.raises(calida.CheckpointError, match="truncated or not a calida file"):
        run(folder=tmp_path, resume=True)
    path.write_text(whole)
    bundle = read_bundle(tmp_path, "checkpoint")
    for change in ({"multipliers": None}, {"rounds_done": "two"}, {"history": [{"phase": "adapt"}]}):
        write_bundle(tmp_path, "checkpoint", Bundle(bundle.tensors, {**bundle.values, **change}))
        with pytest.raises(calida.CheckpointError, match="is not what calida wrote") as caught:
            run(folder=tmp_path, resume=True)
        assert "\n" not in str(caught.value)


def test_a_loss_that_is_not_finite_stops_and_names_term_and_step(tmp_path):
    class Breaks:
        domains = ("target",)

        def __call__(self, step):
            here = step.seeds.path == ("adapt", 1, "step", 2)
            return step.log_probs("target").mean() * (float("nan") if here else 1.0)

    good = run("rer-1", terms={"breaks": Weighted(Breaks(), 0.1)}, rounds=1)
    with pytest.raises(calida.NonFiniteError) as caught:
        run("rer-1", terms={"breaks": Weighted(Breaks(), 0.1)}, folder=tmp_path, rounds=3)
    assert str(caught.value) == (
        f"adapt round 2: the term 'breaks' is nan at step 3; the last good round is saved in {tmp_path}"
    )
    saved = calida.training.read_bundle(tmp_path, "checkpoint")
    assert saved.values["rounds_done"] == 1
    assert saved.tensors.keys() >= {f"model/{key}" for key in weights(good)}
    assert all(tensor.isfinite().all() for tensor in saved.tensors.values())


def test_a_gradient_that_is_not_finite_does_not_reach_the_checkpoint(tmp_path):
    """sqrt at 0 has a finite value and an infinite slope; the last step of a round is where it could slip through."""

    class Slope:
        domains = ("target",)

        def __call__(self, step):
            here = step.seeds.path == ("adapt", 1, "step", 4)
            return (step.log_probs("target").sum() * 0).sqrt() if here else step.log_probs("target").mean()

    with pytest.raises(calida.NonFiniteError, match="adapt round 2: a gradient made the weights infinite or NaN"):
        run("rer-1", terms={"slope": Weighted(Slope(), 0.1)}, folder=tmp_path)
    saved = calida.training.read_bundle(tmp_path, "checkpoint")
    assert saved.values["rounds_done"] == 1
    assert all(tensor.isfinite().all() for tensor in saved.tensors.values())


def test_an_observer_cannot_change_the_history():
    adapted = run("rer-1", observe=lambda event: is_round(event) and event.terms.clear())
    assert all(record.terms for record in adapted.history)


def test_the_last_record_is_about_what_predict_says():
    adapted = run("brer-inf")
    _, target, _ = shift.make(rows=200)
    recorded = adapted.history[-1].target.entropy
    assert float(adapted.predict(target, raw=True).entropy.mean()) == pytest.approx(recorded, rel=1e-5)


@pytest.mark.parametrize("order", [0.3, 4.0])
def test_the_budget_is_of_the_order_that_is_constrained(order):
    adapted = run("dual", order=order, rounds=1)
    (x, y), _, _ = shift.make(rows=200)
    state = adapted.history[-1].multipliers["target_entropy"]
    source_only = run("source", rounds=0)
    held = split_validation(y, 0.1, Seeds(0))[1]
    expected = renyi_entropy(source_only.predict(x[held], raw=True).log_probs, order).mean()
    assert state.budget == pytest.approx(float(expected), rel=1e-4)


def test_records_tell_what_a_round_did():
    records = []
    adapted = run("brer-inf-gvr", observe=records.append)
    rounds = [record for record in records if is_round(record)]
    assert rounds == adapted.history
    assert [(record.phase, record.round) for record in rounds] == [
        ("pretrain", 0), ("pretrain", 1), ("adapt", 0), ("adapt", 1), ("adapt", 2),
    ]  # fmt: skip
    last = rounds[-1]
    assert RoundRecord.from_json(json.loads(json.dumps(last.to_json(), allow_nan=False))) == last
    assert last.terms.keys() == {"likelihood", "pseudo_label", "gradient_variance", "gradient_variance_bounded"}
    assert last.gradient_variance.keys() == {"source", "target"}
    assert all(value > 0 for value in last.gradient_variance.values())
    assert last.selected.share == pytest.approx(0.93, abs=0.02)  # where the portion ends
    assert sum(last.selected.class_shares) == pytest.approx(1)
    assert last.target.entropy == pytest.approx(last.target.aleatoric + last.target.epistemic)
    assert rounds[0].target is None
    assert rounds[1].target is not None  # source-only's predictions, before adaptation


def test_the_diagnostic_does_not_disturb_training(monkeypatch):
    """Gradient variance is logged every round; a run that does not look ends with the same weights."""
    from calida.training.network_trainer import NetworkTrainer
    from calida.training.trainer import RoundDiagnosis

    looking = run("rer-1")
    monkeypatch.setattr(NetworkTrainer, "diagnose", lambda self: RoundDiagnosis())
    assert_same(looking, run("rer-1"))


def test_nothing_selected_trains_on_source_alone():
    adapted = run("rer-inf", portion=0.0)
    assert adapted.history[-1].selected.share == 0
    assert adapted.history[-1].terms.keys() == {"likelihood"}


def test_variants_of_self_training_do_what_they_say():
    soft = run("rer-inf", temperature=0.25, mrkld=0.1)
    assert soft.history[-1].terms.keys() == {"likelihood", "pseudo_label", "mrkld"}
    assert soft.history[-1].target.entropy > run("rer-inf").history[-1].target.entropy
    for portion in (0.01, 0.5):
        share = run("rer-inf", selection="global", portion=portion).history[-1].selected.share
        assert share == pytest.approx(portion)


def test_schedules_differ_in_steps_but_not_in_samples():
    joint, alternate = run("rer-1", schedule="joint"), run("rer-1", schedule="alternate")
    assert alternate.history[-1].steps == 2 * joint.history[-1].steps


def test_progress_is_printed_a_line_a_round(capsys):
    run("brer-inf", observe=calida.print_rounds)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith("adapt 3/3  source accuracy")
    assert "selected" in lines[-1]
