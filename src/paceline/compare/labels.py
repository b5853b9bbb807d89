"""Short labels for trials: each label has only what distinguishes the trial; what all share is given once.

Pure: labels are made from the fields of the trials, without any results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.plan.trial import Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Labels:
    """The labels of the rows of a table."""

    shared: str
    """What all rows have in common, e.g. "torch ddp · resnet20 · batch 32 per worker"."""
    each: tuple[str, ...]
    """What distinguishes each row, e.g. "2 workers · overlap=off"; each label is unique."""


def label_rows(trials: Sequence[Trial], machines: Sequence[str | None]) -> Labels:
    """Returns the labels for rows of one trial and machine each."""
    facets = [_facets(trial) for trial in trials]
    details = [_details(trial, machine) for trial, machine in zip(trials, machines, strict=True)]
    shared = _constant(facets)
    if all(shared >= set(facet) for facet in facets):
        shared -= {"workers"}  # a label must not be empty
    each = [_join(facet, set(facet) - shared) for facet in facets]
    places: dict[str, list[int]] = {}
    for index, name in enumerate(each):
        places.setdefault(name, []).append(index)
    for label, alike in places.items():
        if len(alike) == 1:
            continue
        constant = _constant([details[index] for index in alike])
        for index in alike:
            each[index] = f"{label} · {_join(details[index], set(details[index]) - constant)}"
    common = {name: text for name, text in facets[0].items() if name in shared and not _is_knob(name)} if facets else {}
    return Labels(shared=_join(common, set(common)), each=tuple(each))


def _constant(facets: Sequence[Mapping[str, str]]) -> set[str]:
    """Returns the names that have one value wherever they occur, such as knobs that only one framework has."""
    values: dict[str, set[str]] = {}
    for facet in facets:
        for name, text in facet.items():
            values.setdefault(name, set()).add(text)
    return {name for name, texts in values.items() if len(texts) == 1}


def _join(facets: Mapping[str, str], names: set[str]) -> str:
    return " · ".join(text for name, text in facets.items() if name in names and text)


def _is_knob(name: str) -> bool:
    return name.startswith("knob ")


def workers_words(trial: Trial) -> str:
    """Returns the size of a trial in words: "1 worker", "4 workers on 2 hosts"."""
    count = f"{trial.workers} worker{'s' if trial.workers != 1 else ''}"
    return f"{count} on {trial.cluster.hosts} hosts" if trial.cluster.hosts > 1 else count


def _facets(trial: Trial) -> dict[str, str]:
    """Returns what a study usually varies, in the order of the label; "" for the usual value."""
    workload, framework, cluster = trial.workload, trial.framework, trial.cluster
    strong = workload.scaling == "strong"
    batch = f"batch {trial.batch_global} in all" if strong else f"batch {workload.batch_per_worker} per worker"
    threads = cluster.threads_per_worker
    facets = {
        "framework": f"{framework.name} {framework.strategy}",
        "model": " ".join([workload.model, *_settings(workload.options)]),
        "batch": batch if workload.collective is None else "",
        "input": "" if workload.input == "resident" else f"{workload.input}, {workload.loader_workers} loaders",
        "workers": workers_words(trial),
        "threads": f"{threads} thread{'s' if threads != 1 else ''} per worker",
        "network": cluster.network.label if cluster.network else "",
        "device": cluster.device,
        "site": "" if cluster.site == "local" else cluster.site,
        "simulated": "simulated time" if framework.simulated else "",
    }
    for knob, value in framework.knobs.items():
        facets[f"knob {framework.name}.{knob}"] = f"{knob}={_value(value)}"
    for knob, value in cluster.options.items():
        facets[f"knob cluster.{cluster.site}.{knob}"] = f"{knob}={_value(value)}"
    return facets


def _details(trial: Trial, machine: str | None) -> dict[str, str]:
    """Returns what distinguishes trials that have the same label otherwise."""
    details = {
        "lock": f"lock {trial.framework.lock.removeprefix('sha256:')[:6]}",
        "environment": trial.framework.environment,
        "graph": f"graph {trial.workload.graph.rpartition(':')[2][:6]}",
        "seed": f"seed {trial.workload.seed}",
        "steps": f"{trial.measure.warmup_steps}+{trial.measure.steps} steps",
        "layers": "layer times" if trial.measure.layers else "",
        "oversubscribe": "oversubscribed" if trial.cluster.oversubscribe else "",
    }
    return details | ({"machine": f"on {machine}"} if machine else {})


def _settings(options: Mapping[str, object]) -> list[str]:
    return [f"{name}={_value(value)}" for name, value in options.items()]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
