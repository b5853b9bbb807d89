"""The answer with its caution beside it: what every form of a report begins with, whichever sort of study it is."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.compare import Collectives, Comparison
from paceline.report.answer import answer_sentences
from paceline.report.cautions import cautions
from paceline.report.collective_answer import collectives_sentences


@dataclass(frozen=True, kw_only=True, slots=True)
class Headline:
    """What a manager could repeat."""

    answer: tuple[str, ...]
    """One or two sentences, the most important first."""
    caution: tuple[str, ...]
    """Why it may be less reliable than it looks, a sentence each; () where nothing speaks against it."""

    @property
    def text(self) -> str:
        return " ".join([*self.answer, *self.caution])


def headline_of(results: Comparison | Collectives) -> Headline:
    """The headline of what was measured."""
    answer = collectives_sentences(results) if isinstance(results, Collectives) else answer_sentences(results)
    return Headline(answer=tuple(answer), caution=tuple(cautions(results)))
