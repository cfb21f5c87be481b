"""Progress on a terminal: what is going on, how fast, and how long it will take."""

import io

from rich.console import Console

from calida.cli.screen import Screen, plain


def test_progress_shows_place_rate_and_time_left():
    screen, seen = Screen(), io.StringIO()
    screen.console = Console(file=seen, force_terminal=True, width=120, color_system=None)
    start = {"kind": "start", "phases": [{"phase": "pretrain", "rounds": 2, "samples": 200}], "history": []}
    here = {"phase": "pretrain", "round": 0, "rounds": 2}
    with screen.progress() as progress:
        progress.read("source", 5, 10)
        progress.bars.refresh()
        progress.read("source", 10, 10)
        progress.observe(start)
        for step in (1, 2):
            progress.observe({"kind": "step", **here, "step": step, "steps": 4, "samples": 25 * step})
            progress.bars.refresh()
        (task,) = progress.bars.tasks
        assert task.completed == 50  # half a round of two
        assert task.total == 200
        source = {"accuracy": 0.5, "entropy": 1.0}
        progress.observe({"kind": "round", **here, "source": source, "seconds": 1.5})
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
    phases = [{"phase": "pretrain", "rounds": 2, "samples": 200}, {"phase": "adapt", "rounds": 1, "samples": 300}]
    with screen.progress() as progress:
        progress.observe({"kind": "start", "phases": phases, "history": [{"phase": "pretrain"}, {"phase": "pretrain"}]})
        (task,) = progress.bars.tasks
        assert (task.completed, task.total) == (200, 500)


def test_text_from_the_disk_cannot_command_the_terminal():
    seen = io.StringIO()
    Console(file=seen, force_terminal=True, emoji=False, highlight=False, width=120).print(
        plain("mnist:train:2000 [red]\x1b[2J\x07\n")
    )
    assert "mnist:train:2000 [red]\\x1b[2J\\x07\\n" in seen.getvalue()
    assert "\x1b[2J" not in seen.getvalue()
