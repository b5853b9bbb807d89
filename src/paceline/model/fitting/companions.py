"""What a calibration needs measured besides the study: collectives by themselves, and layers one by one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from paceline.plan.capabilities import Capabilities
from paceline.plan.trial import Trial
from paceline.spec import Study, read_study

OPERATIONS = ("all_reduce", "push_pull")
"""The collectives by which gradients are exchanged."""
LARGEST, LEAST_LARGEST = 64, 1
"""MiB of the largest message, where bandwidth is all; less on links that would take longer than LONGEST_S for it."""
LONGEST_S = 0.5


def companions(study: Study, capabilities: Mapping[str, Capabilities], trials: Iterable[Trial]) -> list[Study]:
    """The companion studies of a study, on the same clusters; [] for one that trains nothing or a script.

    Args:
        capabilities: of the study's own frameworks.
        trials: those of the study that can run here.
    """
    if study.of_collectives or study.axes["workload.script"] != (None,):
        return []
    wanted = []
    exchanging = tuple(name for name in capabilities if capabilities[name].collectives)
    if exchanging and any(trial.workers > 1 for trial in trials):
        wanted.append(_links(study, capabilities, exchanging))
    timed = tuple(name for name in capabilities if capabilities[name].layer_times)
    if timed:
        wanted.append(_layers(study, timed))
    return wanted


def message_sizes(study: Study) -> str:
    """From where latency is all to where bandwidth is, on the slowest link of a study."""
    rates = [
        network.bandwidth_bytes_per_s
        for network in study.axes["cluster.network"]
        if network and network.bandwidth_bytes_per_s
    ]
    largest = LARGEST
    while rates and largest > LEAST_LARGEST and largest * 2**20 / min(rates) > LONGEST_S:
        largest //= 2
    return f"4KiB..{largest}MiB"


def _links(study: Study, capabilities: Mapping[str, Capabilities], exchanging: tuple[str, ...]) -> Study:
    """Collectives by themselves, on the clusters of the study."""
    operations = [
        operation for operation in OPERATIONS if any(operation in capabilities[name].collectives for name in exchanging)
    ]
    plain = read_study(
        {
            "study": {"name": f"{study.name}-links", "question": "How long do collectives take here?"},
            "workload": {
                "model": "collective",
                "collective": {"operation": operations, "sizes": message_sizes(study)},
            },
            "framework": {"name": list(exchanging)},
        },
        source=study.source,
    )
    clusters = {key: values for key, values in study.axes.items() if key.startswith("cluster.")}
    return replace(
        plain,
        axes={**plain.axes, **clusters},
        knobs=study.knobs,
        site_options=study.site_options,
        interpreters=study.interpreters,
        environments=study.environments,
        repeats=study.repeats,
    )


def _layers(study: Study, timed: tuple[str, ...]) -> Study:
    """Layers one by one, on one worker."""
    axes = {
        **study.axes,
        "framework.name": timed,
        "measure.layers": (True,),
        "cluster.hosts": (1,),
        "cluster.workers_per_host": (1,),
        "cluster.network": (None,),
    }
    return replace(study, name=f"{study.name}-layers", axes=axes)
