"""Progress on a terminal: what is going on, how fast, and how long it will take."""

import io

from histories import labeled
from rich.console import Console

from calida.cli.screen import Screen
from calida.terminal import plain
from calida.training import PhasePlan, RunStarted, StepTaken
from calida.validation import RoundRecord


def test_progress_shows_place_rate_and_time_left():
    screen, seen = Screen(), io.StringIO()
    screen.console = Console(file=seen, force_terminal=True, width=120, color_system=None)
    here = ("pretrain", 0, 2)
    with screen.progress() as progress:
        progress.read("source", 5, 10)
        progress.bars.refresh()
        progress.read("source", 10, 10)
        progress.observe(RunStarted((PhasePlan("pretrain", 2, 200),)))
        for step in (1, 2):
            progress.observe(StepTaken(*here, step, 4, 25 * step, {}))
            progress.bars.refresh()
        (task,) = progress.bars.tasks
        assert task.completed == 50  # half a round of two
        assert task.total == 200
        progress.observe(RoundRecord(*here, labeled(0.5)))
        assert task.completed == 100
        progress.bars.refresh()
    text = seen.getvalue()
    assert "reading source" in text
    assert "pretrain 1/2" in text
    assert "samples/s" in text
    assert "left" in text
    assert "source accuracy 0.500" in text


def test_a_resumed_run_starts_where_it_was():
    screen = Screen()
    screen.console = Console(file=io.StringIO(), force_terminal=True, width=120)
    phases = (PhasePlan("pretrain", 2, 200), PhasePlan("adapt", 1, 300))
    history = tuple(RoundRecord("pretrain", index, 2, labeled()) for index in range(2))
    with screen.progress() as progress:
        progress.observe(RunStarted(phases, history))
        (task,) = progress.bars.tasks
        assert (task.completed, task.total) == (200, 500)


def test_text_from_the_disk_cannot_command_the_terminal():
    seen = io.StringIO()
    Console(file=seen, force_terminal=True, emoji=False, highlight=False, width=120).print(
        plain("mnist:train:2000 [red]\x1b[2J\x07\n")
    )
    assert "mnist:train:2000 [red]\\x1b[2J\\x07\\n" in seen.getvalue()
    assert "\x1b[2J" not in seen.getvalue()
