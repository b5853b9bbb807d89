"""Calibrations, imports and validations as text."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from paceline.model.equations.parameters import NAMES, UNKNOWNS
from paceline.model.fitting.calibration import Calibration
from paceline.model.foreign.imported import CollectiveTimes, Imported
from paceline.model.foreign.readers import StepTimes
from paceline.report import numbers
from paceline.report.table import Column, draw
from paceline.units import format_bytes, format_seconds

if TYPE_CHECKING:  # an import needs none of them, and SciPy is slow to load
    from paceline.model.validation.replay import Replayed
    from paceline.model.validation.validate import GroupResult, Validation


def calibration_text(calibration: Calibration, width: int) -> str:
    """What was learnt, and what not."""
    parameters = list(calibration.parameters().values())
    names = Column(header="parameter", cells=NAMES, right=False)
    columns = [
        Column(header="value", cells=tuple(_value(parameter.value, parameter.unit) for parameter in parameters)),
        Column(
            header=f"interval ({numbers.level(parameters[0].level)} for all)",
            cells=tuple(
                " – ".join(_value(end, parameter.unit) for end in parameter.interval) for parameter in parameters
            ),
        ),
        Column(header="is", cells=tuple(unknown.doc for unknown in UNKNOWNS), right=False),
    ]
    spread = calibration.straggling
    lines = [
        calibration.family.label,
        draw(names, columns, width),
        fill(
            f"workers' computing spreads by {spread.spread:.1%} from step to step (correlation "
            f"{spread.persistence:.2f}); {_slow(spread.slowest)}. Trials that were held out are "
            f"predicted within {calibration.residual:.1%} ({calibration.held_out} of them); runs differ by "
            f"{calibration.noise:.1%}.",
            width,
        ),
        *(fill(f"not known: {sentence}", width, subsequent_indent="  ") for sentence in calibration.unidentified),
        *(fill(f"doubt: {sentence}", width, subsequent_indent="  ") for sentence in calibration.remarks),
    ]
    return "\n".join(lines)


def imported_text(imported: Imported) -> str:
    """What was read of a file of another tool, in a sentence."""
    told = imported.told
    if isinstance(told, CollectiveTimes):
        sizes, seconds = told.sizes, told.seconds
        return (
            f"{imported.file}: {told.operation} among {imported.setting.workers} ranks, {len(sizes)} sizes from "
            f"{format_bytes(sizes[0])} ({format_seconds(seconds[0])}) to {format_bytes(sizes[-1])} "
            f"({format_seconds(seconds[-1])})"
        )
    if isinstance(told, StepTimes):
        step, exchange, exposed = map(format_seconds, (told.step, told.communication, told.exposed))
        return f"{imported.file}: a step of {step}, {exchange} of communication, {exposed} of it exposed"
    return f"{imported.file}: {len(told.bytes)} gradients, {format_bytes(sum(told.bytes))} in all"


def _slow(slowest: float) -> str:
    if slowest <= 1:
        return "none is permanently slower"
    return f"one takes {slowest:.3f} times as long as the others, permanently"


def _value(number: float, unit: str) -> str:
    if unit == "s":
        return format_seconds(number) if number else "0"
    if unit == "s/B":
        return f"{number * 1e9:.3g} ns/B"
    return f"{number:.3g}"


FIGURES = ("mape", "median", "p95", "max", "bias", "spearman", "coverage")


def validation_text(validation: Validation, width: int, *, points: bool) -> str:
    """Each model's figures over all groups, then group by group."""
    counted, least = len(validation.counted()), validation.least_rows
    blocks = [f"mean over {counted} group(s){f' with at least {least} rows on each side' if least > 1 else ''}"]
    models = validation.models
    names = Column(header="model", cells=tuple(models), right=False)
    overall = [validation.overall(model) for model in models]
    blocks.append(
        draw(
            names,
            [
                Column(header=figure, cells=tuple(_figure(figure, figures[figure]) for figures in overall))
                for figure in FIGURES
            ],
            width,
        )
    )
    groups = validation.groups
    labels = Column(
        header="mape by group", cells=tuple(_short(group.group, width // 3) for group in groups), right=False
    )
    blocks.append(
        draw(
            labels,
            [
                Column(header="fit", cells=tuple(str(group.n_fit) for group in groups)),
                Column(header="asked", cells=tuple(str(len(group.points)) for group in groups)),
                *(
                    Column(header=model, cells=tuple(_figure("mape", group.figures(model).mape) for group in groups))
                    for model in models
                ),
                Column(header="noise", cells=tuple(_figure("mape", group.noise) for group in groups)),
            ],
            width,
        )
    )
    blocks += [f"without rows: {sentence}" for sentence in validation.without_rows]
    if points:
        blocks += [_every_point(group) for group in groups]
    return "\n\n".join(blocks)


def _every_point(group: GroupResult) -> str:
    lines = [group.group, "workers  hosts  batch  network  measured s  " + "  ".join(group.predicted)]
    for index, point in enumerate(group.points):
        predictions = "  ".join(f"{values[index]:.4g}" for values in group.predicted.values())
        network = point.row.get("network") or "-"
        lines.append(f"{point.workers}  {point.hosts}  {point.batch:g}  {network}  {point.step_s:.4g}  {predictions}")
    return "\n".join(lines)


def split_text(validation: Validation, width: int) -> str:
    """Records of our own, every point."""
    return validation_text(validation, width, points=True)


def replay_text(replayed: Sequence[Replayed]) -> str:
    """A replayed trace beside what was measured."""
    names = Column(header="nodes", cells=tuple(str(trace.nodes) for trace in replayed))
    return "layer trace replayed (no prediction): speed-up\n" + draw(
        names,
        [
            Column(header="replayed", cells=tuple(f"{trace.replayed:.2f}" for trace in replayed)),
            Column(header="measured", cells=tuple(f"{trace.measured:.2f}" for trace in replayed)),
            Column(header="off by", cells=tuple(f"{trace.error:+.1%}" for trace in replayed)),
            Column(header="trace", cells=tuple(trace.trace for trace in replayed), right=False),
        ],
        80,
    )


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if name == "spearman" else f"{value:.1%}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
