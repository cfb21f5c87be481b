"""What long work will take, and what a terminal of 80 columns can show."""

import io
import json
import re
import time
from dataclasses import replace
from unittest import mock

import pytest
from commands import command
from histories import labeled
from rich.console import Console

from calida.cli import main
from calida.cli.screen import Screen
from calida.cli.select import show_selection
from calida.errors import InputError
from calida.recipes import RECIPES, WHEN
from calida.studies import StudyTask, forecast_seconds
from calida.terminal import about
from calida.training import PhasePlan, RunStarted, StepTaken
from calida.validation import VALIDATORS, RoundRecord, Selection
from reproduction.__main__ import ask_if_long
from reproduction.screen import show_claims, show_table, show_table1
from reproduction.tables import TABLE1, TABLES
from reproduction.tasks import PROTOCOLS

TINY = {"epochs": 4, "passes": 1, "min_batches_per_epoch": 1, "min_batches_per_round": 1, "batch_size": 40}


def watched(screen):
    screen.console = Console(file=io.StringIO(), width=80)  # no terminal: a pipe
    return screen


def at(clock, seconds):
    clock.return_value = seconds


def test_training_tells_once_how_long_it_takes_also_in_a_pipe():
    """100 samples a second; 700 of training on source and 1,000 of adaptation, each of which counts 1.4 times."""
    screen = watched(Screen())
    with mock.patch.object(time, "monotonic") as clock, screen.progress() as progress:
        at(clock, 0.0)
        progress.observe(RunStarted((PhasePlan("pretrain", 7, 700), PhasePlan("adapt", 10, 1000))))
        progress.observe(StepTaken("pretrain", 0, 7, 1, 10, 10, {}))
        at(clock, 0.4)
        progress.observe(StepTaken("pretrain", 0, 7, 5, 10, 50, {}))
        assert "about" not in screen.console.file.getvalue()
        at(clock, 2.9)
        progress.observe(StepTaken("pretrain", 2, 7, 10, 10, 100, {}))  # the bar's own count: 100 of this round
        for second in range(3, 9):
            at(clock, float(second))
            progress.observe(RoundRecord("pretrain", second - 3, 7, labeled()))
    told = re.findall(r"Training: (about .*) on this machine", screen.console.file.getvalue())
    # After 2.9 s and 90 samples: 600 + 1,400 to come at 0.0322 s, and a tenth for what comes after.
    assert told == [about(1.1 * 2.9 / 90 * (700 + 1400 - 100))]


def test_reading_and_short_work():
    screen = watched(Screen())
    with mock.patch.object(time, "monotonic") as clock, screen.progress() as progress:
        for second in range(4):
            at(clock, float(second))
            progress.read("embedding source", 10 * second, 10_000)
            progress.read("target", second, 4)
    told = screen.console.file.getvalue()
    assert told.count("Embedding source: about 17 minutes on this machine.") == 1
    assert "eading target" not in told


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "about 10 seconds"),
        (88, "about 90 seconds"),
        (250, "about 4 minutes"),
        (2 * 3600, "about 2 hours"),
        (1e6, "about 12 days"),
    ],
)
def test_times_in_words(seconds, words):
    assert about(seconds) == words


def test_a_study_is_foreseen_by_a_trial_and_grows_with_what_there_is_to_do():
    def job(recipe, **settings):
        return StudyTask("t", "uci-digits:60", "uci-digits:60", "compact", settings={**TINY, **settings}).job(recipe, 0)

    jobs = [job("source", epochs=4), job("source", epochs=400)]  # of one cost: a single trial
    began = time.perf_counter()
    long = forecast_seconds(jobs, 1)
    took = time.perf_counter() - began
    assert long > 0
    samples = 54 * 404
    assert long < 1.1 * took / 100 * 2 * samples  # a trial has taken more than 100 samples
    assert forecast_seconds([job("rer-inf", rounds=300)], 2) > 0


def test_what_an_encoder_reads_is_not_tried(tmp_path):
    """Texts have no network of their own to try, and a head on embeddings takes seconds."""
    for name in ("source", "target"):
        lines = [json.dumps({"text": f"{name} {place}", "label": "ab"[place % 2]}) for place in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    task = StudyTask("texts", str(tmp_path / "source.jsonl"), str(tmp_path / "target.jsonl"))
    job = task.job("rer-1", 0)
    job = replace(job, config=replace(job.config, text="text", label="label", target_labels=None))
    assert forecast_seconds([job], 1) == 0


def test_reproduction_wants_a_yes_above_ten_minutes():
    for seconds, yes in ((599.0, False), (3600.0, True)):
        screen = watched(Screen())
        ask_if_long(screen, seconds, 12, yes)
        assert screen.console.file.getvalue() == f"12 runs: {about(seconds)} on this machine.\n"
    with pytest.raises(InputError, match=r"12 runs: about 60 minutes on this machine, .* say --yes"):
        ask_if_long(watched(Screen()), 3600.0, 12, False)  # nobody is there to be asked


def tables_of(text):
    """The lines of a text that belong to a table."""
    return [line for line in text.splitlines() if line[:1] in "┏┃┡│├└"]


def fits(text):
    lines = tables_of(text)
    assert lines
    assert max(map(len, lines)) <= 80
    assert "…" not in text


@pytest.mark.parametrize("words", ["recipes", "recipes calida", "encoders", "data list", "cache list"])
def test_tables_fit_80_columns(words, tmp_path):
    fits(command(main, "calida", *words.split(), cwd=tmp_path, columns=80).stdout)


def test_tables_of_results_fit_80_columns():
    table = {f"runs/a-rather-long-name-of-a-run-{n}": dict.fromkeys(VALIDATORS, 0.5 + n) for n in range(3)}
    picks = {name: f"runs/a-rather-long-name-of-a-run-{n % 3}" for n, name in enumerate(VALIDATORS)}
    screen = watched(Screen())
    show_selection(screen, Selection(next(iter(table)), table, picks, 0.5), dict.fromkeys(table, 0.9))
    fits(screen.console.file.getvalue())
    screen, tasks = watched(Screen()), PROTOCOLS["main"]
    for one in TABLES.values():
        show_table(screen, one, tasks[one.task], range(2), {})
    for name in TABLE1:
        show_table1(screen, tasks[name], range(2), {})
    show_claims(screen, tasks, range(2), {})
    fits(screen.console.file.getvalue())


def test_every_recipe_says_when_to_choose_it():
    assert set(WHEN) == {*RECIPES, "auto"}
    told = " ".join(command(main, "calida", "recipes", columns=200).stdout.replace("│", " ").split())
    assert all(words in told for words in WHEN.values())
