"""A run's progress as bars, in a terminal or a notebook: reading, training, rate and time left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from calida.notebook_progress import NotebookProgress
from calida.terminal import about, plain
from calida.training import SOURCE_PHASE, PhasePlan, RunEvent, RunStarted, StepTaken, round_line
from calida.validation import RoundRecord

_FIRST_STEPS = 4
_LOOK = 2.0  # seconds of work after which its pace is known
_LONG = 20.0  # seconds that are worth a word
# A sample of adaptation costs 1.2 to 1.6 times one of training on source (results/reproduction, the demo): both domains
# are predicted after every round, and a teacher has its share. Checks, calibration and report come on top.
_ADAPTATION, _AT_THE_END = 1.4, 1.1
_TRAINING = "training"


def viewer() -> Console:
    """Where a person looks: the notebook, or else standard error."""
    notebook = Console()
    if notebook.is_jupyter:
        return notebook
    return Console(stderr=True, force_jupyter=False, highlight=False, emoji=False, soft_wrap=True)


@contextmanager
def training_progress(console: Console) -> Iterator[TrainingProgress]:
    """Bars on this console while the run goes on; where nobody looks, in a file or a pipe, only a line a round."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with (
        NotebookProgress()
        if console.is_jupyter
        else Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    ) as bars:
        yield TrainingProgress(bars)


class FirstSteps:
    """How long a phase will take, told by its first steps and by the look at all samples before them."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.first: tuple[float, int] | None = None  # when, and how many samples had been run by then

    def expect(self, event: StepTaken, now: float) -> float | None:
        """Seconds from here to the end, once enough steps are taken: all steps, and a look after each round.

        What is returned at last is looked at three times more, to calibrate it and to draw the report.
        """
        if self.first is None:
            self.first = now, event.samples
        if event.step < _FIRST_STEPS or event.samples == self.first[1]:
            return None
        each = (now - self.first[0]) / (event.samples - self.first[1])
        look = max(self.first[0] - self.began - each * self.first[1], 0.0)
        rounds = event.rounds - event.round
        of_round = each * event.samples * event.steps / event.step
        return rounds * (of_round + look) - each * event.samples + 3 * look


def in_words(seconds: float) -> str:
    """A time that nobody needs to the second."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


class TrainingProgress:
    """Turns the records of a run into bars: one for reading, one for training as a whole."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.reading: dict[str, TaskID] = {}
        self.task: TaskID | None = None
        self.behind = 0.0  # samples of finished rounds
        self.ahead: dict[str, float] = {}  # samples that are expected of a round, by phase
        self.clock: FirstSteps | None = None  # where training takes so long that it is said beforehand
        self.plan: tuple[PhasePlan, ...] = ()
        self.begun: dict[str, tuple[float, float]] = {}  # when what was begun, and how much of it was done then
        self.told: set[str] = set()  # what has a forecast
        self.several = ""

    def read(self, name: str, done: int, total: int) -> None:
        since, before = self.begun.setdefault(name, (time.monotonic(), done))
        took = time.monotonic() - since
        if took > _LOOK and done > before:
            words = name if " " in name else f"reading {name}"
            self._forecast(name, words.capitalize(), took / (done - before) * (total - done))
        if name not in self.reading:
            words = name if " " in name else f"reading {name}"
            self.reading[name] = self.bars.add_task(words, total=total, rate="")
        self.bars.update(self.reading[name], completed=done, rate=f"{done:,} of {total:,}")
        if done == total:
            self.bars.remove_task(self.reading.pop(name))

    def observe(self, event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            self._start(event)
        elif isinstance(event, StepTaken):
            self._move(event, event.step / event.steps)
            if self.clock is not None and (seconds := self.clock.expect(event, time.perf_counter())) is not None:
                self.bars.console.print(f"this will take about {in_words(seconds)}, by the first steps")
                self.clock = None
            self._foresee(event, event.step / event.steps)
        else:
            self._move(event, 1.0)
            self._foresee(event, 1.0)
            self.behind += self.ahead[event.phase]
            self.bars.console.print(plain(round_line(event)))

    def _foresee(self, place: StepTaken | RoundRecord, share: float) -> None:
        """Once, as soon as the pace is known: how long training takes from here on."""
        if _TRAINING in self.told or place.phase not in self.ahead:
            return
        done = self.behind + share * self.ahead[place.phase]
        since, before = self.begun.setdefault(_TRAINING, (time.monotonic(), done))
        took = time.monotonic() - since
        if took < _LOOK or done <= before:
            return
        pace = took / (done - before)
        dearer = _ADAPTATION if place.phase == SOURCE_PHASE else 1.0
        left = sum(phase.samples * (1.0 if phase.phase == place.phase else dearer) for phase in self.plan)
        self._forecast(_TRAINING, "Training", _AT_THE_END * pace * max(left - done, 0.0), self.several)

    def _forecast(self, name: str, words: str, seconds: float, more: str = "") -> None:
        if name not in self.told and seconds >= _LONG:
            self.bars.console.print(plain(f"{words}: {about(seconds)} on this machine{more}."))
        self.told.add(name)

    def _start(self, event: RunStarted) -> None:
        self.plan, self.several = event.phases, "" if event.recipe is None else f" for {event.recipe}, one of several"
        self.told.discard(_TRAINING)
        self.begun.pop(_TRAINING, None)
        self.ahead = {phase.phase: phase.samples / max(phase.rounds, 1) for phase in event.phases}
        recipe = event.recipe
        history = [done for done in event.history if done.recipe == recipe]  # where several are tried
        self.behind = sum(self.ahead.get(done.phase, 0.0) for done in history)
        total = sum(phase.samples for phase in event.phases)
        if self.task is not None:
            self.bars.remove_task(self.task)
        if recipe is not None:
            self.bars.console.print(f"recipe {plain(recipe)}")
        self.task = self.bars.add_task("training", total=total, completed=round(self.behind), rate="")
        if event.memory is not None:
            self.told.add(_TRAINING)  # its steps are few, and told by a clock of their own
            self.clock = FirstSteps(time.perf_counter())
            memory = f"{event.memory / 1e9:.1f} GB"
            self.bars.console.print(f"the encoder's network learns as well: a step takes about {memory} of memory")
        elif history:
            self.bars.console.print(f"going on after {len(history)} finished rounds")

    def _move(self, place: StepTaken | RoundRecord, share: float) -> None:
        assert self.task is not None
        here = f"{place.phase} {place.round + 1}/{place.rounds}"
        speed = self.bars.tasks[self.bars.task_ids.index(self.task)].speed
        self.bars.update(
            self.task,
            description=here,
            completed=self.behind + share * self.ahead[place.phase],
            rate="" if speed is None else f"{speed:,.0f} samples/s",
        )
