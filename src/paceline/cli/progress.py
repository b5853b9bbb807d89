"""What a user sees while a study runs: one line per run, and on a terminal a bar over all runs with the time left.

Everything is drawn between runs: the bar before one starts, its result after it has ended. While workers measure the
host is silent, so there is no thread that refreshes anything.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from paceline.cli.output import say
from paceline.cli.plan import names_of
from paceline.cli.terminal import console_of, is_terminal
from paceline.plan import Plan, PlannedRun
from paceline.record import PROOF, Record
from paceline.record.true_time import true_summary
from paceline.report.glyphs import for_encoding
from paceline.units import format_count, format_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR = 16
"""Characters of the bar."""
MOST_COLUMNS = 100
"""The longest line: on a wide terminal a result at its right end would be too far from its name to be read with it."""
INDENT = 8
"""The indent of the result of a run."""


class Narrator:
    """Tells a person what happens."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._bar = Bar() if is_terminal(sys.stderr) else None

    def say(self, message: str) -> None:
        say(message)

    def planned(self, plan: Plan) -> None:
        self._names = names_of(plan)
        for skip in plan.skipped:
            say(f"skip {self._names[skip.trial.id]}: {skip.reason}")
        already = f"{len(plan.done)} recorded already" if plan.done else ""
        if plan.runs:
            comma = ", " if already else ""
            say(f"{len(plan.runs)} run(s) to do{comma}{already}; estimated {format_seconds(plan.estimate_s)}")
        elif plan.is_impossible:
            say("nothing can run")
        else:
            say(f"nothing left to run{': ' if already else ''}{already}; measure more with --again")

    def before(self, run: PlannedRun, number: int, total: int, remaining_s: float) -> None:
        name = self._names.get(run.trial.id, run.trial.id)
        if self._bar is not None:
            self._bar.before(f"{name.partition('  (')[0]}, repeat {run.repeat + 1}", number, total, remaining_s)
        else:
            say(f"[{number}/{total}] {name} repeat {run.repeat + 1}   about {format_seconds(remaining_s)} left")

    def after(self, record: Record) -> None:
        # That times are simulated stands in the line itself.
        warnings = [f"warning: {doubt.message}" for doubt in record.doubts if doubt.code != "simulated"]
        if self._bar is not None:
            reason = [] if record.ok else [failure_words(record)]
            self._bar.after(result_words(record) if record.ok else record.outcome.kind.value, [*reason, *warnings])
            return
        took = f", run took {format_seconds(record.elapsed_s)}" if record.ok else ""
        say(f"{' ' * INDENT}{result_words(record) if record.ok else failure_words(record)}{took}")
        for message in warnings:
            say(f"{' ' * INDENT}{message}")


class Bar:
    """One line at the bottom of a terminal while a run measures; what the run gave takes its place."""

    def __init__(self) -> None:
        self._console = console_of(sys.stderr)
        self._number = ""
        self._name = ""

    def before(self, name: str, number: int, total: int, remaining_s: float) -> None:
        from rich.progress_bar import ProgressBar

        self._number, self._name = f"[{number}/{total}]", name
        bar = ProgressBar(total=total, completed=number - 1, width=BAR)
        self._show(bar, self._number, name, f"about {format_seconds(remaining_s)} left")

    def after(self, result: str, remarks: list[str]) -> None:
        from rich.control import Control
        from rich.padding import Padding
        from rich.segment import ControlType

        # The bar ends with a line break, so that whatever interrupts a run begins a line of its own.
        self._console.control(Control((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2)))
        self._show(self._number, self._name, result)
        for remark in remarks:
            self._console.print(Padding(self._letters(remark), (0, 0, 0, INDENT)))

    def _show(self, *parts: RenderableType) -> None:
        """Parts beside each other in one line of the terminal; the last but one is a name, cut where it is too long."""
        from rich.table import Table
        from rich.text import Text

        line = Table.grid(padding=(0, 1), expand=True)
        line.width = min(self._console.width, MOST_COLUMNS)
        for place in range(len(parts)):
            if place == len(parts) - 2:
                # An ellipsis is no letter of every terminal.
                line.add_column(no_wrap=True, overflow="ellipsis" if self._letters("…") == "…" else "crop", ratio=1)
            else:
                line.add_column(no_wrap=True)
        line.add_row(*(Text(self._letters(part)) if isinstance(part, str) else part for part in parts))
        self._console.print(line)

    def _letters(self, text: str) -> str:
        """The text in the letters that the terminal has."""
        return for_encoding(text, self._console.encoding)


def result_words(record: Record) -> str:
    """What a run that ended well has measured."""
    if record.kind == PROOF:
        return "shown"
    summary = true_summary(record)
    if summary is None:
        return "succeeded, but no step was measured"
    if record.trial.workload.collective is not None:
        sizes = record.trial.steps_a_round
        return f"{sizes} sizes, {summary.n_steps // sizes} rounds"
    simulated = " (simulated)" if record.trial.framework.simulated else ""
    return f"{format_count(summary.throughput)} samples/s, step {format_seconds(summary.step_s)}{simulated}"


def failure_words(record: Record) -> str:
    """Why a run did not end well."""
    return f"{record.outcome.kind.value} {record.outcome.stage}: {record.outcome.reason}"
