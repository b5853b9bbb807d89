"""The study that would confirm a finding: the trial as it was beside the same with one thing changed. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.explain.findings import Text
from paceline.plan import Catalog, Trial
from paceline.plan.axes import axes_of
from paceline.spec import Repeats, Study, study_text

REPEATS = Repeats(minimum=5, maximum=5)
"""Runs of each side: the fewest whose interval is of use."""


def experiment_for(study: Study, trial: Trial, catalog: Catalog) -> Text:
    """Makes study files that change one thing of a trial."""
    present = {key: values[0] for key, values in axes_of(trial, study, catalog).items()}

    def text(question: str, changed: Mapping[str, object]) -> str:
        # A file cannot name a default among other values: the change then stands alone, beside what is recorded.
        both = {key: value if present.get(key) is None else (present[key], value) for key, value in changed.items()}
        return study_text(
            study,
            name=f"{study.name}-experiment",
            question=question,
            axes={**present, "measure.repeats": REPEATS, **both},
        )

    return text
