"""The host half of the float64 reference: it runs in proofs and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks import load_framework
from paceline.frameworks.reference import REFERENCE
from paceline.plan import expand
from plans import catalog, study


def test_reference_is_refused_where_anything_is_measured_and_taken_where_it_is_proved():
    (measured,) = expand(study(), catalog(capabilities=REFERENCE.capabilities))
    proof = replace(measured.trial, measure=replace(measured.trial.measure, evidence=True))

    assert load_framework("reference") is REFERENCE
    assert "not measured" in measured.refusal
    assert REFERENCE.capabilities.refusal(proof, frozenset({"linear"})) is None
