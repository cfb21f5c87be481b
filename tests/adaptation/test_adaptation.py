"""The front door: what goes in, what comes out, and one clear sentence for what cannot go in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import shift
import torch
from histories import is_round, without_times
from people import people
from safetensors.torch import save_file
from torch import nn

import calida
from calida.data import as_frame
from calida.objective import TargetEntropy
from calida.recipes import phases
from calida.uncertainty import renyi_entropy

SMALL = {"batch_size": 40, "epochs": 2, "rounds": 2, "passes": 1, "device": "cpu"}
IMAGES = {**SMALL, "batch_size": 8, "epochs": 1, "rounds": 1}
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])


@pytest.fixture(scope="module")
def adapted():
    source, target, _ = shift.make(rows=200)
    return calida.adapt(source, target, "brer-inf", **SMALL)


def test_a_prediction_has_all_that_one_can_act_on(adapted):
    _, target, _ = shift.make(rows=200)
    prediction = adapted.predict(target)
    assert len(prediction) == 200
    torch.testing.assert_close(prediction.probabilities.sum(-1), torch.ones(200))
    assert torch.equal(prediction.labels, prediction.probabilities.argmax(-1))
    torch.testing.assert_close(prediction.entropy, renyi_entropy(prediction.log_probs))
    torch.testing.assert_close(prediction.entropy, prediction.aleatoric + prediction.epistemic)
    assert (prediction.epistemic > -1e-6).all()
    assert adapted.recipe.name == "brer-inf"
    assert [record.phase for record in adapted.history] == ["pretrain"] * 2 + ["adapt"] * 2


def test_batches_shrink_to_the_domain_that_they_come_from():
    """A small source makes them smaller; a small target is a batch of its own, and pre-training goes on as ever."""
    source, target, _ = shift.make(rows=200)
    little = tuple(part[:34] for part in source)
    few = calida.adapt(little, target, "rer-inf-gvr", **SMALL)
    assert few.recipe.optimization.batch_size == 30  # less what is held out
    same = calida.adapt(little, target, "rer-inf-gvr", **{**SMALL, "batch_size": 30})
    assert all(torch.equal(value, same.classifier.state_dict()[k]) for k, value in few.classifier.state_dict().items())
    for rows in (3, 30):
        history = calida.adapt(source, target[:rows], "rer-1", **SMALL).history
        assert [record.steps for record in history if record.phase == "pretrain"] == [180 // 40] * 2


def test_a_feature_that_only_varies_in_the_target_does_not_drown_the_others():
    """Noise beside the features, a thousand times as large in target: as if it were not there, or nearly."""
    (x, y), target, truth = shift.make(rows=400)
    noise = torch.randn(800, 1, generator=torch.Generator().manual_seed(0))
    wider = (torch.cat([x, noise[:400] / 1000], 1), y), torch.cat([target, noise[400:]], 1)
    unlike = {"on_mismatch": "ignore"}  # that much more is refused, unless one knows it
    options = {"recipe": "source", "epochs": 10, "batch_size": 40, "device": "cpu", **unlike}
    plain, beside = (calida.adapt(*data, **options).predict(data[1], **unlike) for data in (((x, y), target), wider))
    accuracies = [float((prediction.labels == truth).float().mean()) for prediction in (plain, beside)]
    assert accuracies[1] > accuracies[0] - 0.05


def test_the_classifier_before_adaptation_is_kept(tmp_path):
    source, target, _ = shift.make(rows=200)
    alone = calida.adapt(source, target, "source", **SMALL | {"rounds": 0})
    options = {**SMALL, "choice": "last", "guard": False, "folder": tmp_path}
    adapted = calida.adapt(source, target, "rer-1", **options)
    resumed = calida.adapt(source, target, "rer-1", resume=True, **options)
    adapted.save(tmp_path / "saved")
    loaded = calida.load(tmp_path / "saved", "cpu")
    expected = alone.predict(target, raw=True).log_probs
    for one in (adapted, resumed, loaded):
        assert torch.equal(one.source_only.predict(target, raw=True).log_probs, expected)
    assert not torch.equal(adapted.predict(target, raw=True).log_probs, expected)


def test_arrays_lists_and_tensors_are_the_same_input(adapted):
    _, target, _ = shift.make(rows=200)
    expected = adapted.predict(target).log_probs
    for same in (target.numpy(), target.numpy().astype(np.float64), target.tolist(), target.double()):
        torch.testing.assert_close(adapted.predict(same).log_probs, expected, atol=1e-5, rtol=1e-5)


def test_saved_and_loaded_is_the_same_classifier(adapted, tmp_path):
    _, target, _ = shift.make(rows=200)
    adapted.save(tmp_path / "model")
    loaded = calida.load(tmp_path / "model", device="cpu")
    assert torch.equal(loaded.predict(target).log_probs, adapted.predict(target).log_probs)
    assert loaded.history == adapted.history
    assert loaded.recipe == adapted.recipe
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}


def test_a_backbone_of_ones_own_is_saved_and_loaded_with_the_module(tmp_path):
    source, target, _ = shift.make(rows=200)
    own = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
    before = own[0].weight.clone()
    made = calida.adapt(source, target, "rer-1", backbone=own, **SMALL)
    assert torch.equal(own[0].weight, before)
    made.save(tmp_path)
    assert torch.equal(calida.load(tmp_path, backbone=own).predict(target).log_probs, made.predict(target).log_probs)
    with pytest.raises(calida.InputError, match="give the module as backbone="):
        calida.load(tmp_path)
    with pytest.raises(calida.CheckpointError, match="do not fit this network"):
        calida.load(tmp_path, backbone=nn.Linear(6, 16))


@pytest.mark.parametrize("shape", [(28, 28), (1, 28, 28), (28, 28, 3), (3, 16, 20)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_in_every_layout(shape, dtype):
    generator = np.random.default_rng(0)
    x, target = generator.integers(0, 256, (2, 30, *shape)).astype(dtype)
    made = calida.adapt((x, np.arange(30) % 3), target, "rer-inf", **IMAGES)
    assert made.network.input_shape in {(1, 28, 28), (3, 28, 28), (3, 16, 20)}
    assert made.predict(target).log_probs.isfinite().all()


def test_labels_may_be_floats_or_bools_that_are_whole():
    (x, y), target, _ = shift.make(rows=200)
    calida.adapt((x, (y % 2).double()), target, "source", **SMALL)
    made = calida.adapt((x, y % 2 == 0), target, "source", **SMALL)
    assert made.network.num_classes == 2
    assert calida.adapt((x, y), target, "source", num_classes=9, **SMALL).predict(target).log_probs.shape == (200, 9)


def spoiled(x, value):
    x = x.clone()
    x[7, 1] = value
    return x


(X, Y), TARGET, _ = shift.make(rows=200)


@pytest.mark.parametrize(
    ("source", "target", "options", "sentence"),
    [
        ((X, Y[:-1]), TARGET, {}, r"source has 200 samples but labels of shape \(199,\)"),
        ((X, Y - 1), TARGET, {}, "source label -1 at index 0 is outside 0..2"),
        ((X, Y), TARGET, {"num_classes": 3}, r"source label 3 at index 3 is outside 0..2 \(50 such labels\)"),
        ((X, Y + 0.5), TARGET, {}, "source labels must be whole numbers"),
        ((X, ["cat"] * 200), TARGET, {}, "source labels name only one class"),
        ((X, ["cat", 1] * 100), TARGET, {}, "source labels must be whole numbers 0..K-1, or words"),
        ((FRAME, Y), FRAME[["b"]], {}, "target: the column 'a' of the source is missing"),
        ((FRAME, Y), X, {}, "source is a data frame and target is not"),
        ((FRAME * 0, Y), FRAME, {}, "source has no feature columns: left out as constant: 'a', 'b'"),
        ((X, Y * 0), TARGET, {}, "only one class"),
        ((X, Y + 1), TARGET, {}, r"go up to 4 and none is 0: number the 4 classes 0..3, or give num_classes=5"),
        ((X, Y * 100_000), TARGET, {}, "go up to 300000 and none is 1"),
        (
            (spoiled(X, float("nan")), Y),
            TARGET,
            {},
            "source has NaN or infinite values in 1 of 200 samples, .* index 7",
        ),
        ((X, Y), spoiled(TARGET, float("inf")), {}, "target has NaN or infinite values in 1 of 200 samples"),
        ((X.double() * 1e300, Y), TARGET, {}, "source has values up to .*, too large for 32 bits"),
        (
            (X, Y),
            np.ma.masked_greater(TARGET.numpy(), TARGET.max() - 1e-6),
            {},
            "target samples are masked in 1 of 200",
        ),
        ((X, np.ma.masked_equal(Y.numpy(), 3)), TARGET, {}, "source labels are masked in 50 of 200 rows, .* index 3"),
        ((X, Y), TARGET[:, :4], {}, r"source samples have shape \(6,\) but target samples have shape \(4,\)"),
        ((X, Y), TARGET[:1], {}, "target has 1 sample; training needs at least two"),
        ((X, Y), TARGET[:0], {}, "target is empty"),
        ((X, Y), np.ma.zeros((0, 6)), {}, "target is empty"),
        ((X[:, 0], Y), TARGET, {}, r"source samples have shape \(200,\); expected vectors"),
        ((X, Y), [["a"] * 6] * 200, {}, "target samples are not a numeric array"),
        ((X, Y), [[1.0], [1.0, 2.0]], {}, "target samples are not a numeric array"),
        ((X, Y), (TARGET, Y), {}, "target is an array of samples without labels"),
        (X, TARGET, {}, r"source is a pair \(samples, labels\)"),
        ((X, Y), TARGET, {"recipe": "rer-infty"}, "unknown recipe 'rer-infty'; did you mean rer-inf"),
        ((X, Y), TARGET, {"round": 3}, "unknown setting 'round'; did you mean adaptation.rounds"),
        ((X, Y), TARGET, {"validation": 1.5}, "validation share"),
        ((X, Y), TARGET, {"oracle_labels": Y[:5]}, "oracle has 200 samples but labels of shape"),
        ((X, Y), TARGET, {"backbone": "resnet"}, "unknown backbone 'resnet'"),
        ((X, Y), TARGET, {"backbone": "dtn"}, "reads images"),
        (((X * 255).abs().byte(), Y), TARGET * 255, {}, "source is uint8 .* but target is float with values from"),
        ((X, Y), TARGET.abs().byte(), {}, "target is uint8 .* but source is float with values from -"),
        ((X, Y), TARGET, {"seed": 0.5}, "seed must be a whole number, not 0.5"),
        ((X, Y), TARGET, {"num_classes": "4"}, "num_classes must be a whole number, not '4'"),
        ((X, Y), TARGET, {"device": "gpu"}, "unknown device 'gpu'"),
        ((X, Y), TARGET, {"device": "meta"}, "the device meta cannot be used here"),
        ((X, Y), TARGET, {"backbone": nn.Linear(5, 3)}, r"the backbone cannot read samples of shape \(6,\)"),
        ((X, Y), TARGET, {"backbone": None}, "backbone is a name or an nn.Module, not None"),
        ((X, Y), TARGET, {"recipe": "rer-1-gvr", "part": "tail", "groups": 4}, "no parameter matches"),
        ((X, Y), TARGET, {"recipe": None}, "recipe is a word or Recipe, not None"),
        ((X, Y), TARGET, {"terms": {"likelihood": calida.Weighted(TargetEntropy())}}, "a term 'likelihood' of its own"),
        ((X, Y), TARGET, {"rounds": 0, "terms": {"a": calida.Weighted(TargetEntropy())}}, "no rounds of adaptation"),
        ((X[:40], torch.arange(40)), TARGET, {"batch_size": 4}, "no class has two samples"),
        ((X, Y.float().masked_fill(Y == 0, float("nan"))), TARGET, {}, "source labels must be whole numbers"),
    ],
)
def test_bad_input_gets_one_clear_sentence(source, target, options, sentence, tmp_path):
    with pytest.raises(calida.InputError, match=sentence) as caught:
        calida.adapt(source, target, folder=tmp_path, **{**SMALL, **options})
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("x", "options", "sentence"),
    [
        (TARGET[:, :3], {}, r"samples have shape \(3,\); this classifier reads \(6,\)"),
        (spoiled(TARGET, float("nan")), {}, "the input has NaN"),
        (TARGET, {"num_samples": 0}, "num_samples must be at least 1"),
        (TARGET, {"num_samples": 2.5}, "num_samples must be a whole number"),
        (TARGET, {"batch_size": 0}, "batch_size must be at least 1"),
        (TARGET.abs().byte(), {}, "the input is uint8 .* but the source that this classifier was trained on is float"),
    ],
)
def test_bad_input_to_predict(adapted, x, options, sentence):
    with pytest.raises(calida.InputError, match=sentence):
        adapted.predict(x, **options)


def test_numpy_numbers_are_numbers(tmp_path):
    source, target, _ = shift.make(rows=200)
    plain = calida.adapt(source, target, "rer-1", seed=3, **SMALL)
    numpy = calida.adapt(source, target, "rer-1", seed=np.int64(3), num_classes=np.int32(4), **SMALL)
    assert torch.equal(plain.predict(target).log_probs, numpy.predict(target).log_probs)
    numpy.save(tmp_path)


def test_arrays_of_every_make_are_read(adapted):
    _, target, _ = shift.make(rows=200)
    array = target.numpy()
    frozen = array.copy()
    frozen.setflags(write=False)
    expected = adapted.predict(target).log_probs
    for same in (
        array[::-1].copy()[::-1],
        array.astype(">f4"),
        frozen,
        target.to_sparse(),
        target.clone().requires_grad_(),
    ):
        torch.testing.assert_close(adapted.predict(same).log_probs, expected)


def test_images_trained_as_bytes_are_not_read_as_large_floats():
    x = torch.randint(0, 256, (40, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    made = calida.adapt((x, torch.arange(40) % 2), x, "source", **IMAGES)
    torch.testing.assert_close(made.predict(x).log_probs, made.predict(x.float() / 255).log_probs)
    with pytest.raises(calida.InputError, match="but the input is float with values from 0 to 255"):
        made.predict(x.float())


def test_monte_carlo_dropout_draws_more_than_once(adapted):
    source, target, _ = shift.make(rows=200)
    point = calida.adapt(source, target, "source", **SMALL)
    assert (point.predict(target, monte_carlo_dropout=True).epistemic > 1e-6).float().mean() > 0.9


def test_folders_are_checked_before_training(tmp_path):
    source, target, _ = shift.make(rows=200)
    with pytest.raises(calida.InputError, match="resume=True needs the folder"):
        calida.adapt(source, target, resume=True, **SMALL)
    (tmp_path / "file").touch()
    with pytest.raises(calida.InputError, match="cannot be used: File exists"):
        calida.adapt(source, target, folder=tmp_path / "file", **SMALL)


@pytest.mark.parametrize(
    "own",
    [
        nn.Linear(6, 8).double(),
        nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, track_running_stats=False)),
        nn.Identity(),
    ],
    ids=["float64", "no running statistics", "no parameters"],
)
def test_unusual_backbones_work(own):
    source, target, _ = shift.make(rows=200)
    made = calida.adapt(source, target, "rer-1-gvr", backbone=own, groups=4, **SMALL)
    assert made.predict(target).log_probs.isfinite().all()


def test_a_foreign_folder_is_not_a_model(tmp_path):
    with pytest.raises(calida.CheckpointError, match="there is no model in"):
        calida.load(tmp_path)
    (tmp_path / "model.json").write_text('{"weights": "pickle.pkl"}')
    with pytest.raises(calida.CheckpointError, match="is not a calida model"):
        calida.load(tmp_path)


def test_adaptation_from_a_start_is_the_whole_run_bit_for_bit():
    source, target, truth = shift.make(rows=120)
    options = {"epochs": 2, "batch_size": 20, "seed": 5, "device": "cpu"}
    whole = calida.adapt(source, target, "brer-inf", rounds=2, oracle_labels=truth, **options)
    start = calida.adapt(source, target, "bsource", oracle_labels=truth, **options)
    parted = calida.adapt(source, target, "brer-inf", rounds=2, oracle_labels=truth, start=start, **options)
    for name, value in whole.classifier.state_dict().items():
        assert torch.equal(parted.classifier.state_dict()[name], value), name
    assert without_times(parted.history) == without_times(whole.history)
    assert torch.equal(parted.source_only.predict(target).log_probs, whole.source_only.predict(target).log_probs)


def test_a_start_may_come_from_another_target():
    """Its records are then looked at anew: nothing of the other target is taken for this one's."""
    source, target, _ = shift.make(rows=120)
    options = {"batch_size": 20, "device": "cpu"}
    start = calida.adapt(source, target + 3, "source", epochs=2, **options)
    adapted = calida.adapt(source, target, "rer-1", start=start, rounds=1, **options)
    looked = [record for record in adapted.history if record.target is not None]
    assert [record.phase for record in looked] == ["pretrain", "adapt"]
    assert looked[0].target.entropy == pytest.approx(float(start.predict(target, raw=True).entropy.mean()))


def test_a_start_of_another_shape_is_refused():
    source, target, _ = shift.make(rows=60)
    start = calida.adapt(source, target, "source", epochs=1, device="cpu")
    with pytest.raises(calida.InputError, match="the start has gaussian False where this run has True"):
        calida.adapt(source, target, "brer-1", start=start, rounds=1, device="cpu")


def test_a_run_from_one_start_is_not_resumed_from_another(tmp_path):
    source, target, _ = shift.make(rows=60)
    starts = [calida.adapt(source, target, "source", epochs=n, device="cpu") for n in (1, 2)]
    options = {"rounds": 1, "device": "cpu", "folder": tmp_path}
    calida.adapt(source, target, "rer-1", start=starts[0], **options)
    with pytest.raises(calida.CheckpointError, match="start"):
        calida.adapt(source, target, "rer-1", start=starts[1], resume=True, **options)


def test_a_run_is_not_resumed_with_other_names_of_classes(tmp_path):
    source, target, _ = shift.make(rows=60)
    names = [f"class {index}" for index in range(int(source[1].max()) + 1)]
    options = {"rounds": 1, "epochs": 1, "device": "cpu", "folder": tmp_path, "num_classes": len(names)}
    calida.adapt(source, target, "rer-1", class_names=names, **options)
    with pytest.raises(calida.CheckpointError, match="classes"):
        calida.adapt(source, target, "rer-1", class_names=names[::-1], resume=True, **options)


def test_a_backbone_begins_with_the_weights_of_a_file(tmp_path):
    source, target, _ = shift.make(rows=60)
    backbone = torch.nn.Sequential(torch.nn.Linear(6, 8, bias=False), torch.nn.Tanh())
    weights = {"0.weight": torch.randn(8, 6), "fc.weight": torch.randn(3, 8)}  # a classifier's own are left out
    save_file(weights, tmp_path / "weights.safetensors")
    options = {"backbone": backbone, "device": "cpu", "epochs": 1, "pretraining.learning_rate": 1e-12}
    adapted = calida.adapt(source, target, "source", backbone_weights=tmp_path / "weights.safetensors", **options)
    assert torch.allclose(adapted.classifier.backbone[0].weight, weights["0.weight"], atol=1e-6)
    for name, content in {"short": {"0.weight": torch.zeros(2, 2)}, "empty": {"other": torch.zeros(1)}}.items():
        save_file(content, tmp_path / name)
        with pytest.raises(calida.InputError, match=r"for 0.weight; this backbone needs \(8, 6\)"):
            calida.adapt(source, target, "source", backbone_weights=tmp_path / name, **options)
    (tmp_path / "text").write_text("no weights")
    with pytest.raises(calida.InputError, match="cannot be read as safetensors"):
        calida.adapt(source, target, "source", backbone_weights=tmp_path / "text", **options)


def test_sgd_is_nesterovs_and_resumes_bit_for_bit(tmp_path):
    source, target, _ = shift.make(rows=60)
    options = {"optimizer": "sgd", "epochs": 2, "rounds": 2, "batch_size": 20, "device": "cpu"}
    whole = calida.adapt(source, target, "rer-1", **options)

    def stop(record):
        if is_round(record) and record.phase == "adapt":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calida.adapt(source, target, "rer-1", folder=tmp_path, observe=stop, **options)
    resumed = calida.adapt(source, target, "rer-1", folder=tmp_path, resume=True, **options)
    for name, value in whole.classifier.state_dict().items():
        assert torch.equal(resumed.classifier.state_dict()[name], value), name
    phase = phases(calida.get_recipe("rer-1").with_settings(optimizer="sgd"))[1]
    optimizer = phase.make_optimizer([torch.nn.Parameter(torch.zeros(1))])
    group = optimizer.param_groups[0]
    assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (0.9, True, 5e-4)


@pytest.mark.filterwarnings("ignore:table")
def test_frames_are_taken_as_they_are_and_so_they_are_predicted(tmp_path):
    source, target = people(160, 1), people(120, 2, 3.0)
    labels = (source["state"] == "ill").to_numpy()
    adapted = calida.adapt((source.drop(columns="state"), labels), target, "rer-1", epochs=10, rounds=2, seed=0)
    table = adapted.preparation.table
    by_hand = table.apply(as_frame(source, "source"), "source"), table.apply(as_frame(target, "target"), "target")
    direct = calida.adapt((by_hand[0], labels), by_hand[1], "rer-1", epochs=10, rounds=2, seed=0)
    prediction = adapted.predict(target)
    assert torch.equal(prediction.log_probs, direct.predict(by_hand[1]).log_probs)
    truth = torch.tensor((target["state"] == "ill").to_numpy())
    assert float((prediction.labels.bool() == truth).double().mean()) > 0.8
    adapted.save(tmp_path)
    loaded = calida.load(tmp_path)
    for part in (loaded, loaded.source_only):
        assert part.preparation.table == table
    shuffled = pl.from_pandas(target).select(sorted(target.columns))
    assert torch.equal(loaded.predict(shuffled).log_probs, prediction.log_probs)
    again = calida.adapt((source.drop(columns="state"), labels), target, "rer-1", start=loaded.source_only, rounds=0)
    assert torch.equal(
        again.predict(target, raw=True).log_probs, loaded.source_only.predict(target, raw=True).log_probs
    )


def test_what_happens_to_columns_is_warned_of_where_it_was_asked_for():
    source, target = people(80, 1), people(80, 2, 3.0, ("Rome", "Kiel"))
    with pytest.warns(UserWarning, match="table") as caught:
        calida.adapt((source, (source["state"] == "ill").to_numpy()), target, "source", epochs=1)
    told = [str(one.message) for one in caught if one.filename == __file__]
    assert "table: left out as giving the label away: 'code', 'state'" in told
    assert "table: left out as a name of rows: 'patient'" in told
    assert any("never showed: city" in sentence for sentence in told)
