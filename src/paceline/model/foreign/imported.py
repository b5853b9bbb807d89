"""Measurements of other tools, stored beside the records for the calibration of one study."""

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
"""Folder of the imports in a store."""
NCCL_TESTS, OSU, LAYERS, KINETO = "nccl-tests", "osu", "layers", "kineto"
KINDS = (NCCL_TESTS, OSU, LAYERS, KINETO)
UNDERSTOOD = {"all_reduce", *HALVES}
"""Collectives that a training step uses; others say nothing about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportContext:
    """The conditions of a measurement that the file does not contain and the user adds."""

    framework: str | None = None
    """The framework it applies to; None for every framework of the study."""
    workers: int | None = None
    hosts: int = 1
    batch: float | None = None
    bandwidth: float | None = None
    latency_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """One imported file."""

    file: str
    digest: str
    kind: str
    """One of KINDS."""
    setting: ImportContext
    told: Mapping[str, Any]
    """Values read from the file, as lists and numbers."""


def recognised(text: str) -> str:
    """Recognise the kind of a file by its content.

    Raises:
        PacelineError: The kind is not recognised.
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
    raise PacelineError("the format of this file is not recognised", hint=f"name it: --kind {'|'.join(KINDS)}")


def read_import(text: str, *, file: str, kind: str | None, setting: ImportContext) -> Imported:
    """Read a file for a calibration.

    Raises:
        PacelineError: The file cannot be read, or the user must add something that it does not contain.
    """
    kind = kind or recognised(text)
    told, setting = _READERS[kind](text, setting)
    return Imported(file=file, digest=hashlib.sha256(text.encode()).hexdigest(), kind=kind, setting=setting, told=told)


def _table(read: Callable[[str], SizeTable]) -> Callable[[str, ImportContext], tuple[dict[str, Any], ImportContext]]:
    def parse(text: str, setting: ImportContext) -> tuple[dict[str, Any], ImportContext]:
        table = read(text)
        if table.operation not in UNDERSTOOD:
            raise PacelineError(
                f"{table.operation} is not part of a training step",
                hint=f"import one of these: {', '.join(sorted(UNDERSTOOD))}",
            )
        workers = setting.workers or table.ranks
        if workers is None:
            raise PacelineError("the file does not contain the number of ranks", hint="add it: --workers 2")
        values = {"operation": table.operation, "sizes": table.sizes.tolist(), "seconds": table.seconds.tolist()}
        return values, replace(setting, workers=workers)

    return parse


def _layers(text: str, setting: ImportContext) -> tuple[dict[str, Any], ImportContext]:
    ready = readers.ready_of_layer_trace(list(csv.DictReader(io.StringIO(text))))
    return {"fractions": list(ready.fractions), "bytes": list(ready.bytes)}, setting


def _kineto(text: str, setting: ImportContext) -> tuple[dict[str, Any], ImportContext]:
    missing = [
        flag for flag, value in (("--workers 2", setting.workers), ("--batch 32", setting.batch)) if value is None
    ]
    if missing:
        raise PacelineError(
            "a profile does not contain the number of workers and the batch",
            hint=f"add them (batch is samples per worker and step): {' '.join(missing)}",
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
    """All imports of a study.

    Raises:
        StoreError: The file is damaged.
    """
    path = imports_path(folder, study)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [Imported(**{**plain, "setting": ImportContext(**plain["setting"])}) for plain in data]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}", hint="remove it and import again") from None


def add_import(folder: Path, study: str, imported: Imported) -> Path:
    """Store an import; importing the same file again replaces the earlier one."""
    path = imports_path(folder, study)
    kept = [earlier for earlier in read_imports(folder, study) if earlier.digest != imported.digest]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps([asdict(entry) for entry in (*kept, imported)], indent=1), encoding="utf-8")
    part.replace(path)
    return path


def with_imports(evidence: Evidence, imports: Sequence[Imported]) -> Evidence:
    """The observations of a family, extended by the imports that apply to it."""
    for imported in imports:
        if imported.setting.framework in {None, evidence.family.framework}:
            evidence = _ADDERS[imported.kind](evidence, imported)
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


def _with_collective(evidence: Evidence, imported: Imported) -> Evidence:
    collective = ObservedCollective(
        trial=evidence.trainings[0].trial,
        conditions=_conditions(evidence, imported.setting).change(messages=()),
        operation=imported.told["operation"],
        sizes=np.array(imported.told["sizes"]),
        seconds=np.array(imported.told["seconds"]),
    )
    return replace(evidence, collectives=(*evidence.collectives, collective))


def _with_step(evidence: Evidence, imported: Imported) -> Evidence:
    largest = max(evidence.trainings, key=lambda training: training.conditions.workers)
    step = Training(
        trial=largest.trial,
        conditions=_conditions(evidence, imported.setting),
        steps_s=(imported.told["step"],),
        phases={"communication": imported.told["exposed"]},
        derived=False,
        straggling=largest.straggling,
        peak_rss_bytes=None,
    )
    return replace(evidence, trainings=(*evidence.trainings, step))


def _with_layers(evidence: Evidence, imported: Imported) -> Evidence:
    ready = Ready(fractions=tuple(imported.told["fractions"]), bytes=tuple(imported.told["bytes"]), measured=True)
    trainings = tuple(
        replace(training, conditions=_ready_by(ready, training.conditions)) for training in evidence.trainings
    )
    return replace(evidence, ready=ready, trainings=trainings)


def _ready_by(ready: Ready, conditions: Conditions) -> Conditions:
    """The same conditions, with buckets that become ready as in this trace."""
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
