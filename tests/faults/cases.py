"""The catalogue: bad inputs and faults as values. Each is one sentence, exit code 2, and nothing written."""

import gzip
import json
from dataclasses import dataclass
from typing import Any

import fault_files as f
import numpy as np
import torch

import calida
from calida.json_values import sealed
from calida.studies import StudyPlan


@dataclass(frozen=True)
class Case:
    """A fault: what is done to the world, what is called then, and words of the sentence that must follow."""

    name: str
    says: str
    call: Any  # words of a command, or a function of the world
    prepare: Any = None


PREDICT = "predict run t.csv --out p.csv"
RESUME = "adapt --resume --out run"
REPORT = "report run"
TABLES = "adapt --source s.csv --target t.csv --label y --out new"
ARRAYS = "adapt --source s.npz --target t.npz --out new"
PHOTOS = "adapt --source photos-s --target photos-t --out new"
NOT_OURS, CHANGED = "is not what calida wrote", "digest"


def drop(key):
    return lambda tensors: tensors.pop(key)


def model_cases():
    """The saved classifier, forged: values and digest fit, and no classifier has such values."""
    trust, network, prepared = ("trust",), ("network",), ("preparation",)
    values = {
        "temperature 0": ((*trust, "temperature"), 0.0, "is no temperature"),
        "temperature -1": ((*trust, "temperature"), -1.0, "is no temperature"),
        "temperature NaN": ((*trust, "temperature"), float("nan"), "is no temperature"),
        "temperature inf": ((*trust, "temperature"), float("inf"), "is no temperature"),
        "temperature tiny": ((*trust, "temperature"), 1e-9, "is no temperature"),
        "temperature a word": ((*trust, "temperature"), "hot", "Expected `float`"),
        "no temperature": ((*trust, "temperature"), f.del_, "missing required field"),
        "accuracy 2": ((*trust, "accuracy", "value"), 2.0, "no shares"),
        "accuracy NaN": ((*trust, "accuracy", "low"), float("nan"), "no shares"),
        "decision unknown": ((*trust, "decision", "returned"), "nothing", NOT_OURS),
        "trust a list": (trust, [], NOT_OURS),
        "three classes": ((*prepared, "classes"), ["no", "yes", "maybe"], "names 3 classes and has 2"),
        "one class": ((*prepared, "classes"), ["no"], "not all different"),
        "twice a class": ((*prepared, "classes"), ["no", "no"], "not all different"),
        "classes are numbers": ((*prepared, "classes"), [0, 1], "Expected `str`"),
        "gain NaN": ((*prepared, "target", "gain"), [float("nan")], "infinite or none"),
        "too many offsets": ((*prepared, "target", "offset"), [0.0] * 7, "7 offsets"),
        "prepared to another shape": ((*prepared, "target", "shape"), [9], NOT_OURS),
        "sizes of other columns": ((*prepared, "target", "largest"), [1.0], "sizes of other columns"),
        "no encoders": ((*prepared, "table", "encoders"), [], "not those of a table"),
        "encoder of no kind": ((*prepared, "table", "encoders", 0, "kind"), "magic", "magic"),
        "median inf": ((*prepared, "table", "encoders", 0, "median"), float("inf"), "infinite or none"),
        "missing share 2": ((*prepared, "table", "encoders", 0, "missing"), 2.0, "infinite or none"),
        "a category twice": ((*prepared, "table", "encoders", 2, "categories"), ["Oslo", "Oslo"], "not all different"),
        "left out for no reason": ((*prepared, "table", "left_out"), {"name": "MOOD"}, "not those of a table"),
        "preparation a number": (prepared, 5, NOT_OURS),
        "num_classes 3": ((*network, "num_classes"), 3, NOT_OURS),
        "num_classes 10^12": ((*network, "num_classes"), 10**12, "1000000000000 classes"),
        "num_classes 0": ((*network, "num_classes"), 0, "0 classes"),
        "num_classes a word": ((*network, "num_classes"), "two", "Expected `int`"),
        "shape 10^9": ((*network, "input_shape"), [10**9], "samples of the shape"),
        "shape [10^5, 10^5, 3]": ((*network, "input_shape"), [3, 10**5, 10**5], "samples of the shape"),
        "shape negative": ((*network, "input_shape"), [-4], "samples of the shape"),
        "shape empty": ((*network, "input_shape"), [], "samples of the shape"),
        "shape of another": ((*network, "input_shape"), [5], NOT_OURS),
        "backbone unknown": ((*network, "backbone"), "dtm", "unknown backbone"),
        "head unknown": ((*network, "head"), "round", "head"),
        "family unknown": ((*network, "model"), "svm", "not one that this version of calida knows"),
        "samples 10^9": (("recipe", "posterior", "num_samples"), 10**9, "from 1 to 10000"),
        "setting unknown": (("recipe", "posterior", "number"), 1, "unknown setting"),
        "rounds -1": (("recipe", "adaptation", "rounds"), -1, "rounds"),
        "recipe a word": (("recipe",), "calida", NOT_OURS),
        "seed a word": (("seed",), "x", "Expected `int`"),
        "history of numbers": (("history",), [5], NOT_OURS),
        "history of other classes": (("history", 0, "source", "class_shares"), [0.3, 0.3, 0.4], NOT_OURS),
    }
    yield from (
        Case(f"model: {name}", says, PREDICT, f.forge("model", *path, value=value))
        for name, (path, value, says) in values.items()
    )
    first = "head.mean.weight"
    tensors = {
        "NaN weight": (f.nan_in(first), "NaN"),
        "weight missing": (drop(first), "do not fit this network"),
        "weight of another shape": (lambda t: t.__setitem__(first, t[first][:, 1:].clone()), "do not fit this network"),
        "weight too many": (lambda t: t.__setitem__("more", torch.ones(1)), "do not fit this network"),
        "running variance -1": (lambda t: t["backbone.2.running_var"].fill_(-1.0), "of another run"),
        "sets of other classes": (lambda t: t["prediction-sets/labels"].fill_(7), "prediction sets"),
        "sets temperature 0": (lambda t: t["prediction-sets/temperature"].fill_(0), "prediction sets"),
        "sets without scores": (drop("prediction-sets/scores"), NOT_OURS),
        "sets ratios": (lambda t: t.__setitem__("prediction-sets/ratios", torch.ones(3)), "prediction sets"),
    }
    yield from (
        Case(f"model: {name}", says, PREDICT, f.forge_tensors("model", act)) for name, (act, says) in tensors.items()
    )


def damage_cases():
    """Every file of a run as an editor, a full disk or another program may have left it."""
    bundles = {"model": PREDICT, "source-only": PREDICT, "checkpoint": RESUME}
    for name, command in bundles.items():
        file = f"run/{name}.json"
        yield Case(f"{name}.json cut off", "truncated or not a calida file", command, f.cut(file))
        yield Case(f"{name}.json edited", CHANGED, command, f.edit(f"{name}.json", "values", "seed", value=5))
        yield Case(f"{name}.json nested deep", "nested too deep", command, f.overwrite(file, f.DEEP))
        yield Case(f"{name}.json binary", "not a calida file", command, f.overwrite(file, b"\x80\x04\x95\xff"))
        yield Case(f"{name}.json null", "is not a calida", command, f.overwrite(file, "null"))
        yield Case(f"{name}.json without digest", CHANGED, command, f.edit(f"{name}.json", "digest", value=f.del_))
        yield Case(
            f"{name}.json of another version", "another version", command, f.edit(f"{name}.json", "version", value=99)
        )
        yield Case(
            f"{name}.json: values a list",
            "lacks its tensors or values",
            command,
            f.edit(f"{name}.json", "values", value=[]),
        )
        yield Case(
            f"{name}.json: a way out",
            "cannot be read",
            command,
            f.edit(f"{name}.json", "tensors", value="../../s.csv.none"),
        )
        yield Case(
            f"{name}.json: no name", "cannot be read", command, f.edit(f"{name}.json", "tensors", value="\ud800\0")
        )
        yield Case(
            f"{name} tensors cut off", CHANGED, command, lambda w, n=name: f.cut(f.tensor_file(w, n).relative_to(w))(w)
        )
        yield Case(f"{name} tensors gone", "cannot be read", command, lambda w, n=name: f.tensor_file(w, n).unlink())
    yield Case("model gone", "model.json is missing", PREDICT, f.remove("run/model.json"))
    yield Case("a number of 10^5 digits", "not a calida file", PREDICT, f.overwrite("run/model.json", "9" * 10**5))
    metrics = {
        "cut off": (f.cut("run/metrics.json"), "not a calida file"),
        "edited": (f.edit("metrics.json", "seed", value=7), CHANGED),
        "nested deep": (f.overwrite("run/metrics.json", f.DEEP), "nested too deep"),
        "gone": (f.remove("run/metrics.json"), "metrics.json is missing"),
        "of another version": (f.edit("metrics.json", "format", value=1), "another version"),
        "three classes": (f.reseal("metrics.json", "classes", value=["a", "b", "c"]), NOT_OURS),
        "class names are numbers": (f.reseal("metrics.json", "classes", value=[1, 2]), NOT_OURS),
        "temperature 0": (f.reseal("metrics.json", "trust", "temperature", value=0), NOT_OURS),
        "no trust": (f.reseal("metrics.json", "trust", value=f.del_), NOT_OURS),
        "no validators": (f.reseal("metrics.json", "validators", value={}), NOT_OURS),
        "seconds a word": (f.reseal("metrics.json", "training_seconds", value="long"), NOT_OURS),
        "rounds of another run": (f.reseal("metrics.json", "rounds", value=99), "of another run"),
        "no target figures": (f.reseal("metrics.json", "adapted", "target", value=f.del_), NOT_OURS),
        "shares of others": (f.reseal("metrics.json", "adapted", "target", "class_shares", value=[1.0]), NOT_OURS),
        "data a list": (f.reseal("metrics.json", "data", value=[]), NOT_OURS),
    }
    yield from (Case(f"metrics.json {name}", says, REPORT, act) for name, (act, says) in metrics.items())
    rounds = {
        "empty": (f.overwrite("run/metrics.jsonl", ""), "no round was kept"),
        "gone": (f.remove("run/metrics.jsonl"), "cannot be read"),
        "cut off": (f.cut("run/metrics.jsonl", 0.7), "not a calida file"),
        "binary": (f.overwrite("run/metrics.jsonl", b"\xff\xfe"), "cannot be read"),
        "nested deep": (f.overwrite("run/metrics.jsonl", f.DEEP), "nested too deep"),
        "without its last line": (f.reseal_lines(lambda lines: lines[:-1]), "of another run"),
        "without digests": (f.overwrite("run/metrics.jsonl", '{"phase": "adapt"}'), "no digest"),
        "of other classes": (
            f.reseal_lines(lambda lines: [f.put(lines[0], ("source", "class_shares"), [1.0]), *lines[1:]]),
            NOT_OURS,
        ),
        "a record without source": (
            f.reseal_lines(lambda lines: [f.put(lines[0], ("source",), f.del_), *lines[1:]]),
            NOT_OURS,
        ),
        "an accuracy in words": (
            f.reseal_lines(lambda lines: [f.put(lines[0], ("source", "accuracy"), "good"), *lines[1:]]),
            NOT_OURS,
        ),
    }
    yield from (Case(f"metrics.jsonl {name}", says, REPORT, act) for name, (act, says) in rounds.items())
    arrays = {
        "cut off": (f.cut("run/predictions.npz"), "truncated or not a calida file"),
        "gone": (f.remove("run/predictions.npz"), "predictions.npz is missing"),
        "text": (f.overwrite("run/predictions.npz", "no arrays"), "not a calida file"),
        "a bomb": (f.overwrite("run/predictions.npz", f.zip_bomb()), "unpacks to"),
        "edited": (f.rewrite_arrays(f.array("after_target", lambda a: a - 1), False), CHANGED),
        "without digest": (f.rewrite_arrays(lambda a: a.pop("digest"), False), CHANGED),
        "an array less": (f.rewrite_arrays(lambda a: a.pop("shown"), False), "shown"),
        "NaN": (f.rewrite_arrays(f.array("after_target", lambda a: a * np.nan), True), NOT_OURS),
        "probabilities over 1": (f.rewrite_arrays(f.array("after_target", lambda a: a + 9), True), NOT_OURS),
        "rows of one side": (f.rewrite_arrays(f.array("before_target", lambda a: a[:5]), True), NOT_OURS),
        "labels out of range": (f.rewrite_arrays(f.array("validation_labels", lambda a: a + 9), True), NOT_OURS),
        "temperature 0": (f.rewrite_arrays(f.array("after_temperature", lambda a: a * 0), True), NOT_OURS),
        "some true labels": (f.rewrite_arrays(f.array("truth", lambda a: np.zeros(3, int)), True), NOT_OURS),
        "words": (f.rewrite_arrays(f.array("mapped_target", lambda a: a.astype("U8")), True), NOT_OURS),
    }
    yield from (Case(f"predictions.npz {name}", says, REPORT, act) for name, (act, says) in arrays.items())
    rows = "is not as the run wrote it"
    for name, content in {
        "empty": b"",
        "binary": b"\xff\xfe\0",
        "a header": b"name,label\n",
        "a quote": b'"name\n',
    }.items():
        yield Case(f"predictions.csv {name}", rows, REPORT, f.overwrite("run/predictions.csv", content))
    yield Case("predictions.csv sorted", rows, REPORT, sort_predictions)
    checkpoint = {
        "phase -1": (("phase",), -1),
        "phase 99": (("phase",), 99),
        "phase a word": (("phase",), "adapt"),
        "no round done": (("rounds_done",), 0),
        "rounds_done 99": (("rounds_done",), 99),
        "no history": (("history",), []),
        "history a word": (("history",), "long"),
        "a round of another number": (("history", 0, "round"), 1),
        "a round of another phase": (("history", 0, "phase"), "adapt"),
        "shares of others": (("history", 0, "source", "class_shares"), [1.0]),
        "multiplier NaN": (("multipliers",), {"entropy": {"value": float("nan")}}),
        "budget 0": (("multipliers",), {"entropy": {"budget": 0.0}}),
    }
    for name, (path, value) in checkpoint.items():
        yield Case(f"checkpoint: {name}", NOT_OURS, RESUME, f.forge("checkpoint", *path, value=value))
    yield Case(
        "checkpoint of another run",
        "belongs to another run",
        RESUME,
        f.forge("checkpoint", "identity", "seed", value=9),
    )
    yield Case(
        "checkpoint: NaN weight", "NaN", RESUME, f.forge_tensors("checkpoint", f.nan_in("model/head.mean.weight"))
    )
    yield Case(
        "checkpoint: weight missing",
        "do not fit",
        RESUME,
        f.forge_tensors("checkpoint", drop("model/head.mean.weight")),
    )


def sort_predictions(world):
    path = world / "run" / "predictions.csv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *reversed(rows), ""]))


def config_cases():
    """config.toml, plans of studies, and the files of calida label."""
    lines = {
        "no TOML": ("= = =", "is not a TOML file"),
        "nested deep": ("a = " + f.DEEP, "is not a TOML file"),
        "an unknown key": ('format = 4\ntint = "red"', "unknown key 'tint'"),
        "a seed in words": ('format = 4\nseed = "x"', "must be a whole number, not 'x'"),
        "settings a list": ("format = 4\nsettings = [1]", "a table of names and values"),
        "an older version": ("format = 3", "another version"),
        "memory NaN": ('format = 4\nsource="s.csv"\ntarget="t.csv"\nmemory = nan', "memory is a number"),
        "workers -1": ('format = 4\nsource="s.csv"\ntarget="t.csv"\nworkers = -1', "workers are 0 to"),
        "max_pixels 0": ('format = 4\nsource="s.csv"\ntarget="t.csv"\nmax_pixels = 0', "max_pixels"),
    }
    for name, (text, says) in lines.items():
        yield Case(f"config.toml {name}", says, RESUME, f.overwrite("run/config.toml", text))
    yield Case("config.toml binary", "is not a TOML file", RESUME, f.overwrite("run/config.toml", b"\xff\xfe\0"))
    plans = {
        "recipes a number": ("recipes = 5", "recipes is a list"),
        "no seed": ("seeds = 0", "seeds is a number"),
        "variants a list": ("variants = [1]", "variants is a table"),
        "an unknown recipe": ('recipes = ["rer"]', "unknown recipe"),
        "no data": ("seeds = 1", "name the source data"),
    }
    for name, (text, says) in plans.items():
        yield Case(f"study: {name}", says, "study plan.toml --out st", f.overwrite("plan.toml", text))
    for name, content in {
        "cut off": '{"key"',
        "nested deep": f.DEEP,
        "without digest": "{}",
        "of another run": json.dumps(sealed({"key": "x"})),
        "a list": "[]",
    }.items():
        yield Case(f"record.json {name}", "record.json", "study plan.toml --out st", plan_with_record(content))
    yield Case("results of no run", "results/x.jsonl", "study plan.toml --out st", plan_with_record(None))
    design = {
        "edited": (f.edit("label/design.json", "seed", value=5), CHANGED),
        "nested deep": (f.overwrite("run/label/design.json", f.DEEP), "nested too deep"),
        "gone": (f.remove("run/label/design.json"), "how its samples were drawn"),
        "rows that are not there": (f.reseal("label/design.json", "rows", value=[10**6] * 6), "not what calida label"),
        "rows in words": (f.reseal("label/design.json", "rows", value="x"), "not what calida label"),
        "sizes of another": (f.reseal("label/design.json", "sizes", value=[7]), "another target"),
    }
    evaluate = "evaluate run --labels run/label/labels.csv"
    for name, (act, says) in design.items():
        yield Case(f"design.json {name}", says, evaluate, act)
    sheets = {
        "no labels": ("number,name,label\n1,r1,\n", "no label in it yet"),
        "no column": ("number,name\n1,r1\n", "no column 'label'"),
        "number 0": ("number,name,label\n0,r1,yes\n", "numbers are 1 to"),
        "number in words": ("number,name,label\none,r1,yes\n", "numbers are 1 to"),
        "two labels": ("number,name,label\n1,r1,yes\n1,r1,no\n", "two labels for number 1"),
        "two columns": ("number,label,label\n1,yes,no\n", "more than one column named 'label'"),
        "another class": ("number,name,label\n1,r1,maybe\n", "never showed"),
        "binary": (b"\xff\xfe\0\xd8", "not readable text"),
        "empty": ("", "no column"),
    }
    for name, (text, says) in sheets.items():
        yield Case(f"labels.csv {name}", says, evaluate, f.overwrite("run/label/labels.csv", text))


def plan_with_record(content):
    """A study of one run whose record is this; or, without one, whose results are no records."""

    def prepare(world):
        plan = world / "plan.toml"
        names = {"source": str(world / "s.csv"), "target": str(world / "t.csv"), "label": "y", "recipe": "source"}
        plan.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in names.items()))
        (job,) = StudyPlan.read(plan).jobs().values()
        name = "results/x.jsonl" if content is None else f"{job.folder}/record.json"
        f.overwrite(f"st/{name}", '{"task": 5}\n' if content is None else content)(world)

    return prepare


def input_cases():
    """Data that nobody should train on."""
    listed = "adapt --source list.csv --target photos-t --out new"
    lists = {
        "two labels": (
            "photos-s/up/1.png,up\nphotos-s/up/1.png,down\nphotos-s/down/0.png,down\n",
            "has two labels for",
        ),
        "two labels, another spelling": (
            "photos-s/up/1.png,up\nphotos-s/../photos-s/up/1.png,down\n",
            "has two labels",
        ),
        "a file that is not there": ("photos-s/up/1.png,up\nno.png,down\n", "files that do not exist"),
        "no label": ("photos-s/up/1.png,up\nphotos-s/down/0.png,\n", "no label for"),
        "a short row": ("path,label\nphotos-s/up/1.png,up\nphotos-s/down/0.png\n", "has no label in row 2"),
        "a column twice": ("path,label,label\nphotos-s/up/1.png,up,down\n", "more than one column named 'label'"),
        "a header alone": ("path,label\n", "a header and no rows"),
    }
    for name, (text, says) in lists.items():
        yield Case(f"list: {name}", says, listed, f.overwrite("list.csv", text))
    tables = {
        "a column twice": ("a,a,y\n1,2,no\n3,4,yes\n", "more than one column named 'a'"),
        "a column twice but for spaces": ("a, a,y\n1,2,no\n3,4,yes\n", "more than one column named 'a'"),
        "no rows": ("a,y\n", "no rows"),
        "no label column": ("a,b\n1,2\n", "no column 'y'"),
        "a label missing": ("a,y\n1,no\n2,\n3,yes\n", "lacks"),
        "one class": ("a,b,y\n1,2,no\n2,5,no\n", "only the class 'no'"),
        "binary": (b"a,y\n\xff\xfe\0,no\n", ""),
        "a number over 10^38": ("a,b,y\n1e39,1,no\n2,3,yes\n3,1,no\n4,5,yes\n", "too large for 32 bits"),
        "empty": ("", ""),
    }
    for name, (text, says) in tables.items():
        words = "adapt --source bad.csv --target t.csv --label y --out new"
        yield Case(f"table: {name}", says, words, f.overwrite("bad.csv", text))
    targets = {
        "other columns": ("z\n1\n2\n", "missing"),
        "words for numbers": ("a,b,city\nx,1,Rome\ny,2,Oslo\n", "where there should be numbers"),
        "another unit": (
            "a,b,city\n" + "".join(f"{i % 3},{9000 + i},Rome\n" for i in range(40)),
            "the column 'b' lies in",
        ),
        "no rows": ("a,b,city\n", "no rows"),
    }
    for name, (text, says) in targets.items():
        words = "adapt --source s.csv --target bad.csv --label y --drop name --out new"
        yield Case(f"target table: {name}", says, words, f.overwrite("bad.csv", text))
    many = np.arange(20) % 2
    arrays = {
        "header of 10^12 rows": (f.npz(x=f.npy_header((10**12, 8))), "its header promises"),
        "zip bomb": (f.zip_bomb(), "unpacks to"),
        "text": (b"PK no archive", "cannot be read as a NumPy file"),
        "objects": (f.npz(x=f.npy_header((2,), "|O") + bytes(16)), "Python objects"),
        "a header of another language": (f.npz(x=b"\x93NUMPY\x01\x00\x10\x00import os; os.x "), "cannot be read"),
        "cut off": (f.npz(x=f.npy_header((9, 9))[:20]), "cannot be read"),
        "no x": (f.npz(z=f.npy_header((0, 4))), "no array x"),
    }
    for name, (content, says) in arrays.items():
        words = "adapt --source bad.npz --target t.npz --out new"
        yield Case(f"npz: {name}", says, words, f.overwrite("bad.npz", content))
    yield Case(
        "npy: header of 10^12 rows",
        "its header promises",
        "adapt --source s.npz --target bad.npy --out new",
        f.overwrite("bad.npy", f.npy_header((10**12, 8, 8))),
    )
    made = {
        "NaN": (np.full((20, 4), np.nan, np.float32), many, "NaN or infinite"),
        "infinite": (np.full((20, 4), np.inf, np.float32), many, "NaN or infinite"),
        "float64 over 10^38": (np.full((20, 4), 1e39), many, "too large for 32 bits"),
        "complex": (np.ones((20, 4), complex), many, "complex"),
        "five dimensions": (np.ones((20, 1, 2, 2, 2)), many, "expected vectors"),
        "empty": (np.ones((0, 4)), many[:0], "is empty"),
        "words": (np.array([["a", "b"]] * 20), many, "not a numeric array"),
        "labels of fractions": (np.ones((20, 4)), many + 0.5, "neither whole numbers nor words"),
        "too few labels": (np.ones((20, 4)), many[:9], "but 9 labels"),
        "labels of two dimensions": (np.ones((20, 4)), many[:, None], "one label a sample"),
        "one class": (np.ones((20, 4)), many * 0, "only the class '0'"),
        "other features": (np.random.default_rng(0).normal(size=(20, 9)), many, ""),
    }
    for name, (x, y, says) in made.items():

        def save(world, x=x, y=y):
            np.savez(world / "bad.npz", x=x, y=y)
            np.save(world / "plain.npy", np.random.default_rng(1).normal(size=(20, 4)))

        yield Case(f"array: {name}", says, "adapt --source bad.npz --target plain.npy --out new", save)
    images = {
        "144 megapixels": (f.png(12_000, 12_000), "144,000,000 pixels"),
        "a trillion pixels": (f.png(10**6, 10**6), "pixels, more than"),
        "cut off": (f.png(16, 16)[:40], "cannot be read"),
        "text": (b"no image", "cannot be read"),
        "empty": (b"", "cannot be read"),
        "without data": (f.png(16, 16), "cannot be read"),
    }
    for name, (content, says) in images.items():
        yield Case(f"image: {name}", says, PHOTOS, f.overwrite("photos-t/up/bad.png", content))
    yield Case("image: fewer pixels allowed", "256 pixels, more than the 100 allowed", f"{PHOTOS} --max-pixels 100")
    yield Case(
        "gzip bomb",
        "unpacks to",
        "adapt --source s.jsonl.gz --target s.jsonl.gz --text t --label y --out new",
        f.overwrite("s.jsonl.gz", f.gzip_bomb()),
    )
    yield Case(
        "gzip cut off",
        "cannot be read",
        "adapt --source s.jsonl.gz --target s.jsonl.gz --text t --label y --out new",
        f.overwrite("s.jsonl.gz", gzip.compress(b'{"t": "a", "y": "b"}\n' * 50)[:30]),
    )
    yield Case(
        "texts: no such column", "no column 't'", "adapt --source s.csv --target t.csv --text t --label y --out new"
    )
    yield Case(
        "texts: a column twice",
        "more than one column",
        "adapt --source b.csv --target t.csv --text a --label y --out new",
        f.overwrite("b.csv", "a,a,y\nx,y,no\n"),
    )
    labels = {
        "not there": (None, "neither a file nor"),
        "too few": ("label\nyes\n", "has 1 labels"),
        "two for one": ("name,y\nr0,yes\nr0,no\n", "two labels for r0"),
        "of another class": ("name,y\n" + "".join(f"r{i},maybe\n" for i in range(48)), "never showed"),
        "of some": ("name,y\nr0,yes\n", "none for 47 samples"),
    }
    for name, (text, says) in labels.items():
        words = f"{TABLES} --id name --target-labels truth.csv"
        yield Case(f"target labels: {name}", says, words, None if text is None else f.overwrite("truth.csv", text))


def option_cases():
    """What is asked for on the command line and cannot be."""
    options = {
        "--set rouns=3": "did you mean adaptation.rounds",
        "--set rounds": "takes key=value",
        "--set rounds=-1": "rounds",
        "--set num_samples=1000000000": "from 1 to 10000",
        "--set batch_size=x": "whole number",
        "--recipe rer": "unknown recipe",
        "--model svm": "unknown model",
        "--backbone dtm": "unknown backbone",
        "--device quantum": "device",
        "--choice luck": "luck",
        "--calibration magic": "magic",
        "--on-mismatch maybe": "on_mismatch is one of",
        "--validation 0": "between 0 and 1",
        "--validation nan": "between 0 and 1",
        "--size 3": "between 8 and 1024",
        "--memory -1": "memory is a number",
        "--workers 100000": "workers are 0 to",
        "--encoder nobody": "nobody",
        "--config none.toml": "there is no file",
        "--start photos-s": "there is no model",
        "--columns z": "no column 'z'",
        "--drop z": "no column 'z'",
        "--id z": "'z'",
        "--target nowhere": "no file or folder nowhere",
        "--target photos-t": "holds",
        "--target s.csv:99": "asks for 99 samples and has 48",
        "--target s.csv:0": "no samples at all",
        "--target s.csv:first": "neither a split nor a number",
        "--backbone-weights s.csv": "safetensors",
        "--resume": "",
    }
    for words, says in options.items():
        yield Case(
            f"adapt {words}",
            says,
            f"{TABLES} {words}",
            None if words != "--resume" else f.overwrite("new/model.json", "{}"),
        )
    yield Case("adapt into a file", "is a file", f"{TABLES.removesuffix('new')}s.npz")
    yield Case("adapt below a file", "cannot", f"{TABLES.removesuffix('new')}s.npz/run")
    yield Case("adapt over a run", "already holds a run", f"{TABLES.removesuffix('new')}run")
    yield Case("adapt over a file of a run", "would replace", TABLES, f.overwrite("new/metrics.json", "mine"))
    predict = {
        "predict nowhere t.csv": "there is no folder nowhere",
        "predict s.csv t.csv": "",
        "predict run nowhere": "no file or folder",
        "predict run photos-t": "does not read",
        "predict run s.npz": "does not read",
        "predict run t.csv --out photos-t": "is a folder",
        "predict run t.csv --out none/p.csv": "there is no folder none",
        "predict run t.csv --out t.csv": "the file of the samples themselves",
        "predict run t.csv --out run/metrics.json": "must not replace",
        "predict run t.csv --coverage 2": "between 0 and 1",
        "predict run t.csv --coverage nan": "between 0 and 1",
        "predict run t.csv --coverage 0.5 --max-risk 0.1": "choose one",
        "predict run t.csv --order-by luck": "order_by is one of",
        "predict run t.csv --sets 2": "between 0 and 1",
        "predict run t.csv --domain moon": "domain",
        "predict run t.csv --samples 1000000000": "num_samples is at most 10,000",
        "predict run t.csv --on-mismatch match": "stop or ignore",
        "predict run t.csv --device quantum": "device",
        "evaluate nowhere": "holds no run",
        "evaluate run --target-labels none.csv": "neither a file nor",
        "evaluate run --by z": "z",
        "evaluate run s.npz": "",
        "report nowhere": "holds no",
        "report photos-s": "holds no",
        "select run": "at least two runs",
        "select run run": "named twice",
        "select run nowhere": "holds no",
        "label run --budget 0": "at least 1",
        "label run --out s.csv": "is a file",
        "label nowhere": "holds no",
        "recipes nothing": "unknown recipe",
        "embed s.csv": "",
        "cache clear nobody": "nothing is kept",
        "data get nothing": "no set is called",
    }
    for words, says in predict.items():
        yield Case(words, says, words)
    yield Case(
        "predict another unit",
        "of another scale",
        PREDICT,
        f.overwrite("t.csv", "name,a,b,city\n" + "".join(f"r{i},1,{90_000 + i},Rome\n" for i in range(40))),
    )


def python_cases():
    """Arguments of the wrong kind in Python."""
    x, y = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    odd = {
        "source a number": lambda w: calida.adapt(5, x),
        "source None": lambda w: calida.adapt(None, x),
        "source one array": lambda w: calida.adapt((x,), x),
        "samples of objects": lambda w: calida.adapt(([object()] * 40, y), x),
        "target None": lambda w: calida.adapt((x, y), None),
        "target a number": lambda w: calida.adapt((x, y), 5),
        "target a pair": lambda w: calida.adapt((x, y), (x, y)),
        "target of other features": lambda w: calida.adapt((x, y), x[:, :2]),
        "target in another unit": lambda w: calida.adapt((x + 5, y), 100 * (x + 5)),
        "labels None": lambda w: calida.adapt((x, None), x),
        "labels of floats": lambda w: calida.adapt((x, y + 0.5), x),
        "labels with a gap": lambda w: calida.adapt((x, 2 * y), x),
        "labels negative": lambda w: calida.adapt((x, y - 1), x),
        "labels too few": lambda w: calida.adapt((x, y[:5]), x),
        "recipe a number": lambda w: calida.adapt((x, y), x, 3),
        "recipe None": lambda w: calida.adapt((x, y), x, None),
        "seed a fraction": lambda w: calida.adapt((x, y), x, seed=1.5),
        "seed a word": lambda w: calida.adapt((x, y), x, seed="x"),
        "num_classes a word": lambda w: calida.adapt((x, y), x, num_classes="2"),
        "num_classes 1": lambda w: calida.adapt((x, y), x, num_classes=1),
        "num_classes 10^9": lambda w: calida.adapt((x, y), x, num_classes=10**9),
        "class_names a word": lambda w: calida.adapt((x, y), x, num_classes=2, class_names="ab"),
        "class_names too many": lambda w: calida.adapt((x, y), x, num_classes=2, class_names=["a", "b", "c"]),
        "start a word": lambda w: calida.adapt((x, y), x, start="run"),
        "folder a number": lambda w: calida.adapt((x, y), x, folder=3.5),
        "folder a file": lambda w: calida.adapt((x, y), x, folder=w / "s.csv"),
        "resume a word": lambda w: calida.adapt((x, y), x, folder=w / "new", resume="yes"),
        "resume without a folder": lambda w: calida.adapt((x, y), x, resume=True),
        "observe a number": lambda w: calida.adapt((x, y), x, observe=5),
        "terms a list": lambda w: calida.adapt((x, y), x, terms=[]),
        "oracle_labels too few": lambda w: calida.adapt((x, y), x, oracle_labels=y[:3]),
        "oracle_labels an object": lambda w: calida.adapt((x, y), x, oracle_labels=object()),
        "validation a word": lambda w: calida.adapt((x, y), x, validation="x"),
        "validation NaN": lambda w: calida.adapt((x, y), x, validation=float("nan")),
        "guard a word": lambda w: calida.adapt((x, y), x, guard="yes"),
        "choice a number": lambda w: calida.adapt((x, y), x, choice=5),
        "calibration None": lambda w: calida.adapt((x, y), x, calibration=None),
        "device a list": lambda w: calida.adapt((x, y), x, device=[]),
        "backbone a number": lambda w: calida.adapt((x, y), x, backbone=5),
        "model None": lambda w: calida.adapt((x, y), x, model=None),
        "an unknown setting": lambda w: calida.adapt((x, y), x, tint=5),
        "on_mismatch maybe": lambda w: calida.adapt((x, y), x, on_mismatch="maybe"),
        "on_mismatch match": lambda w: calida.adapt((x, y), x, on_mismatch="match"),
        "num_samples 10^9": lambda w: calida.adapt((x, y), x, num_samples=10**9),
        "load a number": lambda w: calida.load(5),
        "load None": lambda w: calida.load(None),
        "load nowhere": lambda w: calida.load(w / "nowhere"),
        "load a file": lambda w: calida.load(w / "s.csv"),
        "predict None": lambda w: calida.load(w / "run").predict(None),
        "predict a number": lambda w: calida.load(w / "run").predict(5),
        "predict other features": lambda w: calida.load(w / "run").predict(x[:, :2]),
        "predict NaN": lambda w: calida.load(w / "run").predict(np.full((3, 4), np.nan)),
        "predict float64 over 10^38": lambda w: calida.load(w / "run").predict(np.full((3, 4), 1e39)),
        "predict another unit": lambda w: calida.load(w / "run").predict(np.full((40, 4), 1e5)),
        "predict bytes": lambda w: calida.load(w / "run").predict(np.ones((3, 4), np.uint8)),
        "predict num_samples 10^9": lambda w: calida.load(w / "run").predict(np.ones((3, 4)), num_samples=10**9),
        "predict num_samples a word": lambda w: calida.load(w / "run").predict(np.ones((3, 4)), num_samples="x"),
        "predict batch_size 0": lambda w: calida.load(w / "run").predict(np.ones((3, 4)), batch_size=0),
        "predict raw a word": lambda w: calida.load(w / "run").predict(np.ones((3, 4)), raw="no"),
        "sets at 2": lambda w: calida.load(w / "run").predict_sets(np.ones((3, 4)), 2),
        "sets at a word": lambda w: calida.load(w / "run").predict_sets(np.ones((3, 4)), "x"),
        "save a number": lambda w: calida.load(w / "run").save(5),
        "save below a file": lambda w: calida.load(w / "run").save(w / "s.csv" / "model"),
    }
    yield from (Case(f"python: {name}", "", call) for name, call in odd.items())


CASES = [*model_cases(), *damage_cases(), *config_cases(), *input_cases(), *option_cases(), *python_cases()]
