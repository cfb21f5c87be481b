"""Every bad input and every fault in the catalogue: one sentence, exit code 2, nothing written."""

import pytest
from cases import CASES
from commands import calida_command
from fault_files import snapshot

import calida

_TOLD_BEFORE = ("source ", "target ", "classes ", "calida: note: ")  # what was read, before anything went wrong


def test_the_catalogue_is_as_long_as_it_should_be_and_names_no_fault_twice():
    assert len({case.name for case in CASES}) == len(CASES) >= 150


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore::calida.errors.CalidaWarning")
def test_a_fault_is_one_sentence_and_leaves_nothing(case, world):
    if case.prepare is not None:
        case.prepare(world)
    before = snapshot(world)
    if isinstance(case.call, str):
        done = calida_command(*case.call.split(), cwd=world)
        assert done.returncode == 2, done.stderr
        (sentence,) = [line for line in done.stderr.splitlines() if not line.startswith(_TOLD_BEFORE)]
        assert sentence.startswith("calida: ")
        assert not done.stdout
    else:
        with pytest.raises(calida.CalidaError) as caught:
            case.call(world)
        sentence = str(caught.value)
        assert sentence
        assert "\n" not in sentence
    assert case.says in sentence
    assert snapshot(world) == before
