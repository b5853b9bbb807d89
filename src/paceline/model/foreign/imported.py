"""Measurements of other tools, stored beside the records for the calibration of one study."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from paceline.errors import PacelineError, StoreError
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import HALVES
from paceline.model.equations.ready import Ready
from paceline.model.fitting.observe import ObservedCollective, Training
from paceline.model.fitting.problem import Evidence
from paceline.model.foreign import readers
from paceline.model.foreign.readers import SizeTable, StepTimes

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
class CollectiveTimes:
    """Times of a stand-alone collective."""

    operation: str
    sizes: Sequence[float]
    """Bytes of each message."""
    seconds: Sequence[float]


@dataclass(frozen=True, kw_only=True, slots=True)
class GradientOrder:
    """Gradients in the order in which they become ready, as in `Ready`."""

    fractions: Sequence[float]
    bytes: Sequence[float]


Told = CollectiveTimes | GradientOrder | StepTimes
"""What was read from a file."""
TOLD: Mapping[str, type[Told]] = {
    NCCL_TESTS: CollectiveTimes,
    OSU: CollectiveTimes,
    LAYERS: GradientOrder,
    KINETO: StepTimes,
}
"""Maps a kind of file to what is read from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """One imported file."""

    file: str
    digest: str
    kind: str
    """One of KINDS."""
    setting: ImportContext
    told: Told


Reader = Callable[[str, ImportContext], tuple[Told, ImportContext]]
"""Maps the text of a file and what the user adds to what was read and its complete context."""


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


def _table(read: Callable[[str], SizeTable]) -> Reader:
    def parse(text: str, setting: ImportContext) -> tuple[CollectiveTimes, ImportContext]:
        table = read(text)
        if table.operation not in UNDERSTOOD:
            raise PacelineError(
                f"{table.operation} is not part of a training step",
                hint=f"import one of these: {', '.join(sorted(UNDERSTOOD))}",
            )
        workers = setting.workers or table.ranks
        if workers is None:
            raise PacelineError("the file does not contain the number of ranks", hint="add it: --workers 2")
        times = CollectiveTimes(operation=table.operation, sizes=table.sizes.tolist(), seconds=table.seconds.tolist())
        return times, replace(setting, workers=workers)

    return parse


def _layers(text: str, setting: ImportContext) -> tuple[GradientOrder, ImportContext]:
    ready = readers.ready_of_layer_trace(list(csv.DictReader(io.StringIO(text))))
    return GradientOrder(fractions=ready.fractions, bytes=ready.bytes), setting


def _kineto(text: str, setting: ImportContext) -> tuple[StepTimes, ImportContext]:
    missing = [
        flag for flag, value in (("--workers 2", setting.workers), ("--batch 32", setting.batch)) if value is None
    ]
    if missing:
        raise PacelineError(
            "a profile does not contain the number of workers and the batch",
            hint=f"add them (batch is samples per worker and step): {' '.join(missing)}",
        )
    return readers.step_of_kineto(text), setting


_READERS: dict[str, Reader] = {
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
        return [
            Imported(
                file=plain["file"],
                digest=plain["digest"],
                kind=plain["kind"],
                setting=ImportContext(**plain["setting"]),
                told=TOLD[plain["kind"]](**plain["told"]),
            )
            for plain in data
        ]
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
            evidence = _with(evidence, imported.setting, imported.told)
    return evidence


def _with(evidence: Evidence, setting: ImportContext, told: Told) -> Evidence:
    if isinstance(told, CollectiveTimes):
        return _with_collective(evidence, setting, told)
    if isinstance(told, StepTimes):
        return _with_step(evidence, setting, told)
    return _with_layers(evidence, told)


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


def _with_collective(evidence: Evidence, setting: ImportContext, told: CollectiveTimes) -> Evidence:
    collective = ObservedCollective(
        trial=evidence.trainings[0].trial,
        conditions=_conditions(evidence, setting).change(messages=()),
        operation=told.operation,
        sizes=np.array(told.sizes),
        seconds=np.array(told.seconds),
    )
    return replace(evidence, collectives=(*evidence.collectives, collective))


def _with_step(evidence: Evidence, setting: ImportContext, told: StepTimes) -> Evidence:
    largest = max(evidence.trainings, key=lambda training: training.conditions.workers)
    step = Training(
        trial=largest.trial,
        conditions=_conditions(evidence, setting),
        steps_s=(told.step,),
        phases={"communication": told.exposed},
        derived=False,
        straggling=largest.straggling,
        peak_rss_bytes=None,
    )
    return replace(evidence, trainings=(*evidence.trainings, step))


def _with_layers(evidence: Evidence, told: GradientOrder) -> Evidence:
    ready = Ready(fractions=tuple(told.fractions), bytes=tuple(told.bytes), measured=True)
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
