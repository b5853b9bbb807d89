"""Every code of a doubt or a warning of a row: stable words that docs/concepts/measuring.md explains."""

from __future__ import annotations

from typing import Literal

DoubtCode = Literal[
    "batch-samples",
    "derived-phases",
    "drift",
    "few-steps",
    "frequency",
    "gaps",
    "host-busy",
    "impossible-phases",
    "impossible-ranks",
    "impossible-step-time",
    "impossible-throughput",
    "impossible-utilisation",
    "lab-busy",
    "lab-links",
    "layers-missing",
    "loss-not-finite",
    "loss-still",
    "memory-near",
    "noisy-neighbour",
    "over-budget",
    "parameters-graph",
    "parameters-ranks",
    "port-retry",
    "profiled",
    "ranks-missing",
    "retried",
    "samples-missing",
    "samples-none",
    "shared-cores",
    "simulated",
    "single-run",
    "spread",
    "starved",
    "steps-missing",
    "stuck",
]
