"""The workloads of a study: its models, graph files, scripts and collectives, each read once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from paceline.spec.study import Study
from paceline.workloads import COLLECTIVE, MODELS, Workload, graph_of, load_collective, load_workload, read_program

WorkloadOf = Callable[[str, Mapping[str, object]], Workload]
"""Model (or script) and options (or arguments, and how and where it is started) → the workload."""


def workloads_of(study: Study) -> WorkloadOf:
    """A function from model (or script) and options to the workload. The study's own files are read once."""
    read: dict[str, Workload] = {}

    def from_file(name: str, options: Mapping[str, object]) -> Workload:
        if study.of_scripts:
            place = options.get("working_directory")
            return read_program(
                study.folder / name,
                str(options.get("arguments", "")),
                study.single("workload.files", str),
                study.folder / str(place) if place else None,
            )
        return load_collective(options) if name == COLLECTIVE else load_workload(name, options, study.folder)

    def workload_of(name: str, options: Mapping[str, object]) -> Workload:
        if name in MODELS and not study.of_scripts:
            return graph_of(name, options)
        key = json.dumps([name, dict(options)], sort_keys=True)
        if key not in read:
            read[key] = from_file(name, options)
        return read[key]

    return workload_of
