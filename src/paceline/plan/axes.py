"""From a trial back to the keys of a study that make it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.plan.capabilities import Knob
from paceline.plan.expand import Catalog
from paceline.plan.trial import Trial
from paceline.spec import Study

Axes = dict[str, tuple[Any, ...]]


def axes_of(trial: Trial, study: Study, catalog: Catalog) -> Axes:
    """Every key of the study that decides about a trial → its value; (None,): as by default."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    known = catalog.capabilities[framework.name]
    strong = workload.scaling == "strong"
    scripts = study.axes["workload.script"] != (None,)
    plain: dict[str, Any] = {
        "workload.script" if scripts else "workload.model": workload.model,
        "workload.batch_global" if strong else "workload.batch_per_worker": (
            trial.batch_global if strong else workload.batch_per_worker
        ),
        "workload.input": workload.input,
        "workload.loader_workers": workload.loader_workers,
        "measure.seed": workload.seed,
        "framework.name": framework.name,
        # Other frameworks know the same strategy by another name.
        "framework.strategy": "data-parallel" if framework.strategy == known.data_parallel else framework.strategy,
        "cluster.hosts": cluster.hosts,
        "cluster.workers_per_host": cluster.workers_per_host,
        "cluster.threads_per_worker": cluster.threads_per_worker,
        "cluster.device": cluster.device,
        "cluster.network": cluster.network,
    }
    if scripts:
        plain["workload.arguments"] = workload.options.get("arguments")
    else:
        plain |= {f"workload.{workload.model}.{name}": value for name, value in workload.options.items()}
    plain |= _of_owner(f"framework.{framework.name}", framework.knobs, known.knobs)
    plain |= _of_owner(f"cluster.{cluster.site}", cluster.options, catalog.site.knobs)
    return {key: (value,) for key, value in plain.items()}


def _of_owner(table: str, values: Mapping[str, Any], knobs: Mapping[str, Knob]) -> dict[str, Any]:
    return {
        f"{table}.{name}": None if name in knobs and value == knobs[name].default else value
        for name, value in values.items()
    }
