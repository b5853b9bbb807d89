"""A forecast as text: a table, a chart of efficiency, and what to make of them."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from paceline.model.equations.conditions import Conditions
from paceline.model.forecast.expenses import Rates, expenses_of
from paceline.model.forecast.predict import Prediction
from paceline.model.forecast.scaling import ScalingForecast
from paceline.report import numbers
from paceline.report.glyphs import IDEAL, MEASURED, UNSURE
from paceline.report.table import Column, draw
from paceline.stats.estimate import Estimate
from paceline.stats.known_by import SIMULATED
from paceline.units import format_bytes, format_count, format_seconds

CHART = 32
"""Columns of a bar."""
JOULES_PER_KWH = 3.6e6


def forecast_text(forecast: ScalingForecast, rates: Rates, width: int) -> str:
    """The forecast of one family."""
    predictions = forecast.predictions
    first = predictions[0]
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
        *_expense_columns(predictions, rates),
    ]
    blocks = [
        (
            f"{forecast.label}, batch {first.conditions.samples:g} per worker: {first.by}, "
            f"{numbers.level(first.step.level)} intervals"
        ),
        draw(names, columns, width),
        _chart(predictions, width),
        "\n".join(fill(line, width, subsequent_indent="  ") for line in _sentences(forecast, rates)),
    ]
    return "\n\n".join(block for block in blocks if block)


def _expense_columns(predictions: Sequence[Prediction], rates: Rates) -> list[Column]:
    """The expenses that are known of every row."""
    rows = [expenses_of(prediction, rates) for prediction in predictions]
    cells = {
        "epoch": [None if row.epoch is None else format_seconds(row.epoch.value) for row in rows],
        "cost": [None if row.cost is None else f"{row.cost.value:.3g}" for row in rows],
        "kWh": [None if row.energy is None else f"{row.energy.value / JOULES_PER_KWH:.3g}" for row in rows],
        "fits": [None if row.fits is None else "yes" if row.fits else "no" for row in rows],
    }
    columns = []
    for header, texts in cells.items():
        given = tuple(text for text in texts if text is not None)
        if len(given) == len(rows):
            columns.append(Column(header=header, cells=given))
    return columns


def _sentences(forecast: ScalingForecast, rates: Rates) -> list[str]:
    predictions = forecast.predictions
    last, workers = predictions[-1], predictions[-1].conditions.workers
    lines = _worth(forecast) if len(predictions) > 1 else []
    far = max(predictions, key=lambda prediction: prediction.extrapolated_by)
    if far.extrapolated:
        lines.append(f"{far.conditions.workers} workers are {far.extrapolated}.")
    if last.by == SIMULATED:
        lines.append(_simulated(last.conditions))
    if forecast.without_change:
        ratio = forecast.without_change[-1].step.value / last.step.value
        lines.append(f"With the change, {workers} workers are {ratio:.2f} times as fast as without.")
    lines += [
        f"{effect.change}: {1 / effect.step_ratio:.2f} times as fast on {workers} workers."
        for effect in forecast.helps_most
    ]
    if rates.memory_bytes is not None:
        lines.append(
            f"Not known: the memory per worker, and so whether {format_bytes(rates.memory_bytes)} is enough"
            if last.memory_bytes is None
            else f"Memory per worker: about {format_bytes(last.memory_bytes)}."
        )
    lines += [f"Not known: {sentence}" for sentence in forecast.calibration.unidentified]
    lines += [f"Doubt: {sentence}" for sentence in forecast.calibration.remarks]
    return lines


def _worth(forecast: ScalingForecast) -> list[str]:
    """Up to how many workers it scales, and how many are worth paying for."""
    worth, last = forecast.worth_paying, forecast.predictions[-1].conditions.workers
    beyond = "all that were asked for" if worth == last else "doubling them again brings less than half of a doubling"
    return [
        f"Efficiency stays above 80 % up to {forecast.knee} worker(s)."
        if forecast.knee
        else "Efficiency stays above 80 % throughout.",
        f"Worth paying for: {worth} worker(s); {beyond}.",
    ]


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
