"""Recipes: what their names mean, that they are plain values, and that each does what it is for."""

import json
import math

import pytest
import shift
import torch

import calida
from calida.data import TargetBatch
from calida.model import Network, build_classifier, predict
from calida.objective import (
    Diversity,
    DualAscent,
    Objective,
    Step,
    TargetEntropy,
    VirtualAdversarial,
    Weighted,
    squared_mmd,
)
from calida.recipes import RECIPES, Recipe, get_recipe, phases, quick
from calida.run_warnings import WarningCode
from calida.seeds import Seeds
from calida.selection import Ramp
from calida.training import train

NAMES = [
    "calida", "features", "consensus", "source", "bsource",
    "rer-1", "rer-1-gvr", "rer-inf", "rer-inf-gvr", "brer-1", "brer-1-gvr", "brer-inf",
    "brer-inf-gvr", "annealed", "dual", "self-training", "mmd",
]  # fmt: skip
# All rounds are run and the last is returned: these tests are about what a recipe does, not about which round is best.
LAST = {"choice": "last", "guard": False}
SMALL = {"batch_size": 40, "epochs": 8, "groups": 4, "validation": 0.2, "device": "cpu", **LAST}


def run(recipe, seed=0, rows=400, **settings):
    source, target, truth = shift.make(rows, seed=seed)
    return calida.adapt(source, target, recipe, seed=seed, oracle_labels=truth, **{**SMALL, **settings})


@pytest.fixture(scope="module")
def source_only():
    return run("source").history[-1]


def test_the_named_recipes_are_there():
    assert list(RECIPES) == NAMES
    assert all(recipe.name == name and recipe.summary for name, recipe in RECIPES.items())


@pytest.mark.parametrize("colorful", [False, True])
def test_colors_are_varied_only_where_the_target_has_any(colorful):
    x, y = torch.rand(80, 3, 8, 8), torch.arange(80) % 2
    target = torch.rand(80, 3 if colorful else 1, 8, 8).expand(-1, 3, -1, -1)
    brief = {"epochs": 1, "rounds": 1, "batch_size": 20, "choice": "last", "guard": False}
    one, other = (calida.adapt((x, y), target, color=strength, **brief) for strength in (0.0, 1.0))
    same = [
        torch.equal(value, other.classifier.state_dict()[name]) for name, value in one.classifier.state_dict().items()
    ]
    assert all(same) == (not colorful)


def test_classes_out_of_balance_in_both_domains_do_not_pass_for_a_shift():
    """One class is rare in source and the other in target, with no other difference between the two."""

    def blobs(share, seed):
        generator = torch.Generator().manual_seed(seed)
        y = (torch.rand(600, generator=generator) < share).long()
        x = torch.randn(600, 8, generator=generator)
        return x + 2.1 * (2 * y - 1)[:, None] * torch.eye(8)[0], y

    source, (target, truth) = blobs(0.2, seed=0), blobs(0.8, seed=50)
    settings = {"epochs": 10, "rounds": 5, "oracle_labels": truth, **LAST}
    found, lost = (
        calida.adapt(source, target, "calida", uniform_prior_slack=doubt, **settings).history[-1].oracle.accuracy
        for doubt in (1.0, math.inf)
    )
    assert found > 0.85
    assert lost < 0.7


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "source" not in name] + ["rer-2", "rer-0.5", "brer-0.5-gvr"]
)
def test_every_recipe_beats_source_only_on_a_constructed_shift(name, source_only):
    last = run(name).history[-1]
    assert source_only.oracle.accuracy < 0.9
    assert last.oracle.accuracy > source_only.oracle.accuracy + 0.05
    assert last.source.accuracy > 0.95


@pytest.mark.parametrize("guard", [True, False])
def test_a_budget_that_cannot_be_met_is_said_so(guard):
    """With what was reached: a budget of nearly nothing, and a multiplier that may not grow."""
    made = run("dual", budget=1e-5, dual_maximum=0.05, rounds=4, guard=guard)
    (warning,) = [one for one in made.trust.warnings if one.code == WarningCode.BUDGET_UNMET]
    assert (warning.values["budget"], warning.values["maximum"]) == (1e-5, 0.05)
    assert warning.values["reached"] > 1e-5
    met = run("dual", budget=5.0, rounds=2, guard=guard)
    assert not [one for one in met.trust.warnings if one.code == WarningCode.BUDGET_UNMET]


@pytest.mark.parametrize("seed", [0, 1])
def test_dual_ascent_ends_on_its_budget(seed):
    """Enough samples that one batch is like another: the target's entropy is steered by what batches show of it."""
    settings = {"rows": 1000, "batch_size": 100, "epochs": 20, "passes": 2}
    last = run("dual", seed, rounds=15, **settings).history[-1]
    budget = last.multipliers["target_entropy"].budget
    assert last.target.entropy == pytest.approx(budget, rel=0.1)
    free = run("rer-1", seed, **settings).history[-1]
    assert free.target.entropy < 0.75 * budget  # what it is without the brake


def test_diversity_keeps_entropy_from_giving_everything_to_one_class():
    """A model that leans to one class: certainty alone gives it everything, with diversity each keeps its share."""
    target = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    shares = {}
    for weight in (0.0, 2.0):
        terms = {"entropy": Weighted(TargetEntropy()), "diversity": Weighted(Diversity(), weight)}
        model = build_classifier(Network((6,), 4), Seeds(0))
        with torch.no_grad():
            model.head.mean.bias[0] += 2
        batch = TargetBatch(target, torch.zeros(400, 4), torch.zeros(400))
        steps = (Step(model, {"target": batch}, Seeds(0).at(index)) for index in range(80))
        train(model, torch.optim.Adam(model.parameters(), 3e-3), Objective(terms), steps, {})
        shares[weight] = predict(model, target).labels.bincount(minlength=4) / 400
    assert shares[0.0].max() > 0.95
    assert shares[2.0].max() < 0.35


def test_vat_flattens_predictions_around_the_samples():
    _, target, _ = shift.make()
    sensitivity = {}
    for weight in (0.0, 1.0):
        model = run("rer-1", vat=weight, rounds=5).classifier
        batch = TargetBatch(target, target.new_zeros(len(target), 4), target.new_zeros(len(target)))
        sensitivity[weight] = VirtualAdversarial(1.0)(Step(model, {"target": batch}, Seeds(0))).item()
    assert sensitivity[1.0] < 0.7 * sensitivity[0.0]


def test_mmd_draws_the_features_together():
    (x, _), target, _ = shift.make()
    distance = {}
    for name in ("source", "mmd"):
        adapted = run(name)
        distance[name] = float(squared_mmd(adapted.predict(x).features, adapted.predict(target).features))
    assert distance["mmd"] < 0.7 * distance["source"]


def test_names_say_order_network_and_gradient_variance():
    recipe = get_recipe("brer-2.5-gvr")
    assert (recipe.name, recipe.posterior.gaussian, recipe.entropy.order) == ("brer-2.5-gvr", True, 2.5)
    assert recipe.gradient_variance.weight == 1.0
    assert get_recipe("rer-inf").entropy.order == math.inf
    assert get_recipe("rer-1").posterior.gaussian is False
    assert get_recipe("brer-1").posterior.num_samples == 10
    assert get_recipe("rer-1.0000001").name == "rer-1.0000001"
    for rounds in (2, 5, 10):
        temperature = phases(get_recipe("annealed").with_settings(rounds=rounds))[1].pseudo_labeler.temperature
        assert [temperature(0, rounds), temperature(rounds - 1, rounds)] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "hint"), [("rer-infinity", "rer-inf"), ("duel", "dual"), ("rer-0", "rer-"), ("", "source")]
)
def test_an_unknown_recipe_gets_the_nearest_names(name, hint):
    with pytest.raises(calida.InputError, match=f"unknown recipe '{name}'; (did you mean|there are) .*{hint}"):
        get_recipe(name)


@pytest.mark.parametrize("recipe", [*RECIPES.values(), get_recipe("rer-0.5")], ids=lambda recipe: recipe.name)
def test_recipes_survive_json(recipe):
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json(), allow_nan=False))) == recipe


def test_settings_take_what_config_files_can_say():
    recipe = get_recipe("rer-inf").with_settings(order="inf", portion=[0.2, 0.1, 0.9], source_portion=0.5, rounds=3.0)
    assert recipe.entropy.order == math.inf
    assert recipe.pseudo_labels.portion == Ramp(0.2, 0.1, 0.9)
    assert recipe.adaptation.source_portion == Ramp(0.5)
    assert recipe.adaptation.rounds == 3
    assert isinstance(recipe.adaptation.rounds, int)
    assert get_recipe("rer-1").with_settings(budget=1).entropy.budget == 1.0
    assert get_recipe("calida").with_settings(max_batches_per_epoch="none").pretraining.max_batches_per_epoch is None


def test_a_setting_has_a_full_name_a_short_one_and_a_group():
    recipe = get_recipe("rer-inf")
    by_group = recipe.with_settings(adaptation={"rounds": 7, "learning_rate": 0.5})
    assert by_group == recipe.with_settings({"adaptation.rounds": 7, "adaptation.learning_rate": 0.5})
    assert recipe.with_settings(rounds=7) == recipe.with_settings({"adaptation.rounds": 7})
    with pytest.raises(calida.InputError, match=r"'learning_rate' may be pretraining.learning_rate or adaptation"):
        recipe.with_settings(learning_rate=0.1)


def test_every_setting_is_documented_and_its_default_keeps_its_constraint():
    recipe = Recipe("plain")
    recipe.check()
    for full, one in recipe.each().items():
        assert len(one.words) > 10, full
        assert not one.words.endswith("."), full
    assert all(type(group).__doc__ for group in recipe.groups().values())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"learning_rat": 1},
            "unknown setting 'learning_rat'; did you mean pretraining.learning_rate, adaptation.learning_rate",
        ),
        ({"name": "mine"}, "unknown setting 'name'"),
        ({"rounds": -1}, "rounds must be at least 0, not -1"),
        ({"rounds": 2.5}, "rounds cannot be 2.5"),
        ({"rounds": True}, "rounds cannot be True"),
        ({"adaptation.learning_rate": "fast"}, "learning_rate cannot be 'fast'"),
        ({"adaptation.learning_rate": float("nan")}, "learning_rate cannot be nan"),
        ({"adaptation.learning_rate": 0}, "learning_rate must be a positive number"),
        ({"schedule": "both"}, "schedule is one of alternate, joint, not 'both'"),
        ({"gaussian": "yes"}, "gaussian cannot be 'yes'"),
        ({"order": -1}, "order must be a positive number, or inf"),
        ({"order": 0}, "order must be a positive number, or inf"),
        ({"portion": 1.5}, "portion must be a fraction between 0 and 1 in every round"),
        ({"portion": [0.5, 0.2]}, "portion must be a fraction between 0 and 1 in every round"),
        ({"budget": -1}, "entropy.budget must be a positive number"),
        ({"weight": 1, "groups": 60}, "gradient_variance.groups must be between 2 and half the batch size"),
        ({"mmd": 1.0}, "needs the joint schedule"),
        ({"multiplier": -1}, "multiplier must be a number from 0 up"),
        ({"diversity": "inf"}, "diversity must be a number from 0 up"),
        ({"weight_decay": -1}, "weight_decay must be a number from 0 up"),
        ({"adaptation.final_rate_fraction": 3}, "final_rate_fraction must be a fraction between 0 and 1"),
        ({"part": "("}, "gradient_variance.part is not a regular expression"),
        ({"temperature": -1}, "temperature must be a number from 0 up"),
        ({"portion": ["a"]}, r"portion cannot be \['a'\]"),
        ({"portion": []}, r"portion cannot be \[\]"),
        ({"budget": "source"}, "entropy.budget bounds an entropy"),
        ({"selection": "none", "mrkld": 0.1}, "mrkld holds pseudo-labels back"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings, sentence):
    with pytest.raises(calida.InputError, match=sentence):
        get_recipe("rer-inf").with_settings(**settings)


def test_phases_say_what_the_paper_says():
    pretraining, adaptation = phases(get_recipe("brer-inf-gvr"))
    assert pretraining.objective.terms.keys() == {"likelihood"}
    assert type(pretraining.objective.terms["likelihood"].term).__name__ == "ExpectedLikelihood"
    assert type(adaptation.objective.terms["likelihood"].term).__name__ == "PredictiveLikelihood"
    assert adaptation.schedule == "alternate"
    assert adaptation.selected_only
    assert adaptation.objective.gradient_variance.domain == "target"
    assert len(phases(get_recipe("source"))) == 1
    assert isinstance(phases(get_recipe("dual"))[1].objective, Objective)
    assert isinstance(phases(get_recipe("dual"))[1].objective.terms["target_entropy"].weight, DualAscent)


@pytest.mark.parametrize("name", RECIPES)
def test_a_quick_recipe_is_shorter_and_else_the_same(name):
    """A fifth of the epochs and a ninth of the adaptation, each rounded up: no phase is lost, and no other value."""
    recipe = get_recipe(name)
    short = quick(recipe)
    assert 5 * short.pretraining.epochs - 5 < recipe.pretraining.epochs <= 5 * short.pretraining.epochs
    assert 3 * short.adaptation.rounds - 3 < recipe.adaptation.rounds <= 3 * short.adaptation.rounds
    assert len(phases(short)) == len(phases(recipe))
    changed = {full for full, one in recipe.each().items() if short.each()[full].value != one.value}
    lengths = {"rounds", "passes", "min_batches_per_round", "max_batches_per_round"}
    assert changed <= {"pretraining.epochs", *(f"adaptation.{one}" for one in lengths)}
    assert quick(recipe).with_settings(rounds=7).adaptation.rounds == 7
