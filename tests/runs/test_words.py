"""What a run says where something does not fit: kinds of options, domains, marks."""

import pytest

from calida.adaptation.summary import _read_by
from calida.errors import InputError
from calida.runs import RunConfig
from calida.runs.data import domain_in_words
from calida.runs.labeling import _class_numbers, no_class_mark


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"label": 2}, "must be text, not 2"),
        ({"recipe": None}, "must be text, not None"),
        ({"seed": "x"}, "must be a whole number, not 'x'"),
        ({"memory": "much"}, "must be a number, not 'much'"),
        ({"finetune": 1}, "must be true or false, not 1"),
        ({"drop": "a"}, "must be a list of texts, not 'a'"),
    ],
)
def test_an_option_of_another_kind_is_told_the_kind_that_it_needs(values, words):
    (name,) = values
    with pytest.raises(InputError, match=f"{name} in the configuration {words}"):
        RunConfig().changed(values)


def test_a_domain_without_a_place_is_named_once():
    config = RunConfig(source="source", target="data/target.csv")
    assert domain_in_words(config, "source") == "the source"
    assert domain_in_words(config, "target") == "the target data/target.csv"


def test_the_mark_for_no_class_is_none_of_the_classes():
    assert no_class_mark(["cat", "dog"]) == "(none)"
    classes = ["(none)", "cat"]
    assert no_class_mark(classes) == "((none))"
    assert _class_numbers(["(none)", "((none))", "cat"], classes, "labels.csv").tolist() == [0, -1, 1]


@pytest.mark.parametrize(
    ("encoder", "reads"),
    [
        ("minilm", "texts"),
        ("mobilenet-v2@my.safetensors", "images"),
        ("timm:resnet18", "images"),
        ("hf:owner/model", "images or texts"),
    ],
)
def test_a_result_says_what_its_encoder_reads(encoder, reads):
    assert _read_by(encoder) == reads
