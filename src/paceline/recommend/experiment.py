"""Writes the study that would run recommended trials, singly or together. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.plan import Catalog, Trial
from paceline.plan.axes import Axes, axes_of
from paceline.spec import Repeats, Study, study_text

LEAST_REPEATS = 3
"""The fewest runs per trial: the spread of two runs is too uncertain to decide anything."""
SUFFIX = "-try"
"""The suffix of the name of a study that tries what was recommended for another study."""


def name_of_tries(study: str) -> str:
    return f"{study}{SUFFIX}"


def experiment(study: Study, trials: Sequence[Trial], catalog: Catalog) -> str:
    """Returns a study file that runs these trials, which must fit into one study."""
    joined = axes_of(trials[0], study, catalog)
    for trial in trials[1:]:
        joined = _joined(joined, axes_of(trial, study, catalog))
    own = study.repeats_of(trials[0].workload.model).minimum
    runs = max(LEAST_REPEATS, own)
    question = "Is the recommended configuration as fast as predicted?"
    axes = {key: _as_given(values) for key, values in joined.items()}
    axes["measure.repeats"] = Repeats(minimum=runs, maximum=runs)
    return study_text(study, name=name_of_tries(study.name), question=question, axes=axes)


def fitting(study: Study, trials: Sequence[Trial], catalog: Catalog, most: int) -> list[Trial]:
    """Returns those of the trials, in order, that fit into one study of at most `most` trials."""
    kept: list[Trial] = []
    joined: Axes = {}
    for trial in trials:
        wider = _joined(joined, axes_of(trial, study, catalog)) if kept else axes_of(trial, study, catalog)
        if _can_be_written(wider) and trials_of(wider) <= most:
            kept.append(trial)
            joined = wider
    return kept


def trials_of(axes: Axes) -> int:
    """Returns the largest number of trials that these axes give; knobs of a framework apply only to that framework."""
    # None stands for a single host, which has no network: it adds no value to the axis.
    counts = {key: len(values) - (len(values) > 1 and None in values) for key, values in axes.items()}
    shared = math.prod(count for key, count in counts.items() if not key.startswith("framework."))
    own = (
        math.prod(count for key, count in counts.items() if key.startswith(f"framework.{name}."))
        for name in axes["framework.name"]
    )
    return shared * counts["framework.strategy"] * sum(own)


def _joined(axes: Axes, added: Axes) -> Axes:
    """Returns the values of both, each once."""
    both = {key: (*axes.get(key, ()), *added.get(key, ())) for key in {**axes, **added}}
    return {
        key: tuple(value for place, value in enumerate(values) if value not in values[:place])
        for key, values in both.items()
    }


def _can_be_written(axes: Axes) -> bool:
    """Whether a study file can hold these axes.

    A file cannot list a default among other values, except the network: a single host has none in any case.
    """
    return all(len(values) == 1 or None not in values or key == "cluster.network" for key, values in axes.items())


def _as_given(values: tuple[object, ...]) -> object:
    return values[0] if len(values) == 1 else values
