"""From a study to trials: multiply out the axes, fill in the defaults, and give a reason for every trial that cannot
run.

Pure: the caller passes the capabilities of frameworks and sites, the locks of environments and a function that reads
workloads, so this module imports neither family.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from paceline.errors import SpecError, did_you_mean, documented
from paceline.plan.capabilities import Capabilities, Knob, SiteLimits
from paceline.plan.knob_values import KnobValue
from paceline.plan.trial import ClusterChoice, FrameworkChoice, Limits, MeasureChoice, Trial, WorkloadChoice
from paceline.plan.vocabulary import DEVICES, INPUT_KINDS, words_of
from paceline.spec.catalog import SECTIONS
from paceline.spec.study import Network, Study
from paceline.spec.trained import WorkloadOf
from paceline.workloads.collective import Collective
from paceline.workloads.graph import Graph
from paceline.workloads.workload import Workload

Value = TypeVar("Value")

SCRIPT_OPTIONS = ("arguments", "launch", "working_directory")
"""Keys of [workload] that are options of a script."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """What planning needs to know about frameworks, environments and the site, gathered by the caller."""

    capabilities: Mapping[str, Capabilities]
    """framework → what it can do, for every framework that the study names."""
    environments: Mapping[str, tuple[str, str]]
    """framework → (environment name, digest of its lock)."""
    unavailable: Mapping[str, str]
    """framework → why it cannot run here at all; its trials are skipped with that reason."""
    site: SiteLimits
    """What the study's site offers."""
    workload: WorkloadOf
    """Reads a workload by model (or script) and options (or arguments)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expanded:
    """One trial, with the reason if it cannot run."""

    trial: Trial
    refusal: str | None
    """None: it can run."""
    missing_cores: str | None = None
    """Which cores this machine lacks, in words. This is also a refusal, and running such a study is an error."""


def expand(study: Study, catalog: Catalog) -> list[Expanded]:
    """Multiply the axes out, in the order in which the study names them.

    Raises:
        SpecError: an unknown knob, option, strategy or model.
    """
    _refuse_strangers(study, catalog)
    out: dict[str, Expanded] = {}
    for framework, workload in itertools.product(_frameworks(study, catalog), _workloads(study, catalog)):
        for expanded in _of_clusters(study, catalog, framework, workload):
            out.setdefault(expanded.trial.id, expanded)
    return refuse_unavailable(out.values(), catalog.unavailable)


def refuse_unavailable(expanded: Iterable[Expanded], unavailable: Mapping[str, str]) -> list[Expanded]:
    """The same trials, where trials of unavailable frameworks are refused.

    Args:
        unavailable: framework → the reason.
    """
    reasons = [(candidate, unavailable.get(candidate.trial.framework.name)) for candidate in expanded]
    return [candidate if reason is None else replace(candidate, refusal=reason) for candidate, reason in reasons]


def require_cores(study: Study, expanded: Iterable[Expanded]) -> None:
    """Refuse to run a study that needs more cores than there are, because its times would mean little.

    Raises:
        SpecError: a trial needs more cores.
    """
    for candidate in expanded:
        if candidate.missing_cores:
            raise SpecError(
                f"{study.source}: cluster: {candidate.missing_cores}",
                hint="lower workers_per_host or threads_per_worker, or write oversubscribe = true to study just that",
            )


def _of_clusters(
    study: Study,
    catalog: Catalog,
    framework: FrameworkChoice,
    workload: tuple[WorkloadChoice, Workload, int | None],
) -> Iterator[Expanded]:
    """One framework and workload on every cluster of the study."""
    choice, trained, batch_global = workload
    for cluster in _clusters(study, catalog.site, choice.model):
        refusal = None
        if batch_global is not None:
            share, rest = divmod(batch_global, cluster.workers)
            if rest or share == 0:
                refusal = f"batch_global {batch_global} cannot be divided equally among {cluster.workers} workers"
            choice = replace(choice, batch_per_worker=max(share, 1))
        trial = Trial(
            workload=choice,
            framework=framework,
            cluster=cluster,
            measure=_measure(study, choice.model),
            limits=_limits(study),
        )
        capabilities = catalog.capabilities[framework.name]
        missing = _missing_cores(trial, catalog.site)
        refusal = refusal or cannot_host(trial, catalog.site) or cannot_train(trial, trained, capabilities)
        yield Expanded(trial=trial, refusal=refusal, missing_cores=missing)


def cannot_host(trial: Trial, site: SiteLimits) -> str | None:
    """Why a site cannot run this trial with any framework, in words, or None."""
    return _missing_cores(trial, site) or _site_refusal(trial, site)


def cannot_train(trial: Trial, trained: Workload, capabilities: Capabilities) -> str | None:
    """Why a framework cannot run this trial on any site, in words, or None."""
    return (
        capabilities.refusal(trial, trained.layer_kinds, trained.kind)
        or (capabilities.refuses_graph(trial, trained) if isinstance(trained, Graph) else None)
        or (capabilities.refuses_collective(trial, trained) if isinstance(trained, Collective) else None)
    )


def _product(axes: Mapping[str, tuple[Value, ...]]) -> Iterator[dict[str, Value]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _frameworks(study: Study, catalog: Catalog) -> Iterator[FrameworkChoice]:
    names, strategies = study.values("framework.name", str), study.values("framework.strategy", str)
    for name, given_strategy in itertools.product(names, strategies):
        capabilities = catalog.capabilities[name]
        strategy = capabilities.resolve_strategy(given_strategy, f"{study.source}: framework.strategy")
        environment, lock = catalog.environments[name]
        table = study.knobs.get(name, {})
        more = f"what they do: paceline doctor --framework {name}"
        for knobs in _product(_knob_axes(table, capabilities.knobs, f"{study.source}: framework.{name}", more)):
            yield FrameworkChoice(
                name=name,
                strategy=strategy,
                strategy_class=capabilities.class_of(strategy, knobs),
                knobs=knobs,
                environment=environment,
                lock=lock,
                simulated=capabilities.simulated(knobs),
                one_process=capabilities.strategies[strategy].one_process,
            )


def default_choice(catalog: Catalog, name: str, **knobs: KnobValue) -> FrameworkChoice:
    """A framework with its default data-parallel strategy and its default knobs, except for those given."""
    capabilities = catalog.capabilities[name]
    environment, lock = catalog.environments[name]
    chosen = {knob: description.default for knob, description in capabilities.knobs.items()} | knobs
    return FrameworkChoice(
        name=name,
        strategy=capabilities.data_parallel,
        strategy_class=capabilities.class_of(capabilities.data_parallel, chosen),
        knobs=chosen,
        environment=environment,
        lock=lock,
        one_process=capabilities.strategies[capabilities.data_parallel].one_process,
    )


def _knob_axes(
    table: Mapping[str, tuple[object, ...]], knobs: Mapping[str, Knob], where: str, more: str
) -> dict[str, tuple[KnobValue, ...]]:
    """Knob → its checked values, for every knob of a framework or a site."""
    for knob in table:
        if knob not in knobs:
            raise SpecError(f"{where}: unknown knob '{knob}'", hint=f"{did_you_mean(knob, knobs)}   {more}")
    axes = {}
    for knob, description in knobs.items():
        values = []
        for value in table.get(knob, (None,)):
            try:
                values.append(description.parse(value))
            except ValueError as error:
                raise SpecError(f"{where}.{knob}: {error}", hint=description.doc) from None
        axes[knob] = tuple(dict.fromkeys(values))
    return axes


def _workloads(study: Study, catalog: Catalog) -> Iterator[tuple[WorkloadChoice, Workload, int | None]]:
    strong = study.axes["workload.batch_global"] != (None,)
    batch_key = "workload.batch_global" if strong else "workload.batch_per_worker"
    key, named = named_workloads(study)
    for model, tables in named.items():
        for options in _product(tables):
            try:
                workload = catalog.workload(model, options)
            except SpecError as error:
                raise SpecError(f"{study.source}: workload.{key}: {error.message}", hint=error.hint) from None
            for batch, feed, loaders, seed in itertools.product(
                study.values(batch_key, int, model),
                words_of(study.values("workload.input", str), INPUT_KINDS),
                study.values("workload.loader_workers", int),
                study.values("measure.seed", int),
            ):
                # Loader workers have no effect on resident data, so this makes one trial instead of several equal ones.
                choice = WorkloadChoice(
                    model=model,
                    options=options,
                    graph=workload.hash,
                    batch_per_worker=batch,
                    scaling="strong" if strong else "weak",
                    input=feed,
                    loader_workers=loaders if feed == "pipeline" else 0,
                    seed=seed,
                )
                yield choice, workload, batch if strong else None


def named_workloads(study: Study) -> tuple[str, Mapping[str, Mapping[str, tuple[object, ...]]]]:
    """The key that names the workloads, and for each of its values the options to multiply out."""
    if not study.of_scripts:
        return "model", {model: study.model_options.get(model, {}) for model in study.values("workload.model", str)}
    # Only keys that the study sets: records made before a key existed keep their ids.
    given = {key: study.optional_values(f"workload.{key}", str) for key in SCRIPT_OPTIONS}
    options = {key: values for key, values in given.items() if values != (SECTIONS["workload"][key].default,)}
    return "script", dict.fromkeys(study.values("workload.script", str), options)


def _clusters(study: Study, site: SiteLimits, model: str) -> Iterator[ClusterChoice]:
    name = study.single("cluster.site", str)
    options = _knob_axes(
        study.site_options.get(name, {}), site.knobs, f"{study.source}: cluster.{name}", documented("reference/study")
    )
    for hosts, workers_per_host, threads_per_worker, device, network in itertools.product(
        study.values("cluster.hosts", int, model),
        study.values("cluster.workers_per_host", int, model),
        study.values("cluster.threads_per_worker", int, model),
        words_of(study.values("cluster.device", str, model), DEVICES),
        study.optional_values("cluster.network", Network, model),
    ):
        for chosen in _product(options):
            yield ClusterChoice(
                site=name,
                hosts=hosts,
                workers_per_host=workers_per_host,
                threads_per_worker=threads_per_worker,
                device=device,
                # A single host has no link, so this makes one trial instead of several equal ones. On a site that
                # cannot set links the network stays, and the trial is refused.
                network=network if hosts > 1 or not site.networks else None,
                oversubscribe=study.single("cluster.oversubscribe", bool),
                options=chosen,
            )


def _measure(study: Study, model: str) -> MeasureChoice:
    return MeasureChoice(
        warmup_steps=study.single("measure.warmup_steps", int, model),
        steps=study.single("measure.steps", int, model),
        layers=study.single("measure.layers", bool),
    )


def _limits(study: Study) -> Limits:
    (memory_bytes,) = study.optional_values("measure.memory_limit", float)
    return Limits(time_s=study.single("measure.time_limit", float), memory_bytes=memory_bytes)


def _refuse_strangers(study: Study, catalog: Catalog) -> None:
    """Refuse tables of frameworks, models or sites that the study does not use: they are probably misspelt."""
    frameworks = study.values("framework.name", str)
    models = study.optional_values("workload.model", str)
    for kind, tables, used in (
        ("framework", study.knobs, frameworks),
        ("workload", study.model_options, tuple(model for model in models if model)),
        ("cluster", study.site_options, study.values("cluster.site", str)),
    ):
        for name in tables:
            if name not in used:
                raise SpecError(f"{study.source}: {kind}.{name}: not part of this study", hint=did_you_mean(name, used))
    missing = [name for name in frameworks if name not in catalog.capabilities]
    assert not missing, f"the caller gathered no capabilities for {missing}"


def _missing_cores(trial: Trial, site: SiteLimits) -> str | None:
    cluster = trial.cluster
    cores = cluster.workers_per_host * cluster.threads_per_worker
    if cores <= site.cores_per_host or cluster.oversubscribe or trial.framework.simulated:
        return None
    return (
        f"{cluster.workers_per_host} workers × {cluster.threads_per_worker} threads "
        f"want {cores} cores per host, and there are {site.cores_per_host}"
    )


def _site_refusal(trial: Trial, site: SiteLimits) -> str | None:
    cluster = trial.cluster
    if cluster.hosts > site.hosts:
        return f"site {cluster.site} has {site.hosts} host(s), the trial wants {cluster.hosts}"
    if cluster.workers_per_host > site.workers_per_host:
        return (
            f"a host of site {cluster.site} holds at most {site.workers_per_host} workers, "
            f"the trial wants {cluster.workers_per_host}"
        )
    if cluster.network is not None and not site.networks:
        return f"site {cluster.site} cannot set a network"
    if cluster.device != "cpu" and cluster.workers_per_host > site.devices.get(cluster.device, 0):
        return f"site {cluster.site} has {site.devices.get(cluster.device, 0)} {cluster.device} device(s) per host"
    return site.refuses(cluster)
