"""Calibrations, predictions and validations as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import NAMES, UNKNOWNS
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.predict import Prediction
from paceline.report import numbers
from paceline.report.glyphs import IDEAL, MEASURED, UNSURE
from paceline.report.table import Column, draw
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import SIMULATED
from paceline.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:  # a prediction needs none of them, and SciPy is slow to load
    from paceline.model.foreign.imported import Imported
    from paceline.model.validation.replay import Replayed
    from paceline.model.validation.validate import GroupResult, Validation

CHART = 32
"""Columns of a bar."""
HOUR_S = 3600.0
JOULES_A_KWH = 3.6e6


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
    contents = imported.told
    if "sizes" in contents:
        sizes, seconds = contents["sizes"], contents["seconds"]
        return (
            f"{imported.file}: {contents['operation']} among {imported.setting.workers} ranks, {len(sizes)} sizes from "
            f"{format_bytes(sizes[0])} ({format_seconds(seconds[0])}) to {format_bytes(sizes[-1])} "
            f"({format_seconds(seconds[-1])})"
        )
    if "fractions" in contents:
        return f"{imported.file}: {len(contents['bytes'])} gradients, {format_bytes(sum(contents['bytes']))} in all"
    step, exchange, exposed = (format_seconds(contents[name]) for name in ("step", "communication", "exposed"))
    return f"{imported.file}: a step of {step}, {exchange} of communication, {exposed} of it exposed"


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


def prediction_text(answer: Mapping[str, Any], extras: Mapping[str, Any], width: int) -> str:
    """A table of predictions, a chart, and what to make of them."""
    calibration: Calibration = answer["calibration"]
    predictions: Sequence[Prediction] = answer["predictions"]
    first = predictions[0].conditions
    names = Column(header="workers", cells=tuple(str(prediction.conditions.workers) for prediction in predictions))
    columns = [
        Column(header="step", cells=tuple(_seconds(prediction.step) for prediction in predictions)),
        Column(header="samples/s", cells=tuple(_plain(prediction.throughput) for prediction in predictions)),
        Column(header="efficiency", cells=tuple(_percent(prediction.efficiency) for prediction in predictions)),
        Column(
            header="exposed",
            cells=tuple(
                format_seconds(prediction.terms.exposed_s) if prediction.terms.exposed_s else "-"
                for prediction in predictions
            ),
        ),
        Column(
            header="held back by",
            cells=tuple(
                f"{prediction.bottleneck} {prediction.shares[prediction.bottleneck]:.0%}" for prediction in predictions
            ),
            right=False,
        ),
        *_paid_columns(predictions, extras),
    ]
    known = f"{predictions[0].by}, {numbers.level(predictions[0].step.level)} intervals"
    blocks = [
        f"{calibration.family.label}, batch {first.samples:g} per worker: {known}",
        draw(names, columns, width),
        _chart(predictions, width),
        "\n".join(fill(line, width, subsequent_indent="  ") for line in _sentences(answer, extras)),
    ]
    return "\n\n".join(block for block in blocks if block)


def paid(prediction: Prediction, extras: Mapping[str, Any]) -> dict[str, Any]:
    """Time, cost and energy of an epoch, and whether it fits into memory: what the given prices and sizes say."""
    amounts: dict[str, Any] = {}
    if extras["epoch"]:
        epoch = prediction.throughput.over(extras["epoch"], "s")
        amounts["epoch_s"] = epoch.to_json()
        hosts = prediction.conditions.hosts
        if extras["price"] is not None:
            amounts["cost"] = epoch.times(hosts * extras["price"] / HOUR_S, "currency").to_json()
        if extras["power"] is not None:
            amounts["energy_j"] = epoch.times(hosts * extras["power"], "J").to_json()
    if extras["memory"] is not None and prediction.memory_bytes is not None:
        amounts["fits"] = prediction.memory_bytes <= extras["memory"]
    return amounts


def _paid_columns(predictions: Sequence[Prediction], extras: Mapping[str, Any]) -> list[Column]:
    rows = [paid(prediction, extras) for prediction in predictions]
    columns = []
    if all("epoch_s" in row for row in rows):
        columns.append(Column(header="epoch", cells=tuple(format_seconds(row["epoch_s"]["value"]) for row in rows)))
    if all("cost" in row for row in rows):
        columns.append(Column(header="cost", cells=tuple(f"{row['cost']['value']:.3g}" for row in rows)))
    if all("energy_j" in row for row in rows):
        columns.append(
            Column(header="kWh", cells=tuple(f"{row['energy_j']['value'] / JOULES_A_KWH:.3g}" for row in rows))
        )
    if all("fits" in row for row in rows):
        columns.append(Column(header="fits", cells=tuple("yes" if row["fits"] else "no" for row in rows)))
    return columns


def _sentences(answer: Mapping[str, Any], extras: Mapping[str, Any]) -> list[str]:
    calibration, predictions = answer["calibration"], answer["predictions"]
    lines = []
    if len(predictions) > 1:
        knee = answer["knee"]
        lines.append(
            f"Efficiency stays above 80 % up to {knee} worker(s)."
            if knee
            else "Efficiency stays above 80 % throughout."
        )
        worth, last = answer["worth"], predictions[-1].conditions.workers
        beyond = (
            "all that were asked for" if worth == last else "doubling them again brings less than half of a doubling"
        )
        lines.append(f"Worth paying for: {worth} worker(s); {beyond}.")
    far = max(predictions, key=lambda prediction: prediction.extrapolated_by)
    if far.extrapolated:
        lines.append(f"{far.conditions.workers} workers are {far.extrapolated}.")
    if predictions[-1].by == SIMULATED:
        lines.append(_simulated(predictions[-1].conditions))
    for before, after in zip(answer["without"][-1:], predictions[-1:], strict=False):
        ratio = before.step.value / after.step.value
        lines.append(f"With the change, {after.conditions.workers} workers are {ratio:.2f} times as fast as without.")
    for change, ratio in answer["helps"]:
        lines.append(f"{change}: {1 / ratio:.2f} times as fast on {predictions[-1].conditions.workers} workers.")
    memory = predictions[-1].memory_bytes
    if memory is not None and extras["memory"] is not None:
        lines.append(f"Memory per worker: about {format_bytes(memory)}.")
    if memory is None and extras["memory"] is not None:
        lines.append(f"Not known: the memory per worker, and so whether {format_bytes(extras['memory'])} is enough")
    lines += [f"Not known: {sentence}" for sentence in calibration.unidentified]
    lines += [f"Doubt: {sentence}" for sentence in calibration.remarks]
    return lines


def _simulated(conditions: Conditions) -> str:
    """What was simulated, in a sentence."""
    parts = []
    if conditions.slowness and conditions.repeating:
        factors = ", ".join(f"× {factor:g}" for factor in conditions.slowness)
        parts.append(f"hosts that compute slower by {factors}, in turn")
    elif conditions.slowness:
        parts.append(f"one host that computes × {conditions.slowness[0]:g} slower")
    if conditions.oversubscription > 1:
        parts.append(f"a network between hosts that carries 1/{conditions.oversubscription:g} of what they can send")
    if conditions.jobs > 1:
        parts.append(f"{conditions.jobs} equal jobs on the same links, which begin their steps together")
    return f"Simulated step by step, from the calibrated times: {'; '.join(parts)}."


def _chart(predictions: Sequence[Prediction], width: int) -> str:
    """Efficiency against workers, as bars."""
    if len(predictions) < 2:
        return ""
    length = min(CHART, width - 24)
    lines = ["efficiency"]
    digits = len(str(predictions[-1].conditions.workers))
    for prediction in predictions:
        efficiency = prediction.efficiency
        low, high = (round(min(1.0, end) * length) for end in efficiency.interval)
        bar = (MEASURED * low).ljust(high, UNSURE)
        lines.append(
            f"{prediction.conditions.workers:>{digits}}  {bar.ljust(length)[:length]}{IDEAL}  {efficiency.value:.0%}"
        )
    return "\n".join(lines)


def _seconds(number: Estimate) -> str:
    return "{} ({}–{})".format(*map(format_seconds, (number.value, *number.interval)))


def _plain(number: Estimate) -> str:
    return "{} ({}–{})".format(*map(format_count, (number.value, *number.interval)))


def _percent(number: Estimate) -> str:
    return "{:.0%} ({:.0%}–{:.0%})".format(number.value, *number.interval)


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
