"""The averaged teacher: its weights in closed form, what it labels, what is returned, and that it resumes."""

import pytest
import shift
import torch
from histories import is_round, without_times
from test_rounds import Stop, assert_same, run, weights

from calida.errors import InputError
from calida.model import follow, make_teacher
from calida.objective import Consistency
from calida.recipes import get_recipe

TEACHER = {"recipe": "calida", "memory": 1.0, "noise": 0.1}


def test_weights_are_a_geometric_mean_of_the_students_past():
    student = torch.nn.Linear(2, 2)
    teacher = make_teacher(student)
    assert not any(p.requires_grad for p in teacher.parameters())
    path = torch.randn(6, 2, 2)
    expected = student.weight.detach().clone()
    for weight in path:
        with torch.no_grad():
            student.weight.copy_(weight)
        follow(teacher, student, 0.8)
        expected = 0.8 * expected + 0.2 * weight
    torch.testing.assert_close(teacher.weight, expected)
    assert student.weight.requires_grad


def test_a_teacher_that_never_moves_is_the_source_only_classifier():
    still = run("calida", memory=1e12, max_steps="inf")
    for name, value in still.source_only.classifier.named_parameters():
        torch.testing.assert_close(still.classifier.get_parameter(name), value, atol=1e-6, rtol=1e-5)


def test_a_teacher_that_follows_at_once_is_the_student():
    at_once, none = (run("calida", memory=memory) for memory in (1e-12, 0.0))
    for name, value in weights(none).items():
        torch.testing.assert_close(weights(at_once)[name], value, atol=1e-4, rtol=1e-3)


def test_the_last_record_is_about_what_is_returned():
    adapted, (_, target, _) = run(**TEACHER), shift.make(rows=200)
    entropy = float(adapted.predict(target, raw=True).entropy.mean())
    assert adapted.history[-1].target.entropy == pytest.approx(entropy, rel=1e-5)


def test_a_run_with_a_teacher_resumes_bit_for_bit(tmp_path):
    def stop(record):
        if is_round(record):
            raise Stop

    for _ in range(4):  # two epochs of pre-training, two of three rounds
        with pytest.raises(Stop):
            run(**TEACHER, folder=tmp_path, resume=True, observe=stop)
    resumed, straight = run(**TEACHER, folder=tmp_path, resume=True), run(**TEACHER)
    assert_same(resumed, straight)
    assert without_times(resumed.history) == without_times(straight.history)
    assert_same(run(**TEACHER, folder=tmp_path, resume=True), straight)  # nothing is left to do


def test_consistency_is_labeled_by_the_teacher(monkeypatch):
    seen = []
    call = Consistency.__call__

    def spy(term, step):
        seen.append(step.teacher is step.model)
        return call(term, step)

    monkeypatch.setattr(Consistency, "__call__", spy)
    run(**TEACHER, rounds=1)
    assert seen
    assert not any(seen)


def test_a_memory_is_the_shorter_of_its_rounds_and_its_steps():
    """What is shorter decides, and the other is as good as absent."""
    rounds, both = run("calida", memory=0.5, max_steps="inf"), run("calida", memory=0.5)
    steps = run("calida", memory=1e12, max_steps=0.5 * rounds.history[-1].steps)
    assert_same(rounds, both)
    assert_same(rounds, steps)


@pytest.mark.parametrize(("name", "value"), [("memory", -0.1), ("memory", float("inf")), ("max_steps", 0)])
def test_a_memory_that_no_average_has_is_refused(name, value):
    with pytest.raises(InputError, match=name):
        get_recipe("calida").with_settings(**{name: value})
