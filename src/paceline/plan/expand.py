"""From a study to trials: every axis multiplied out, every default decided, every impossibility given a reason.

Pure: what frameworks and sites can do, which locks their environments have, and how to get a graph are passed in,
so this module imports neither family.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.errors import SpecError, did_you_mean, documented
from paceline.plan.capabilities import Capabilities, Knob, SiteLimits
from paceline.plan.trial import ClusterChoice, FrameworkChoice, Limits, MeasureChoice, Trial, WorkloadChoice
from paceline.spec.catalog import SECTIONS
from paceline.spec.study import Study
from paceline.workloads.collective import Collective
from paceline.workloads.graph import Graph
from paceline.workloads.workload import Workload

SCRIPT_OPTIONS = ("arguments", "launch", "working_directory")
"""Keys of [workload] that are options of a script."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalog:
    """What is known about the world, gathered by the caller."""

    capabilities: Mapping[str, Capabilities]
    """framework → what it can do, for every framework the study names."""
    environments: Mapping[str, tuple[str, str]]
    """framework → (environment name, digest of its lock)."""
    unavailable: Mapping[str, str]
    """framework → why it cannot run here at all; its trials are skipped with that reason."""
    site: SiteLimits
    """What the study's site offers."""
    workload: Callable[[str, Mapping[str, Any]], Workload]
    """model (or script) and options (or arguments) → what is trained."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expanded:
    """One trial, or the reason why it will not run."""

    trial: Trial
    refusal: str | None
    """None: it can run."""
    missing_cores: str | None = None
    """What the machine that reads the study lacks, in words; also a refusal. To run it is an error of the study."""


def expand(study: Study, catalog: Catalog) -> list[Expanded]:
    """Multiply the axes out, in the order in which the study names them.

    Raises:
        SpecError: a knob, option, strategy or model that nobody knows.
    """
    _refuse_strangers(study, catalog)
    out: dict[str, Expanded] = {}
    for framework, workload in itertools.product(_frameworks(study, catalog), _workloads(study, catalog)):
        for expanded in _of_clusters(study, catalog, framework, workload):
            out.setdefault(expanded.trial.id, expanded)
    return refuse_unavailable(out.values(), catalog.unavailable)


def refuse_unavailable(expanded: Iterable[Expanded], unavailable: Mapping[str, str]) -> list[Expanded]:
    """The same trials, those of frameworks that cannot run here refused for that reason.

    Args:
        unavailable: framework → why.
    """
    return [
        replace(one, refusal=unavailable[one.trial.framework.name]) if one.trial.framework.name in unavailable else one
        for one in expanded
    ]


def require_cores(study: Study, expanded: Iterable[Expanded]) -> None:
    """Refuse to run a study that wants more cores than there are: its times would mean little.

    Raises:
        SpecError: some trial does.
    """
    for missing in (one.missing_cores for one in expanded):
        if missing:
            raise SpecError(
                f"{study.source}: cluster: {missing}",
                hint="lower workers_per_host or threads_per_worker, or write oversubscribe = true to study just that",
            )


def _of_clusters(
    study: Study,
    catalog: Catalog,
    framework: FrameworkChoice,
    workload: tuple[WorkloadChoice, Workload, int | None],
) -> Iterator[Expanded]:
    """One framework and workload on every cluster that the study asks for."""
    choice, trained, batch_global = workload
    for cluster in _clusters(study, catalog.site, choice.model):
        refusal = None
        if batch_global is not None:
            share, rest = divmod(batch_global, cluster.workers)
            if rest or share == 0:
                refusal = f"batch_global {batch_global} cannot be divided equally among {cluster.workers} workers"
            choice = _with_batch(choice, max(share, 1))
        trial = Trial(
            workload=choice,
            framework=framework,
            cluster=cluster,
            measure=_measure(study, choice.model),
            limits=_limits(study),
        )
        known = catalog.capabilities[framework.name]
        missing = _missing_cores(trial, catalog.site)
        refusal = refusal or cannot_host(trial, catalog.site) or cannot_train(trial, trained, known)
        yield Expanded(trial=trial, refusal=refusal, missing_cores=missing)


def cannot_host(trial: Trial, site: SiteLimits) -> str | None:
    """Why a site cannot run this trial, whatever it trains, in words, or None."""
    return _missing_cores(trial, site) or _site_refusal(trial, site)


def cannot_train(trial: Trial, trained: Workload, known: Capabilities) -> str | None:
    """Why a framework cannot run this trial, wherever that is, in words, or None."""
    return (
        known.refusal(trial, trained.layer_kinds, trained.kind)
        or (known.refuses_graph(trial, trained) if isinstance(trained, Graph) else None)
        or (known.refuses_collective(trial, trained) if isinstance(trained, Collective) else None)
    )


def _product(axes: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _frameworks(study: Study, catalog: Catalog) -> Iterator[FrameworkChoice]:
    for name, wanted in itertools.product(study.axes["framework.name"], study.axes["framework.strategy"]):
        known = catalog.capabilities[name]
        strategy = known.resolve_strategy(wanted, f"{study.source}: framework.strategy")
        environment, lock = catalog.environments[name]
        asked = study.knobs.get(name, {})
        more = f"what they do: paceline doctor --framework {name}"
        for knobs in _product(_knob_axes(asked, known.knobs, f"{study.source}: framework.{name}", more)):
            yield FrameworkChoice(
                name=name,
                strategy=strategy,
                strategy_class=known.class_of(strategy, knobs),
                knobs=knobs,
                environment=environment,
                lock=lock,
                simulated=known.simulated(knobs),
                one_process=known.strategies[strategy].one_process,
            )


def default_choice(catalog: Catalog, name: str, **knobs: Any) -> FrameworkChoice:
    """A framework with its own data parallelism and its default knobs, but for those given."""
    known = catalog.capabilities[name]
    environment, lock = catalog.environments[name]
    chosen = {knob: description.default for knob, description in known.knobs.items()} | knobs
    return FrameworkChoice(
        name=name,
        strategy=known.data_parallel,
        strategy_class=known.class_of(known.data_parallel, chosen),
        knobs=chosen,
        environment=environment,
        lock=lock,
        one_process=known.strategies[known.data_parallel].one_process,
    )


def _knob_axes(
    asked: Mapping[str, tuple[Any, ...]], known: Mapping[str, Knob], where: str, more: str
) -> dict[str, tuple[Any, ...]]:
    for knob in asked:
        if knob not in known:
            raise SpecError(f"{where}: unknown knob '{knob}'", hint=f"{did_you_mean(knob, known)}   {more}")
    axes = {}
    for knob, description in known.items():
        values = []
        for value in asked.get(knob, (None,)):
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
                study.values(batch_key, model),
                study.axes["workload.input"],
                study.axes["workload.loader_workers"],
                study.axes["measure.seed"],
            ):
                # Loader workers mean nothing to resident data: one trial, not several that are the same.
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


def named_workloads(study: Study) -> tuple[str, Mapping[str, Mapping[str, tuple[Any, ...]]]]:
    """The key that names what is trained, and for each of its values the options to multiply out."""
    scripts = study.axes["workload.script"]
    if scripts == (None,):
        return "model", {model: study.model_options.get(model, {}) for model in study.axes["workload.model"]}
    # Only what the study sets: records made before a key was there keep their ids.
    given = {key: study.axes[f"workload.{key}"] for key in SCRIPT_OPTIONS}
    options = {key: values for key, values in given.items() if values != (SECTIONS["workload"][key].default,)}
    return "script", dict.fromkeys(scripts, options)


def _with_batch(choice: WorkloadChoice, batch: int) -> WorkloadChoice:
    return WorkloadChoice(
        model=choice.model,
        options=choice.options,
        graph=choice.graph,
        batch_per_worker=batch,
        scaling=choice.scaling,
        input=choice.input,
        loader_workers=choice.loader_workers,
        seed=choice.seed,
    )


def _clusters(study: Study, site: SiteLimits, model: str) -> Iterator[ClusterChoice]:
    keys = ("hosts", "workers_per_host", "threads_per_worker", "device", "network")
    name = study.one("cluster.site")
    options = _knob_axes(
        study.site_options.get(name, {}), site.knobs, f"{study.source}: cluster.{name}", documented("reference/study")
    )
    for values in itertools.product(*(study.values(f"cluster.{key}", model) for key in keys)):
        asked = dict(zip(keys, values, strict=True))
        # A host that is alone has no link: one trial, not several that are the same. Where no link can be set at all,
        # that is refused further on.
        asked["network"] = asked["network"] if asked["hosts"] > 1 or not site.networks else None
        for chosen in _product(options):
            yield ClusterChoice(site=name, oversubscribe=study.one("cluster.oversubscribe"), options=chosen, **asked)


def _measure(study: Study, model: str) -> MeasureChoice:
    return MeasureChoice(
        warmup_steps=study.one("measure.warmup_steps", model),
        steps=study.one("measure.steps", model),
        layers=study.one("measure.layers"),
    )


def _limits(study: Study) -> Limits:
    return Limits(time_s=study.one("measure.time_limit"), memory_bytes=study.one("measure.memory_limit"))


def _refuse_strangers(study: Study, catalog: Catalog) -> None:
    """Tables for frameworks or models that the study does not use are slips of the pen, not wishes."""
    for kind, tables, used in (
        ("framework", study.knobs, study.axes["framework.name"]),
        ("workload", study.model_options, [name for name in study.axes["workload.model"] if name]),
        ("cluster", study.site_options, study.axes["cluster.site"]),
    ):
        for name in tables:
            if name not in used:
                raise SpecError(f"{study.source}: {kind}.{name}: not part of this study", hint=did_you_mean(name, used))
    missing = [name for name in study.axes["framework.name"] if name not in catalog.capabilities]
    assert not missing, f"the caller gathered no capabilities for {missing}"


def _missing_cores(trial: Trial, site: SiteLimits) -> str | None:
    cluster = trial.cluster
    wanted = cluster.workers_per_host * cluster.threads_per_worker
    if wanted <= site.cores_per_host or cluster.oversubscribe or trial.framework.simulated:
        return None
    return (
        f"{cluster.workers_per_host} workers × {cluster.threads_per_worker} threads "
        f"want {wanted} cores a host, and there are {site.cores_per_host}"
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
        return f"site {cluster.site} has {site.devices.get(cluster.device, 0)} {cluster.device} device(s) a host"
    return site.refuses(cluster)
