"""What a study may measure: a layer graph that every framework builds, a training program whose content is unknown, or
a single collective operation.

Stages that need the sizes of a workload before it runs get them from `known_sizes`, and need not check its type.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TypeAlias

from paceline.workloads.collective import Collective
from paceline.workloads.cost import cost
from paceline.workloads.graph import Graph
from paceline.workloads.program import Program

Workload: TypeAlias = Graph | Program | Collective
"""Each has a `kind`, by which frameworks accept or refuse it, a `hash`, and the `layer_kinds` that it needs."""


@singledispatch
def known_sizes(workload: Workload) -> dict[str, int]:
    """Parameters, gradient bytes and FLOPs per sample, as far as they are known before anything runs.

    Nothing is known of a program: it counts its parameters itself when it runs. A collective has none of them.
    """
    del workload
    return {}


@known_sizes.register
def _of_graph(graph: Graph) -> dict[str, int]:
    total = cost(graph)
    return {
        "parameters": graph.num_parameters,
        "gradient_bytes": total.gradient_bytes,
        "forward_flops": total.forward_flops,
        "backward_flops": total.backward_flops,
    }
