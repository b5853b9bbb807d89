"""Everything that a report shows, as one value: what was measured, modelled, explained and recommended. Plain data.

Whoever joins the stages fills it; HTML, Markdown, LaTeX and pictures are functions of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paceline.compare import Collectives, Comparison
from paceline.explain.explanation import Explanation
from paceline.model.forecast.predict import Prediction
from paceline.model.foreign.traces import Span
from paceline.recommend.recommendation import Advice
from paceline.record.usage import UsageCurves


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the numbers come from."""

    runs: int
    """Records behind the report."""
    began: float
    """Unix time of the first of them."""
    ended: float
    """Unix time when the last run ended."""
    versions: tuple[str, ...]
    """The versions of Paceline that made the runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportData:
    """One study."""

    study: str
    """Its name."""
    question: str
    """In the user's words; may be ""."""
    results: Comparison | Collectives
    source: Source | None = None
    curves: Mapping[str, Sequence[Prediction]] = field(default_factory=dict)
    """Key of a family (compare.families) → what the model says of it, fewest workers first."""
    explanations: Sequence[Explanation] = ()
    """One per trial, in the order of the table."""
    advice: Advice | None = None
    timelines: Mapping[str, Sequence[Span]] = field(default_factory=dict)
    """Key of a row → one step of its last run, on all ranks."""
    resources: Mapping[str, Sequence[UsageCurves]] = field(default_factory=dict)
    """Key of a row → what the processes of its last run used."""
    machines: Sequence[Mapping[str, object]] = ()
    """Facts about each machine that the records name."""
    environments: Sequence[Mapping[str, object]] = ()
    """Facts about each environment, fingerprint included."""
    command: str = ""
    """What to type to measure it all again."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Name of a command → the whole line, about this study and store: what to type for a part that is missing."""

    @property
    def comparison(self) -> Comparison | None:
        """None where collectives were measured by themselves."""
        return self.results if isinstance(self.results, Comparison) else None
