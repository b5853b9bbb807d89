"""Trials as a study that would run them: one by itself, or as many as fit into one. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paceline.plan import Catalog, Trial
from paceline.plan.axes import Axes, axes_of
from paceline.spec import Repeats, Study, study_text

LEAST_REPEATS = 3
"""Runs of a trial that should settle something: two know their spread too badly to settle anything."""
SUFFIX = "-try"
"""Of the name of a study that tries what was recommended for another."""


def name_of_tries(study: str) -> str:
    return f"{study}{SUFFIX}"


def experiment(study: Study, trials: Sequence[Trial], catalog: Catalog) -> str:
    """A study file that runs these trials, which must fit together."""
    joined = axes_of(trials[0], study, catalog)
    for trial in trials[1:]:
        joined = _joined(joined, axes_of(trial, study, catalog))
    own = study.repeats_of(trials[0].workload.model).minimum
    runs = max(LEAST_REPEATS, own)
    question = "Is what was recommended as fast as it was predicted to be?"
    axes = {key: _as_given(values) for key, values in joined.items()}
    axes["measure.repeats"] = Repeats(minimum=runs, maximum=runs)
    return study_text(study, name=name_of_tries(study.name), question=question, axes=axes)


def fitting(study: Study, trials: Sequence[Trial], catalog: Catalog, most: int) -> list[Trial]:
    """The first of these, and of the others those that one study runs with it without running more than `most`."""
    kept: list[Trial] = []
    joined: Axes = {}
    for trial in trials:
        wider = _joined(joined, axes_of(trial, study, catalog)) if kept else axes_of(trial, study, catalog)
        if _can_be_written(wider) and trials_of(wider) <= most:
            kept.append(trial)
            joined = wider
    return kept


def trials_of(axes: Axes) -> int:
    """How many trials these axes multiply out to, at most; knobs of a framework multiply only its own."""
    # That a host alone has no network is no value of the axis.
    counts = {key: len(values) - (len(values) > 1 and None in values) for key, values in axes.items()}
    shared = math.prod(count for key, count in counts.items() if not key.startswith("framework."))
    own = (
        math.prod(count for key, count in counts.items() if key.startswith(f"framework.{name}."))
        for name in axes["framework.name"]
    )
    return shared * counts["framework.strategy"] * sum(own)


def _joined(one: Axes, other: Axes) -> Axes:
    """All values of both."""
    both = {key: (*one.get(key, ()), *other.get(key, ())) for key in {**one, **other}}
    return {key: tuple(one for place, one in enumerate(each) if one not in each[:place]) for key, each in both.items()}


def _can_be_written(axes: Axes) -> bool:
    """A file cannot name a default among other values; that one host has no network goes without saying."""
    return all(len(values) == 1 or None not in values or key == "cluster.network" for key, values in axes.items())


def _as_given(values: tuple[object, ...]) -> object:
    return values[0] if len(values) == 1 else values
