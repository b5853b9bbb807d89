"""Writes the study that would confirm a finding: the trial as it was run, and the same with one change. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.explain.findings import Text
from paceline.plan import Catalog, Trial
from paceline.plan.axes import axes_of
from paceline.spec import Repeats, Study, study_text

REPEATS = Repeats(minimum=5, maximum=5)
"""Runs per side: the smallest number that gives a useful interval."""


def experiment_for(study: Study, trial: Trial, catalog: Catalog) -> Text:
    """Returns a function that writes study files with one change of a trial."""
    present = {key: values[0] for key, values in axes_of(trial, study, catalog).items()}

    def text(question: str, changed: Mapping[str, object]) -> str:
        # A file cannot list a default among other values. The study then holds the change alone: the other side is
        # recorded already.
        both = {key: value if present.get(key) is None else (present[key], value) for key, value in changed.items()}
        return study_text(
            study,
            name=f"{study.name}-experiment",
            question=question,
            axes={**present, "measure.repeats": REPEATS, **both},
        )

    return text
