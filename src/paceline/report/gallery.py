"""All figures of a report, by the section that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.compare import Collectives
from paceline.report.figures.collectives import collective_figures
from paceline.report.figures.contest import contest_figures
from paceline.report.figures.figure import Figure
from paceline.report.figures.ladder import ladder_figures
from paceline.report.figures.phases import phase_figures
from paceline.report.figures.resources import resource_figures
from paceline.report.figures.scaling import scaling_figures
from paceline.report.figures.timeline import timeline_figures
from paceline.report.page import ReportData


@dataclass(frozen=True, kw_only=True, slots=True)
class Gallery:
    """Figures; () where there is nothing to draw."""

    results: tuple[Figure, ...]
    scaling: tuple[Figure, ...] = ()
    phases: tuple[Figure, ...] = ()
    timelines: tuple[Figure, ...] = ()
    ladders: Mapping[str, Figure] = field(default_factory=dict)
    """By trial."""
    resources: tuple[Figure, ...] = ()

    def all(self) -> tuple[Figure, ...]:
        """In the order of a page."""
        return (*self.results, *self.scaling, *self.phases, *self.timelines, *self.ladders.values(), *self.resources)


def gallery(data: ReportData) -> Gallery:
    """Draw everything."""
    results = data.results
    if isinstance(results, Collectives):
        return Gallery(results=tuple(collective_figures(results)))
    return Gallery(
        results=tuple(contest_figures(results)),
        scaling=tuple(scaling_figures(results, data.curves)),
        phases=tuple(phase_figures(results)),
        timelines=tuple(timeline_figures(results, data.timelines)),
        ladders=ladder_figures(data.explanations),
        resources=tuple(resource_figures(results, data.resources)),
    )
