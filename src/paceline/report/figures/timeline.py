"""One step on all ranks, side by side on one clock: who computes, who exchanges, who waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.compare import Comparison
from paceline.model.foreign.traces import Span
from paceline.report.figures.figure import Figure, names_for, row_title
from paceline.report.figures.phases import legend
from paceline.report.palette import edge, ground
from paceline.report.sheet import Field, Line, Sheet, fields, number, word
from paceline.report.svg import (
    LETTER,
    SIZE,
    WIDTH,
    Area,
    Scale,
    across,
    box,
    halo,
    hatched,
    hatches,
    picture,
    text,
    told,
)
from paceline.units import format_seconds

LEFT, SIDE, BOTTOM = 60, 6, 52
TALLEST = 26
"""The largest height of a lane."""
ROOM = 900
"""The largest height of all lanes together: with hundreds of ranks lanes get thinner, not the picture taller."""
THINNEST = 3.0
HOW_TO_READ = (
    "The measured step whose duration is closest to the median. Communication that is hidden behind computation cannot "
    "be seen from outside: it is part of the phases that hide it."
)


def timeline_figures(comparison: Comparison, timelines: Mapping[str, Sequence[Span]]) -> list[Figure]:
    """One figure for each row that has a timeline."""
    rows = [row for row in comparison.rows if timelines.get(row.key)]
    titles = [row_title(row) for row in rows]
    return [
        _figure(name, title, row.key, timelines[row.key])
        for name, title, row in zip(names_for("timeline", titles), titles, rows, strict=True)
    ]


def _figure(name: str, title: str, key: str, spans: Sequence[Span]) -> Figure:
    ranks = {rank: place for place, rank in enumerate(sorted({span.rank for span in spans}))}
    streams = list(dict.fromkeys(span.stream for span in spans)) if _overlap(spans) else [""]
    phases = list(dict.fromkeys(span.name for span in spans))
    labels, top = legend(name, phases)
    lane = max(THINNEST, min(TALLEST, ROOM / (len(ranks) * len(streams))))
    gap = 8.0 if lane > SIZE else 1.0
    deep = lane * len(streams) + gap
    height = top + deep * len(ranks) + BOTTOM
    area = Area(left=LEFT, top=top, right=WIDTH - SIDE, bottom=top + deep * len(ranks))
    end = max(span.start_s + span.duration_s for span in spans)
    scale = Scale(0.0, end * 1.01, area.left, area.right)
    parts = across(
        area, scale, {value: format_seconds(value) if value else "0" for value in scale.ticks()}, "since its start"
    )
    for rank, place in ranks.items():
        if deep >= SIZE or place % -(-SIZE // int(deep)) == 0:
            parts.append(
                text(area.left - 8, top + deep * place + lane * len(streams) / 2 + 4.5, f"rank {rank}", anchor="end")
            )
    for span in spans:
        y = top + deep * ranks[span.rank] + lane * (streams.index(span.stream) if len(streams) > 1 else 0)
        parts += _span(name, key, span, y, lane, scale)
    return Figure(
        name=name,
        title=title,
        caption=HOW_TO_READ,
        svg=picture(
            f"One step of {len(ranks)} ranks as a timeline, {title}",
            height,
            [*labels, *parts],
            patterns=hatches(name, phases),
        ),
        sheet=_sheet(key, spans),
        points=_points(key, spans),
    )


def _overlap(spans: Sequence[Span]) -> bool:
    """Whether a rank does two things at once, for which it needs two lanes."""
    ends: dict[int, float] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        if span.start_s < ends.get(span.rank, 0.0) * (1 - 1e-9):
            return True
        ends[span.rank] = span.start_s + span.duration_s
    return False


def _span(name: str, key: str, span: Span, y: float, lane: float, scale: Scale) -> list[str]:
    left, right = scale(span.start_s), scale(span.start_s + span.duration_s)
    words = f"rank {span.rank}: {span.name} {format_seconds(span.duration_s)}, from {format_seconds(span.start_s)}"
    drawn = [
        box(
            left,
            y,
            right - left,
            lane,
            told(words),
            fill=hatched(name, span.name),
            stroke=edge(span.name),
            kind="mark",
            data_row=key,
            data_rank=span.rank,
            data_phase=span.name,
            data_value=repr(span.duration_s),
        )
    ]
    if lane > SIZE and right - left > LETTER * len(span.name) + 10:
        drawn.append(halo((left + right) / 2, y + lane / 2 + 4.5, span.name, under=ground(span.name)))
    return drawn


def _sheet(key: str, spans: Sequence[Span]) -> Sheet:
    phases = list(dict.fromkeys(span.name for span in spans))
    lengths: dict[int, dict[str, float]] = {}
    for span in spans:
        durations = lengths.setdefault(span.rank, {})
        durations[span.name] = durations.get(span.name, 0.0) + span.duration_s
    return Sheet(
        caption="Duration of each phase of the step on each rank",
        fields=(*fields(rank="rank"), *(Field(name=phase, header=phase) for phase in phases)),
        lines=tuple(
            Line(
                key=key,
                cells=(
                    number(rank, f"rank {rank}"),
                    *(
                        number(durations[phase], format_seconds(durations[phase])) if phase in durations else word("-")
                        for phase in phases
                    ),
                ),
            )
            for rank, durations in lengths.items()
        ),
    )


def _points(key: str, spans: Sequence[Span]) -> Sheet:
    return Sheet(
        caption="Start and duration of each phase of the step",
        fields=fields(rank="rank", stream="stream", phase="phase", start="start", seconds="duration"),
        lines=tuple(
            Line(
                key=key,
                cells=(
                    number(span.rank, str(span.rank)),
                    word(span.stream),
                    word(span.name),
                    number(span.start_s, format_seconds(span.start_s)),
                    number(span.duration_s, format_seconds(span.duration_s)),
                ),
            )
            for span in spans
        ),
    )
