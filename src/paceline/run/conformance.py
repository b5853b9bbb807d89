"""Who judges in a fairness proof, and which runs that takes.

The judge is PyTorch's: one process that trains in float64, and then in float32 several times, whose distances from
float64 tell what rounding does to a workload. That PyTorch's builder reads the graph rightly is not proved by its
agreement with itself: its layers are tested against NumPy, and other frameworks would part from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.plan import Catalog, Trial
from paceline.plan.expand import default_choice
from paceline.plan.proof import ProofCase, proof_cases

REFERENCE = "reference"


def can_be_proved(trial: Trial, catalog: Catalog) -> bool:
    """Whether there is anything that a proof could show of it."""
    trains = catalog.capabilities[trial.framework.name].trains and trial.workload.collective is None
    return trains and not trial.framework.simulated


def cases_of(trials: Sequence[Trial], catalog: Catalog) -> list[ProofCase]:
    """The proof's cases for these trials. The catalog must know the reference."""
    return proof_cases(
        [trial for trial in trials if can_be_proved(trial, catalog)],
        reference=default_choice(catalog, REFERENCE),
        proves_on=catalog.site.proves_on,
    )
