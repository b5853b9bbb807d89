"""What other tools measured, kept beside the records of a store for the calibration of one study."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paceline.errors import PacelineError, StoreError
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import HALVES
from paceline.model.equations.ready import Ready
from paceline.model.fitting.observe import ObservedCollective, Training
from paceline.model.fitting.problem import Evidence
from paceline.model.foreign import readers
from paceline.model.foreign.readers import SizeTable

FOLDER = "imports"
"""In a store."""
NCCL_TESTS, OSU, LAYERS, KINETO = "nccl-tests", "osu", "layers", "kineto"
KINDS = (NCCL_TESTS, OSU, LAYERS, KINETO)
UNDERSTOOD = {"all_reduce", *HALVES}
"""Operations that a step is made of: others say nothing about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportContext:
    """Where something was measured: what files do not tell, and the user does."""

    framework: str | None = None
    """Whose steps it is about; None: every framework's of the study."""
    workers: int | None = None
    hosts: int = 1
    batch: float | None = None
    bandwidth: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """One file."""

    file: str
    digest: str
    kind: str
    """One of KINDS."""
    setting: ImportContext
    told: Mapping[str, Any]
    """What was read, as lists and numbers."""


def recognised(text: str) -> str:
    """The kind of a file by what is in it.

    Raises:
        PacelineError: nobody knows it.
    """
    if text.lstrip().startswith(("{", "[")):
        return KINETO
    head = text[:4000]
    if "OSU" in head:
        return OSU
    first = head.lstrip().split("\n", 1)[0]
    if "," in first and ("Backward" in first or "backward_compute_us" in first):
        return LAYERS
    if "busbw" in head or "nccl" in head.lower():
        return NCCL_TESTS
    raise PacelineError("no kind of file that is known here", hint=f"say which it is: --kind {'|'.join(KINDS)}")


def read_import(text: str, *, file: str, kind: str | None, setting: ImportContext) -> Imported:
    """What a file tells a calibration.

    Raises:
        PacelineError: it cannot be read, or something must be said about it.
    """
    kind = kind or recognised(text)
    told, setting = _READERS[kind](text, setting)
    return Imported(file=file, digest=hashlib.sha256(text.encode()).hexdigest(), kind=kind, setting=setting, told=told)


def _table(read: Callable[[str], SizeTable]) -> Callable[[str, ImportContext], tuple[dict[str, Any], ImportContext]]:
    def told(text: str, setting: ImportContext) -> tuple[dict[str, Any], ImportContext]:
        table = read(text)
        if table.operation not in UNDERSTOOD:
            raise PacelineError(
                f"{table.operation} says nothing about a training step",
                hint=f"measure one of these: {', '.join(sorted(UNDERSTOOD))}",
            )
        workers = setting.workers or table.ranks
        if workers is None:
            raise PacelineError("how many ranks were there?", hint="the file does not say: add --workers 2")
        found = {"operation": table.operation, "sizes": table.sizes.tolist(), "seconds": table.seconds.tolist()}
        return found, replace(setting, workers=workers)

    return told


def _layers(text: str, setting: ImportContext) -> tuple[dict[str, Any], ImportContext]:
    ready = readers.ready_of_layer_trace(list(csv.DictReader(io.StringIO(text))))
    return {"fractions": list(ready.fractions), "bytes": list(ready.bytes)}, setting


def _kineto(text: str, setting: ImportContext) -> tuple[dict[str, Any], ImportContext]:
    missing = [
        flag for flag, value in (("--workers 2", setting.workers), ("--batch 32", setting.batch)) if value is None
    ]
    if missing:
        raise PacelineError(
            "a profile does not tell its workers and its batch",
            hint=f"samples a worker and step: add {' '.join(missing)}",
        )
    return dict(readers.step_of_kineto(text)), setting


_READERS: dict[str, Callable[[str, ImportContext], tuple[dict[str, Any], ImportContext]]] = {
    NCCL_TESTS: _table(readers.nccl_tests),
    OSU: _table(readers.osu),
    LAYERS: _layers,
    KINETO: _kineto,
}


def imports_path(folder: Path, study: str) -> Path:
    return folder / FOLDER / f"{study}.json"


def read_imports(folder: Path, study: str) -> list[Imported]:
    """All that was imported for a study.

    Raises:
        StoreError: the file is damaged.
    """
    path = imports_path(folder, study)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [Imported(**{**one, "setting": ImportContext(**one["setting"])}) for one in data]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}", hint="remove it and import again") from None


def add_import(folder: Path, study: str, imported: Imported) -> Path:
    """Keep it; the same file again takes the place of the earlier one."""
    path = imports_path(folder, study)
    kept = [one for one in read_imports(folder, study) if one.digest != imported.digest]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps([asdict(one) for one in (*kept, imported)], indent=1), encoding="utf-8")
    part.replace(path)
    return path


def with_imports(evidence: Evidence, found: Sequence[Imported]) -> Evidence:
    """What is known of a family, and what others measured of it."""
    for one in found:
        if one.setting.framework in {None, evidence.family.framework}:
            evidence = _ADDERS[one.kind](evidence, one)
    return evidence


def _conditions(evidence: Evidence, setting: ImportContext) -> Conditions:
    last = max(evidence.trainings, key=lambda training: training.conditions.workers).conditions
    return last.change(
        workers=setting.workers,
        hosts=setting.hosts,
        bandwidth=setting.bandwidth,
        batch=(setting.batch or last.samples) / last.passes,
        latency_s=setting.latency_s,
        servers=max(1, evidence.manner.servers_per_host * setting.hosts),
    )


def _with_collective(evidence: Evidence, one: Imported) -> Evidence:
    collective = ObservedCollective(
        trial=evidence.trainings[0].trial,
        conditions=_conditions(evidence, one.setting).change(messages=()),
        operation=one.told["operation"],
        sizes=np.array(one.told["sizes"]),
        seconds=np.array(one.told["seconds"]),
    )
    return replace(evidence, collectives=(*evidence.collectives, collective))


def _with_step(evidence: Evidence, one: Imported) -> Evidence:
    like = max(evidence.trainings, key=lambda training: training.conditions.workers)
    step = Training(
        trial=like.trial,
        conditions=_conditions(evidence, one.setting),
        steps_s=(one.told["step"],),
        phases={"communication": one.told["exposed"]},
        derived=False,
        straggling=like.straggling,
        peak_rss_bytes=None,
    )
    return replace(evidence, trainings=(*evidence.trainings, step))


def _with_layers(evidence: Evidence, one: Imported) -> Evidence:
    ready = Ready(fractions=tuple(one.told["fractions"]), bytes=tuple(one.told["bytes"]), measured=True)
    trainings = tuple(replace(one, conditions=_ready_by(ready, one.conditions)) for one in evidence.trainings)
    return replace(evidence, ready=ready, trainings=trainings)


def _ready_by(ready: Ready, conditions: Conditions) -> Conditions:
    """The same, with buckets that fill as this trace says."""
    return (
        conditions
        if conditions.fractions is None
        else conditions.change(fractions=ready.of_messages(conditions.messages))
    )


_ADDERS: dict[str, Callable[[Evidence, Imported], Evidence]] = {
    NCCL_TESTS: _with_collective,
    OSU: _with_collective,
    LAYERS: _with_layers,
    KINETO: _with_step,
}
