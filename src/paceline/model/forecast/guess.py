"""A model without any run, guessed from the graph's arithmetic and bytes and from the device's data sheet.

The fraction of peak that training reaches differs by an order of magnitude between models. A typical value is assumed,
and the interval is wide.
"""

from __future__ import annotations

import numpy as np

from paceline.model.equations.parameters import as_vector
from paceline.model.equations.ready import buckets_of, ready_of
from paceline.model.fitting.calibration import Calibration, Hull, ModelFamily
from paceline.model.forecast.catalogue import Device
from paceline.plan.vocabulary import PARTITIONED, REPLICATED, RING, SHARDED, Sharing
from paceline.stats.known_by import GUESSED
from paceline.workloads.cost import cost
from paceline.workloads.graph import Graph

REACHED = 0.35
"""Assumed fraction of a device's peak arithmetic; 0.1 to 0.6 is usual for training in fp32."""
REACHED_BYTES = 0.6
"""Assumed fraction of a device's memory bandwidth."""
CALLS_S = 15e-6
"""Seconds per layer and pass to launch its kernels."""
LATENCY_S = 30e-6
"""Seconds of latency per message."""
TOUCHES = 3
"""Number of times each activation is written or read per pass."""
OPTIMIZER_TOUCHES = 5
"""SGD with momentum reads gradient, velocity and weight, and writes two of them."""
OFF = 0.7
"""Logarithm of a factor of two: one guess in ten is off by more."""
GUESSABLE = (REPLICATED, PARTITIONED, SHARDED)
"""Sharing schemes whose messages follow from the graph alone."""
KEPT = 3
"""Copies of the weights' size that a worker with all weights holds: weights, gradients and momentum."""


def guess(
    graph: Graph, device: Device, *, framework: str = "torch", strategy: str = "ddp", sharing: Sharing = REPLICATED
) -> Calibration:
    """Guess the model of a graph on a device that was not measured.

    Args:
        sharing: How workers share a step; one of GUESSABLE.
    """
    total = cost(graph)
    rate, memory = device.fp32_flops * REACHED, device.memory_bytes_per_s * REACHED_BYTES
    activations = float(sum(layer.activation_bytes for layer in total.layers)) * TOUCHES
    calls = CALLS_S * len(total.layers)
    vector = as_vector(
        {
            "forward_s": calls,
            "forward_per_sample_s": total.forward_flops / rate + activations / memory,
            "backward_s": 2 * calls,
            "backward_per_sample_s": total.backward_flops / rate + 2 * activations / memory,
            "update_s": OPTIMIZER_TOUCHES * total.gradient_bytes / memory,
            "alpha_s": LATENCY_S,
            "byte_s": 1 / memory,
            "start": 0.0,
        }
    )
    ready = ready_of((), graph)
    family = ModelFamily(
        framework=framework,
        strategy=strategy,
        model=graph.name,
        graph=graph.hash,
        knobs={},
        threads=1,
        device=device.name,
        site="none",
        options={},
        input="resident/0",
        machine=device.name,
        lock="",
        simulated=False,
    )
    return Calibration(
        family=family,
        by=GUESSED,
        vector=vector,
        low=vector * np.exp(-OFF),
        high=vector * np.exp(OFF),
        draws=np.repeat(vector[None, :], 2, axis=0),
        # Nothing was run, so nothing is extrapolated; `residual` carries the whole uncertainty.
        hull=Hull(workers=(1, 2**62), hosts=(1, 2**62), batch=(1e-9, 1e18), bandwidth=None),
        residual=OFF,
        held_out=0,
        noise=0.0,
        exchange=RING,
        sharing=sharing,
        # With sharded weights, memory per worker depends on the number of workers.
        memory=(float(KEPT * total.gradient_bytes), activations / TOUCHES) if sharing == REPLICATED else None,
        messages=ready.bucketed(buckets_of(None)),
        bucketed=True,
        ready=ready,
        remarks=(
            f"nothing was run: we assume that training reaches {REACHED:.0%} of {device.name}'s peak ({device.source})",
        ),
    )
