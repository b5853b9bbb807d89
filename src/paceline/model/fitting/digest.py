"""Digest of the observations behind a calibration, to tell whether a stored one is current. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass

import numpy as np

from paceline._version import __version__
from paceline.model.fitting.problem import Evidence
from paceline.plan.trial import Trial


def digest_of(evidence: Evidence) -> str:
    """Equal for the same observations of a family and the same version of Paceline."""
    text = json.dumps([__version__, evidence], default=_plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Trial):
        return value.id
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} cannot be part of a digest")
