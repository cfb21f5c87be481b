"""Progress in a notebook: one output that is drawn anew in its place, without any extension of the notebook."""

from __future__ import annotations

import io
import time
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import Progress, Task, TaskID

_EVERY = 0.2  # seconds between two drawings
_LINES = 12  # of what was said, the last ones are shown


class NotebookProgress(Progress):
    """The bars of rich, shown as a page shows them; what is printed on `console` stands above them."""

    def __init__(self) -> None:
        self.said = io.StringIO()
        self._drawn = 0.0
        self._place: Any = None
        console = Console(file=self.said, force_terminal=False, force_jupyter=False, width=100, highlight=False)
        super().__init__(console=console, auto_refresh=False)

    def start(self) -> None:
        """Take a place below the cell."""
        from IPython.display import HTML, display

        self._place = display(HTML(""), display_id=True)

    def stop(self) -> None:
        """Leave what was said."""
        self._show([])

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Move a bar."""
        super().update(task_id, **changes)
        self.refresh()

    def refresh(self) -> None:
        """Draw, if the last drawing is old enough."""
        if self._place is not None and time.monotonic() - self._drawn >= _EVERY:
            self._show(self.tasks)

    def _show(self, tasks: list[Task]) -> None:
        from IPython.display import HTML

        self._drawn = time.monotonic()
        lines = self.said.getvalue().splitlines()
        more = [f"... ({len(lines) - _LINES} lines before)"] if len(lines) > _LINES else []
        text = "\n".join(escape(line.rstrip()) for line in (*more, *lines[-_LINES:]))
        self._place.update(HTML(f"<pre>{text}</pre>{''.join(map(_bar, tasks))}"))


def _bar(task: Task) -> str:
    """One task as a bar, with what it says and how long it has to go."""
    done, total = task.completed, task.total or 1
    left = "" if task.time_remaining is None else f", {task.time_remaining:.0f} s left"
    words = f"{task.percentage:.0f}% {task.fields.get('rate', '')}{left}"
    return (
        f"<div><code>{escape(task.description)}</code> "
        f'<progress value="{done:g}" max="{total:g}"></progress> {escape(words)}</div>'
    )
