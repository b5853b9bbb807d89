"""Who judges in a fairness proof, and which runs that takes.

The judges are PyTorch's: a reference in float64, and four ways through its float32 kernels, whose distances from the
reference tell what rounding does to a workload. That PyTorch's builder reads the graph rightly is not proved by its
agreement with itself: its layers are tested against NumPy, and other frameworks would part from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.plan import Catalog, Trial
from paceline.plan.expand import default_choice
from paceline.plan.proof import ProofCase, proof_cases

REFERENCE = "reference"
TRUSTED = "torch"
JUDGES = (REFERENCE, TRUSTED)
KERNELS: tuple[dict[str, Any], ...] = (
    {},
    {"onednn": False},
    {"channels_last": False},
    {"onednn": False, "channels_last": False},
)
"""Knobs of the trusted float32 runs. One alone says little: among a million activations some lie so close to zero that
rounding decides whether ReLU lets them pass, and each such flip moves the gradients of all layers before it by a
thousandth or a hundredth. Whether it strikes one set of kernels is luck."""


def can_be_proved(trial: Trial, catalog: Catalog) -> bool:
    """Whether there is anything that a proof could show of it."""
    trains = catalog.capabilities[trial.framework.name].trains and trial.workload.collective is None
    return trains and not trial.framework.simulated


def cases_of(trials: Sequence[Trial], catalog: Catalog) -> list[ProofCase]:
    """The proof's cases for these trials. The catalog must know the judges."""
    return proof_cases(
        [trial for trial in trials if can_be_proved(trial, catalog)],
        reference=default_choice(catalog, REFERENCE),
        yardsticks=[default_choice(catalog, TRUSTED, **knobs) for knobs in KERNELS],
    )
