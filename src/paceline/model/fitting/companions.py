"""Companion studies that a calibration needs: stand-alone collectives and single layers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from paceline.plan.capabilities import Capabilities
from paceline.plan.trial import Trial
from paceline.spec import Network, Study, read_study

OPERATIONS = ("all_reduce", "push_pull")
"""The collectives by which gradients are exchanged."""
LARGEST, LEAST_LARGEST = 64, 1
"""Size in MiB of the largest message; smaller on links that need more than LONGEST_S for it."""
LONGEST_S = 0.5
"""Longest time in seconds to send the largest message."""


def companions(study: Study, capabilities: Mapping[str, Capabilities], trials: Iterable[Trial]) -> list[Study]:
    """The companion studies of a study on the same clusters; [] for a study of collectives or of a script.

    Args:
        capabilities: Capabilities of the study's frameworks.
        trials: The trials of the study that can run here.
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
    """Message sizes from latency-bound to bandwidth-bound on the slowest link of a study."""
    rates = [
        network.bandwidth_bytes_per_s
        for network in study.optional_values("cluster.network", Network)
        if network and network.bandwidth_bytes_per_s
    ]
    largest = LARGEST
    while rates and largest > LEAST_LARGEST and largest * 2**20 / min(rates) > LONGEST_S:
        largest //= 2
    return f"4KiB..{largest}MiB"


def _links(study: Study, capabilities: Mapping[str, Capabilities], exchanging: tuple[str, ...]) -> Study:
    """A study of stand-alone collectives on the clusters of the study."""
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
    """A study that times each layer, on one worker."""
    axes = {
        **study.axes,
        "framework.name": timed,
        "measure.layers": (True,),
        "cluster.hosts": (1,),
        "cluster.workers_per_host": (1,),
        "cluster.network": (None,),
    }
    return replace(study, name=f"{study.name}-layers", axes=axes)
