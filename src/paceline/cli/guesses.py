"""What `predict --device` guesses for: a model by name, or the models, frameworks and batch of a study."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paceline.errors import SpecError
from paceline.frameworks import load_framework
from paceline.model.fitting.calibration import Calibration
from paceline.model.forecast.catalogue import device as device_of
from paceline.model.forecast.guess import GUESSABLE, guess
from paceline.plan.capabilities import Capabilities
from paceline.plan.vocabulary import REPLICATED
from paceline.spec import Study, workloads_of
from paceline.workloads import Graph, load_workload

BATCH = 32
"""The default samples per worker, which are usual for image models on one device."""
FRAMEWORK = "torch"
DATA_PARALLEL = "data-parallel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Guesses:
    """One calibration for each model and framework, and the batch per worker that they are meant for."""

    calibrations: tuple[Calibration, ...]
    batch: int


def guesses(
    device: str,
    *,
    study: Study | None = None,
    model: str | None = None,
    framework: str | None = None,
    strategy: str | None = None,
    batch: int | None = None,
) -> Guesses:
    """What data sheets say of a study, or of one model; what is named beside a study replaces its own value.

    Raises:
        SpecError: no model, no such device, framework or strategy, or a strategy that no data sheet tells about.
    """
    models = _models(study, model)
    frameworks = [framework] if framework else list(study.values("framework.name", str)) if study else [FRAMEWORK]
    wanted = strategy or (study.values("framework.strategy", str)[0] if study else DATA_PARALLEL)
    each, assumed = _batch(study, batch)
    calibrations = [
        _guess(graph, device, name, wanted, f"batch {each} per worker is assumed; set it: --batch N" if assumed else "")
        for graph in models
        for name in frameworks
    ]
    return Guesses(calibrations=tuple(calibrations), batch=each)


def _models(study: Study | None, model: str | None) -> list[Graph]:
    if model is not None and study is None:
        return [load_workload(model, {})]
    if study is None:
        raise SpecError("--device: needs a model to guess for", hint="add --model resnet50, or name a study")
    if study.of_collectives or study.axes["workload.script"] != (None,):
        raise SpecError(
            f"{study.source}: has no model whose layers are known, so nothing can be guessed for it",
            hint="measure it: paceline calibrate STUDY   or guess for a known model: add --model resnet50",
        )
    names = [model] if model else list(study.values("workload.model", str))
    read = workloads_of(study)
    graphs = [
        read(name, {key: values[0] for key, values in study.model_options.get(name, {}).items()}) for name in names
    ]
    return [graph for graph in graphs if isinstance(graph, Graph)]


def _batch(study: Study | None, batch: int | None) -> tuple[int, bool]:
    """(samples per worker, whether that is assumed)."""
    if batch is not None:
        return batch, False
    sizes = [size for size in study.optional_values("workload.batch_per_worker", int) if size] if study else []
    return (max(sizes), False) if sizes else (BATCH, True)


def _guess(graph: Graph, device: str, framework: str, wanted: str, remark: str) -> Calibration:
    capabilities = load_framework(framework, "--framework").capabilities
    strategy = capabilities.resolve_strategy(wanted, f"--strategy of {framework}")
    if not _guessable(capabilities, strategy):
        able = ", ".join(name for name in capabilities.strategies if _guessable(capabilities, name))
        raise SpecError(
            f"--strategy {strategy}: cannot be guessed from data sheets; only data-parallel strategies can",
            hint=f"choose one of {able or 'another framework'}, or measure it: paceline calibrate STUDY",
        )
    sharing = capabilities.strategies[strategy].sharing or REPLICATED
    guessed = guess(graph, device_of(device), framework=framework, strategy=strategy, sharing=sharing)
    return replace(guessed, remarks=(*guessed.remarks, remark)) if remark else guessed


def _guessable(capabilities: Capabilities, strategy: str) -> bool:
    way = capabilities.strategies[strategy]
    return way.sharing in GUESSABLE and way.servers_per_host == 0 and way.period_knob is None
