"""The bars of a notebook: what its one output shows while a run goes on, and what it leaves."""

import re
import sys
from types import ModuleType

import pytest
from rich.console import Console

from calida.notebook_progress import NotebookProgress
from calida.progress import training_progress


class Output:
    """The place below a cell."""

    def __init__(self):
        self.shown = []

    def update(self, page):
        self.shown.append(page)


@pytest.fixture
def output(monkeypatch):
    place, module, package = Output(), ModuleType("IPython.display"), ModuleType("IPython")
    module.HTML = str
    module.display = lambda page, display_id: place
    package.display = module
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("calida.notebook_progress._EVERY", 0.0)
    return place


def test_one_output_is_drawn_anew_and_names_are_escaped(output):
    with NotebookProgress() as bars:
        task = bars.add_task("<reading>", total=4, rate="1 of 4")
        bars.console.print("round 1, <b>0.9</b>")
        bars.update(task, completed=1)
        page = output.shown[-1]
        assert '<progress value="1" max="4">' in page
        assert "&lt;reading&gt;" in page
        assert "25% 1 of 4" in page
        assert "round 1, &lt;b&gt;0.9&lt;/b&gt;" in page
    assert "<progress" not in output.shown[-1]
    assert "round 1" in output.shown[-1]


def test_of_many_lines_the_last_ones_are_shown(output):
    with NotebookProgress() as bars:
        for number in range(40):
            bars.console.print(f"round {number}")
    lines = re.findall(r"round (\d+)", output.shown[-1])
    assert lines == [str(number) for number in range(28, 40)]
    assert "28 lines before" in output.shown[-1]


def test_a_notebook_gets_these_bars_and_a_terminal_its_own(output):
    with training_progress(Console(force_jupyter=True)) as progress:
        assert isinstance(progress.bars, NotebookProgress)
    with training_progress(Console(force_terminal=True, force_jupyter=False)) as progress:
        assert not isinstance(progress.bars, NotebookProgress)
