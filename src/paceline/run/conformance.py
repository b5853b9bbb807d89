"""The runs of a fairness proof, and the reference that they are compared with.

The reference is written in PyTorch: one process that trains in float64, and then several times in float32, whose
distances from float64 tell what rounding does to a workload. It cannot prove that PyTorch's own builder reads the graph
correctly: for that its layers are tested against NumPy, and a mistake would show as a difference to other frameworks.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.plan import Catalog, Trial
from paceline.plan.expand import default_choice
from paceline.plan.proof import ProofCase, proof_cases

REFERENCE = "reference"


def can_be_proved(trial: Trial, catalog: Catalog) -> bool:
    """Whether a proof could show anything about a trial."""
    trains = catalog.capabilities[trial.framework.name].trains and trial.workload.collective is None
    return trains and not trial.framework.simulated


def cases_of(trials: Sequence[Trial], catalog: Catalog) -> list[ProofCase]:
    """The cases of the proof for these trials. The catalog has to contain the reference."""
    return proof_cases(
        [trial for trial in trials if can_be_proved(trial, catalog)],
        reference=default_choice(catalog, REFERENCE),
        proves_on=catalog.site.proves_on,
        approximations=lambda choice: catalog.capabilities[choice.name].approximations(choice.strategy, choice.knobs),
    )
