"""The study that would confirm a finding: the trial as it was beside the same with one thing changed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.plan.trial import Trial
from paceline.spec import Study
from paceline.spec.study_file import study_text

REPEATS = 5
"""Runs of each side: the fewest whose interval is of use."""


def axes_of(trial: Trial) -> dict[str, Any]:
    """Keys of a study that make this trial and no other."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    strong = workload.scaling == "strong"
    return {
        "workload.model": workload.model,
        "workload.batch_per_worker": None if strong else workload.batch_per_worker,
        "workload.batch_global": trial.batch_global if strong else None,
        "workload.input": workload.input, "workload.loader_workers": workload.loader_workers,
        "framework.name": framework.name, "framework.strategy": framework.strategy,
        "cluster.hosts": cluster.hosts, "cluster.workers_per_host": cluster.workers_per_host,
        "cluster.threads_per_worker": cluster.threads_per_worker, "cluster.network": cluster.network,
        **{f"framework.{framework.name}.{knob}": value for knob, value in framework.knobs.items()},
        **{f"cluster.{cluster.site}.{knob}": value for knob, value in cluster.options.items()},
    }  # fmt: skip


def experiment_for(study: Study, trial: Trial) -> Callable[[str, Mapping[str, Any]], str]:
    """Makes study files that change one thing of a trial of a study; "" for a program of the user's own."""

    def text(question: str, changed: Mapping[str, Any]) -> str:
        if study.axes["workload.script"] != (None,):
            return ""
        present = axes_of(trial)
        both = {key: [present.get(key), value] for key, value in changed.items()}
        return study_text(
            study, name=f"{study.name}-experiment", question=question,
            axes={**present, "measure.repeats": REPEATS, **both},
        )  # fmt: skip

    return text
