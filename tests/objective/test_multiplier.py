import pytest

from calida.objective import DualAscent, MultiplierState


def finalize(rule, state, entropy_of, steps=4000):
    for _ in range(steps):
        state.update(rule, entropy_of(state.value))
    return state


def test_it_finds_the_multiplier_that_meets_the_budget():
    """A toy with a known answer: H(multiplier) = 1 / (1 + multiplier) meets a budget of 0.25 at 3."""
    rule = DualAscent(budget=0.25, rate=0.05, maximum=10.0)
    state = MultiplierState()
    state.measure(rule, source=99.0, target=1.0, training=1.0)
    finalize(rule, state, lambda multiplier: 1 / (1 + multiplier))
    assert state.value == pytest.approx(3, rel=1e-3)
    assert state.average == pytest.approx(0.25, rel=1e-3)


def test_it_falls_to_zero_when_the_target_is_certain_enough_and_stops_at_its_maximum():
    rule = DualAscent(budget=0.5, rate=0.05, maximum=2.0)
    state = MultiplierState(ascent=1.0)
    state.measure(rule, 0.0, 1.0, 1.0)
    assert finalize(rule, state, lambda _: 0.1).value == 0.0
    assert finalize(rule, state, lambda _: 3.0).value == 2.0


def test_source_budget_is_source_entropy_and_a_number_is_itself():
    state = MultiplierState()
    state.measure(DualAscent("source"), source=0.3, target=1.0, training=1.0)
    state.measure(DualAscent("source"), source=0.1, target=1.0, training=1.0)
    assert state.budget == 0.3  # that of the pre-trained model, from then on
    number = MultiplierState()
    number.measure(DualAscent(0.7), source=0.3, target=1.0, training=1.0)
    assert number.budget == 0.7


def test_the_constraint_is_on_predictive_entropy():
    """Training entropy is twice the predictive one (dropout): the budget must hold for the latter."""
    rule = DualAscent(budget=0.2, rate=0.05, maximum=20.0)
    state = MultiplierState()
    predictive = 1.0
    for _ in range(60):
        state.measure(rule, source=0.0, target=predictive, training=2 * predictive)
        finalize(rule, state, lambda multiplier: 2 / (1 + multiplier), steps=200)
        predictive = 1 / (1 + state.value)
    assert predictive == pytest.approx(0.2, rel=1e-2)


def test_certainty_beyond_measure_does_not_divide_by_zero():
    rule = DualAscent("source")
    state = MultiplierState()
    state.measure(rule, source=0.0, target=0.0, training=0.0)
    state.update(rule, 0.0)
    state.measure(rule, source=0.0, target=0.0, training=0.0)
    state.update(rule, 1.0)
    assert 0 <= state.value <= rule.maximum
