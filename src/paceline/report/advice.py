"""Recommendations as text: the choice, the list, its reasons, what it costs, what was not considered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.recommend.objective import GOALS, THROUGHPUT
from paceline.recommend.recommendation import Advice, Recommendation
from paceline.recommend.tried import Tried
from paceline.report import numbers
from paceline.report.lists import items, paragraph, wrap
from paceline.report.table import Column, draw
from paceline.stats.estimate import Estimate

MOST_ROWS = 10
"""The most rows that the list shows; --json has all of them."""
FIRST = 3
"""The number of choices whose reasons and cost of switching are shown."""


def advice_text(advice: Advice, width: int, tried: Sequence[Tried] = ()) -> str:
    """Everything that `recommend` shows."""
    shown = advice.ranked[:MOST_ROWS]
    blocks = [
        paragraph(advice.sentence, width),
        items("Tried", (_tried(trial) for trial in tried), width),
        _legend(shown, width),
        _table(advice, shown, width),
        _rest(advice, width),
        items("To switch", _switching(shown[:FIRST]), width),
        items("Because", _reasons(shown[:FIRST]), width),
        paragraph(_front(advice), width),
        items("Not considered", advice.not_considered, width),
        f"A study that would settle it:\n\n{_indented(advice.settling)}" if advice.settling else "",
    ]
    return "\n\n".join(block for block in blocks if block)


def _number(place: int) -> str:
    return f"[{place + 1}]"


def _legend(shown: Sequence[Recommendation], width: int) -> str:
    indent = len(_number(len(shown))) + 1
    return "\n".join(
        wrap(recommendation.choice.label, width, first=_number(place).ljust(indent), rest=" " * indent)
        for place, recommendation in enumerate(shown)
    )


def _table(advice: Advice, shown: Sequence[Recommendation], width: int) -> str:
    if not shown:
        return ""
    goal = GOALS[advice.goal]
    names = Column(header="", cells=tuple(_number(place) for place in range(len(shown))), right=False)
    columns = [Column(header=goal.header, cells=tuple(goal.number(recommendation.value) for recommendation in shown))]
    if goal is not THROUGHPUT:
        speeds = tuple(THROUGHPUT.number(recommendation.throughput) for recommendation in shown)
        columns.append(Column(header=THROUGHPUT.header, cells=speeds))
    apart = tuple(_against(place, recommendation) for place, recommendation in enumerate(shown))
    columns += [
        Column(
            header=f"as {goal.praise} as now", cells=tuple(_factor(recommendation.gain) for recommendation in shown)
        ),
        Column(header="is", cells=tuple(recommendation.by for recommendation in shown), right=False),
        Column(header="against the first", cells=apart, right=False),
    ]
    return f"{draw(names, columns, width)}\n(in brackets: {numbers.level(shown[0].value.level)} intervals)"


def _factor(gain: Estimate | None) -> str:
    if gain is None:
        return "-"
    ends = "" if gain.ends is None else " ({:.2f}–{:.2f})".format(*gain.ends)
    return f"× {gain.value:.2f}{ends}"


def _against(place: int, recommendation: Recommendation) -> str:
    if place == 0:
        return "-"
    return "cannot be told apart" if recommendation.tied else "worse"


def _rest(advice: Advice, width: int) -> str:
    more = len(advice.ranked) - MOST_ROWS
    if more <= 0:
        return ""
    tied = sum(recommendation.tied for recommendation in advice.ranked[MOST_ROWS:])
    also = f", {tied} of them cannot be told apart from the first" if tied else ""
    return paragraph(f"{more} more choice{'s' if more > 1 else ''}{also}: see them with --json.", width)


def _switching(shown: Sequence[Recommendation]) -> Iterator[str]:
    for place, recommendation in enumerate(shown):
        yield f"{_number(place)} {recommendation.switching or 'nothing changes'}"


def _reasons(shown: Sequence[Recommendation]) -> Iterator[str]:
    for place, recommendation in enumerate(shown):
        for finding in recommendation.because:
            yield f"{_number(place)} {finding.sentence}"


def _front(advice: Advice) -> str:
    if not advice.front:
        return ""
    choices = [_place(place, advice.ranked[place]) for place in advice.front]
    return f"No other choice is both faster and cheaper per sample than these: {'; '.join(choices)}."


def _place(place: int, recommendation: Recommendation) -> str:
    name = _number(place) if place < MOST_ROWS else recommendation.choice.label
    hosts = f"{recommendation.choice.hosts} host{'s' if recommendation.choice.hosts > 1 else ''}"
    return f"{name} {THROUGHPUT.shown(recommendation.throughput.value)} {THROUGHPUT.words} on {hosts}"


def _tried(trial: Tried) -> str:
    predicted = f"{trial.label}: predicted {THROUGHPUT.text(trial.predicted)}"
    if trial.measured is None:
        return f"{predicted}; its runs failed"
    where = "inside the interval" if trial.inside else "outside the interval"
    return f"{predicted}, {'simulated' if trial.simulated else 'measured'} {THROUGHPUT.number(trial.measured)}: {where}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
