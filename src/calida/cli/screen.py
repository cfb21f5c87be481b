"""What a person sees while a command runs: notes, progress with rate and time left, tables of results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from calida.launch import is_first
from calida.terminal import counted, plain, table_of

if TYPE_CHECKING:
    from calida.progress import TrainingProgress
    from calida.runs import Metrics, RunData


class Screen:
    """Everything but lists and JSON goes to standard error, so that pipes stay clean; `quiet` leaves only errors."""

    def __init__(self, quiet: bool = False, as_json: bool = False) -> None:
        self.as_json = as_json and is_first()
        self.console = Console(
            stderr=True, quiet=quiet or as_json or not is_first(), highlight=False, emoji=False, soft_wrap=True
        )

    def say(self, text: str) -> None:
        """A line of plain text: nothing in it is markup or a command to the terminal."""
        self.console.print(plain(text))

    def show_list(self, table: Any) -> None:
        """What a command was asked to list, on standard output, so that it can be searched and paged."""
        if not self.as_json and not self.console.quiet:
            Console(highlight=False, emoji=False).print(table)

    def error(self, text: str) -> None:
        """One sentence that no option silences; of several processes, the first one says it."""
        if not is_first():
            return
        Console(stderr=True, highlight=False, emoji=False, soft_wrap=True).print(f"[bold red]calida:[/] {plain(text)}")

    def result(self, value: Any) -> None:
        """The machine-readable end of a command, if asked for."""
        if self.as_json:
            print(json.dumps(value, indent=1))

    def show_data(self, data: RunData) -> None:
        """What was done to both domains."""
        for name, loaded, notes in (
            ("source", data.source, data.preparation.source_notes),
            ("target", data.target, data.preparation.target_notes),
        ):
            self.console.print(f"[bold]{name}[/] {plain(loaded.collection.origin)}: {plain('; '.join(notes))}")
        shown = ", ".join(data.preparation.classes[:12]) + (", ..." if len(data.preparation.classes) > 12 else "")
        self.console.print(f"[bold]classes[/] {len(data.preparation.classes)}: {plain(shown)}")

    def show_result(self, metrics: Metrics) -> None:
        """Source-only against what is returned, side by side, and the verdict."""
        table = table_of(title="source only against what is returned", title_justify="left")
        for column in ("", "source only", "returned"):
            table.add_column(column, overflow="fold", justify="left" if not column else "right")
        sides = (metrics["source_only"], metrics["adapted"])
        for name, part, key, form in _ROWS:
            if part in sides[1]:
                table.add_row(name, *(form.format(side[part][key]) for side in sides))
        self.console.print(table)
        if "verdict" in metrics:
            self.show_returned(metrics["trust"])
            self.show_verdict(metrics["verdict"])

    def show_returned(self, trust: Mapping[str, Any]) -> None:
        """What is returned, and why; where validators chose a round, the report has their names and what they say."""
        compared = trust["decision"].get("compared") or trust["decision"].get("family")
        why = f" {plain(trust['reason'])}" if compared else ""
        self.console.print(f"[bold]Returned:[/] {plain(trust['returned'])}.{why}")

    def show_groups(self, groups: Mapping[str, Any]) -> None:
        """Accuracy for each value of a column, measured with labels."""
        table = table_of(title=plain(f"target accuracy (oracle) by {groups['column']}"), title_justify="left")
        for column in (groups["column"], "rows", "source only", "adapted", "95% interval"):
            table.add_column(plain(column), overflow="fold", justify="left" if column == groups["column"] else "right")
        for one in groups["groups"]:
            shares = (f"{one[side]:.1%}" for side in ("source_only", "adapted"))
            table.add_row(plain(one["group"]), f"{one['rows']:,}", *shares, f"{one['low']:.1%} to {one['high']:.1%}")
        self.console.print(table)

    def show_verdict(self, verdict: Mapping[str, Any]) -> None:
        """The report's own words: both answers, the estimate, what worries most, and what to do next."""
        finding, action = verdict["finding"], verdict["action"]
        for question, key in (("Can I use it?", "use"), ("Did adaptation help?", "helped")):
            answer = verdict[key]
            color = _COLORS[answer["level"]]
            self.console.print(f"[bold]{question}[/] [{color}]{plain(answer['short'])}.[/] {plain(answer['words'])}")
        self.console.print(f"[bold]Estimate:[/] {plain(verdict['estimate'])}")
        if finding is not None:
            words, color = _SEVERITIES[finding["severity"]]
            more = f" ({verdict['findings'] - 1} more in the report)" if verdict["findings"] > 1 else ""
            self.console.print(f"[{color}]{words}:[/] {plain(finding['text'])}{more}")
        self.console.print(f"[bold]Do this next:[/] {plain(action['words'])}")
        self.console.print(f"  {plain(action['command'])}")

    def show_labeled(self, labeled: Mapping[str, Any]) -> None:
        """What a few labels say of both classifiers, and of the estimate without labels."""
        for name, side in (("source only", "source_only"), ("returned", "adapted")):
            found = labeled[side]
            self.console.print(
                f"[bold]target accuracy by {counted(labeled['labels'], 'label')}, {name}[/] {found['value']:.1%} "
                f"({found['low']:.1%} to {found['high']:.1%} at {labeled['level']:.0%})"
            )
        if labeled["of_no_class"]:
            self.say(f"{labeled['of_no_class']:,} of the labeled samples are of no class that the source has.")
        if labeled["left_empty"]:
            left = counted(labeled["left_empty"], "row")
            self.say(
                f"{left} above the last label {'is' if labeled['left_empty'] == 1 else 'are'} empty. Samples that are "
                "left out because they are hard make these figures too high."
            )
        self.say(labeled["verdict"])

    def show_files(self, folder: Path) -> None:
        for name, words in _FILES.items():
            if (folder / name).exists():
                self.console.print(f"  {plain(str(folder / name))}  [dim]{words}[/]")

    @contextmanager
    def progress(self) -> Iterator[TrainingProgress]:
        from calida.progress import training_progress

        with training_progress(self.console) as progress:
            yield progress


_ROWS = (
    ("target accuracy (oracle)", "oracle", "accuracy", "{:.2%}"),
    ("target mean class accuracy (oracle)", "oracle", "mean_class_accuracy", "{:.2%}"),
    ("target ECE (oracle)", "oracle", "ece", "{:.2%}"),
    ("target ECE, uncalibrated (oracle)", "oracle_uncalibrated", "ece", "{:.2%}"),
    ("target NLL (oracle)", "oracle", "nll", "{:.3f}"),
    ("target entropy", "target", "entropy", "{:.3f}"),
    ("target confidence", "target", "confidence", "{:.2%}"),
    ("source accuracy", "source", "accuracy", "{:.2%}"),
    ("source ECE", "source", "ece", "{:.2%}"),
)
_COLORS = {"good": "bold green", "neutral": "bold", "care": "bold yellow", "bad": "bold red"}  # by level of an answer
_SEVERITIES = {
    "note": ("Good to know", "bold"),
    "care": ("Look at this", "bold yellow"),
    "alarm": ("Alarm", "bold red"),
}
_FILES = {
    "report.html": "the report, for a browser",
    "predictions.csv": "a label and uncertainties for every target sample",
    "model.json": "the classifier, for calida predict",
    "metrics.json": "all figures",
    "config.toml": "every setting, for calida adapt --config",
}
