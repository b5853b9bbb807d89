"""From a trial back to the keys of a study that define it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.plan.capabilities import Knob
from paceline.plan.expand import Catalog
from paceline.plan.knob_values import KnobValue, KnobValues
from paceline.plan.trial import Trial
from paceline.spec import Study

Axes = dict[str, tuple[object, ...]]
""""section.key" or "section.NAME.key" → values; (None,): the key is left out, so that its default applies."""


def axes_of(trial: Trial, study: Study, catalog: Catalog) -> Axes:
    """The value of every key of the study on which a trial depends."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    capabilities = catalog.capabilities[framework.name]
    strong = workload.scaling == "strong"
    plain: dict[str, object] = {
        "workload.script" if study.of_scripts else "workload.model": workload.model,
        "workload.batch_global" if strong else "workload.batch_per_worker": (
            trial.batch_global if strong else workload.batch_per_worker
        ),
        "workload.input": workload.input,
        "workload.loader_workers": workload.loader_workers,
        "measure.seed": workload.seed,
        "framework.name": framework.name,
        # Other frameworks have another name for the same strategy.
        "framework.strategy": (
            "data-parallel" if framework.strategy == capabilities.data_parallel else framework.strategy
        ),
        "cluster.hosts": cluster.hosts,
        "cluster.workers_per_host": cluster.workers_per_host,
        "cluster.threads_per_worker": cluster.threads_per_worker,
        "cluster.device": cluster.device,
        "cluster.network": cluster.network,
    }
    if study.of_scripts:
        plain["workload.arguments"] = workload.options.get("arguments")
    else:
        plain |= {f"workload.{workload.model}.{name}": value for name, value in workload.options.items()}
    plain |= _of_owner(f"framework.{framework.name}", framework.knobs, capabilities.knobs)
    plain |= _of_owner(f"cluster.{cluster.site}", cluster.options, catalog.site.knobs)
    return {key: (value,) for key, value in plain.items()}


def _of_owner(table: str, values: KnobValues, knobs: Mapping[str, Knob]) -> dict[str, KnobValue]:
    return {
        f"{table}.{name}": None if name in knobs and value == knobs[name].default else value
        for name, value in values.items()
    }
