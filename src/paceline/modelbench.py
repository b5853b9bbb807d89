"""The model joined with the rest: records of a store, what frameworks can do, and calibrations kept beside them.

Holds no logic of the model; the command line and the Python API sit on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from paceline.compare import Comparison
from paceline.compare import families as scaled
from paceline.errors import PacelineError
from paceline.frameworks import load_framework
from paceline.model.equations.conditions import REPLICATED
from paceline.model.equations.ready import Ready, ready_of
from paceline.model.fitting.calibration import Calibration, write_calibrations
from paceline.model.fitting.design import next_run
from paceline.model.fitting.fit import evidence_of, family_of, fit
from paceline.model.fitting.kept import calibrations_path
from paceline.model.fitting.observe import Manner, collectives, dilation_of, trainings
from paceline.model.fitting.problem import Evidence
from paceline.model.forecast.predict import Prediction, conditions_for, predict
from paceline.model.foreign.imported import read_imports, with_imports
from paceline.model.validation.split import read_split, validate_family
from paceline.model.validation.validate import Validation
from paceline.plan import Proposal, Trial
from paceline.record import Record
from paceline.record.archive import read_archive
from paceline.record.record import MEASUREMENT
from paceline.run.conformance import REFERENCE
from paceline.spec import Study, read_study
from paceline.workbench import Workbench, last_attempts, open_store
from paceline.workloads import MODELS as ZOO
from paceline.workloads import Graph, load_workload

OPERATIONS = ("all_reduce", "push_pull")
"""By which gradients are exchanged."""
DOUBLINGS_BEYOND = 3
"""Of the most workers that were run: how far a report looks ahead. Intervals beyond say little."""
LARGEST, LEAST_LARGEST = 64, 1
"""MiB of a message: where bandwidth is all; less on links that would take longer than LONGEST_S for it."""
LONGEST_S = 0.5


def manner_of(trial: Trial) -> Manner:
    """How a trial exchanges and is fed, by the framework's own word."""
    known = load_framework(trial.framework.name).capabilities
    strategy = known.strategies[trial.framework.strategy]
    every = trial.framework.knobs[strategy.period_knob] if strategy.period_knob else 1
    unknown = f"how strategy {trial.framework.strategy} shares a step is not modelled: it is taken as data parallel"
    return Manner(
        exchange=strategy.exchange,
        servers_per_host=strategy.servers_per_host,
        tensor_by_tensor=strategy.tensor_by_tensor,
        prefetch=known.prefetches(trial),
        sharing=strategy.sharing or REPLICATED,
        unknown="" if strategy.sharing else unknown,
        every=int(every),
    )


def evidence(bench: Workbench, records: Sequence[Record] | None = None) -> list[Evidence]:
    """What is recorded of a study's trials, and of collectives of the same frameworks, family by family."""
    found = bench.records(run_for=bench.study.name) if records is None else list(records)
    probes, profiles = companion_records(bench)
    graphs = {record.trial.workload.graph: _graph(bench, record.trial) for record in found}

    @cache
    def ready(graph: str) -> Ready | None:
        known = graphs[graph]
        mine = [record for record in profiles if record.trial.workload.graph == graph]
        return ready_of(mine, known) if known is not None else None

    def ready_of_trial(trial: Trial) -> Ready | None:
        return ready(trial.workload.graph)

    machines = {record.trial.id: str(record.machine.get("id", "unknown")) for record in found}
    return evidence_of(
        trainings(found, manner_of, ready_of_trial),
        collectives(probes, manner_of),
        lambda trial: machines[trial.id],
        manner_of,
        ready_of_trial,
    )


def companion_records(bench: Workbench) -> tuple[list[Record], list[Record]]:
    """(collectives by themselves, layers one by one) of whatever study, in the same store."""
    if (store := bench.existing_store()) is None:
        return [], []
    with store:
        trials = store.trials()
        wanted = [
            [key for key, trial in trials.items() if trial.workload.collective is not None],
            [key for key, trial in trials.items() if trial.measure.layers],
        ]
        probes, profiles = (last_attempts(store.records(trial_ids=ids)) if ids else [] for ids in wanted)
    return probes, profiles


def _graph(bench: Workbench, trial: Trial) -> Graph | None:
    workload = bench.workload(trial.workload.model, trial.workload.options)
    return workload if isinstance(workload, Graph) else None


def families(bench: Workbench, records: Sequence[Record] | None = None) -> list[tuple[Evidence, Calibration]]:
    """Every family of a study that was measured, with its model, from what is recorded and imported, or from these
    records.
    """
    imports = read_imports(bench.folder, bench.study.name)
    known = [with_imports(one, imports) for one in evidence(bench, records) if one.trainings]
    return [(one, fit(one)) for one in known]


def fitted(bench: Workbench, records: Sequence[Record] | None = None) -> list[Calibration]:
    """The models of these families."""
    return [calibration for _, calibration in families(bench, records)]


def calibrate(bench: Workbench) -> list[Calibration]:
    """Fit every family of a study that was measured, and keep the result.

    Raises:
        PacelineError: nothing is recorded.
    """
    found = fitted(bench)
    if not found:
        raise PacelineError(
            f"{bench.study.source}: nothing is recorded yet in {bench.folder}",
            hint="measure it: paceline calibrate STUDY   without --no-run",
        )
    write_calibrations(found, calibrations_path(bench.folder, bench.study.name))
    return found


def curves(
    comparison: Comparison, trials: Sequence[Trial], calibrations: Sequence[Calibration]
) -> dict[str, list[Prediction]]:
    """Key of each family that was calibrated → what its model says of the sizes that were run, and of some that were
    not.
    """
    known = {trial.id: trial for trial in trials}
    found: dict[str, list[Prediction]] = {}
    for one in scaled(comparison):
        mine = [known[row.trial] for row in one.rows if row.trial in known]
        if not mine:
            continue
        family = family_of(mine[0], str(one.base.machine))
        calibration = next((one for one in calibrations if one.family == family), None)
        # Rows of a dilated site are in its time, the model is in true time: on one axis they would only mislead.
        if calibration is not None and dilation_of(mine[0]) == 1:
            found[one.key] = _curve(calibration, mine)
    return found


def _curve(calibration: Calibration, trials: Sequence[Trial]) -> list[Prediction]:
    last = max(trials, key=lambda trial: trial.workers)
    run = sorted({trial.workers for trial in trials})
    counts = sorted({*run, *(last.workers * 2**power for power in range(1, DOUBLINGS_BEYOND + 1))})
    network, strong = last.cluster.network, last.workload.scaling == "strong"
    return [
        predict(
            calibration,
            conditions_for(
                calibration,
                workers=count,
                workers_per_host=last.cluster.workers_per_host if last.cluster.hosts > 1 else count,
                batch=last.batch_global / count if strong else float(last.workload.batch_per_worker),
                bandwidth=network.bandwidth_bytes_per_s if network else None,
                latency_s=network.latency_s if network else None,
            ),
        )
        for count in counts
        if not strong or last.batch_global % count == 0
    ]


def message_sizes(study: Study) -> str:
    """From where latency is all to where bandwidth is, on the slowest link of a study."""
    rates = [one.bandwidth_bytes_per_s for one in study.axes["cluster.network"] if one and one.bandwidth_bytes_per_s]
    largest = LARGEST
    while rates and largest > LEAST_LARGEST and largest * 2**20 / min(rates) > LONGEST_S:
        largest //= 2
    return f"4KiB..{largest}MiB"


def companions(bench: Workbench) -> list[Study]:
    """What a calibration needs besides the study itself: collectives on the same clusters, and layers one by one."""
    study = bench.study
    if study.of_collectives or study.axes["workload.script"] != (None,):
        return []
    found = []
    known = {name: framework.capabilities for name, framework in bench.frameworks.items() if name != REFERENCE}
    exchanging = tuple(name for name in known if known[name].collectives)
    if exchanging and any(trial.workers > 1 for trial in bench.trials()):
        operations = tuple(one for one in OPERATIONS if any(one in known[name].collectives for name in exchanging))
        plain = read_study(
            {
                "study": {"name": f"{study.name}-links", "question": "How long do collectives take here?"},
                "workload": {
                    "model": "collective",
                    "collective": {"operation": list(operations), "sizes": message_sizes(study)},
                },
                "framework": {"name": list(exchanging)},
            },
            source=study.source,
        )
        shared = {key: values for key, values in study.axes.items() if key.startswith("cluster.")}
        found.append(
            replace(
                plain,
                axes={**plain.axes, **shared},
                knobs=study.knobs,
                site_options=study.site_options,
                interpreters=study.interpreters,
                environments=study.environments,
                repeats=study.repeats,
            )
        )
    timed = tuple(name for name in known if known[name].layer_times)
    if timed:
        axes = {
            **study.axes,
            "framework.name": timed,
            "measure.layers": (True,),
            "cluster.hosts": (1,),
            "cluster.workers_per_host": (1,),
            "cluster.network": (None,),
        }
        found.append(replace(study, name=f"{study.name}-layers", axes=axes))
    return found


def proposer(bench: Workbench) -> Any:
    """What to run next for the calibration to know more; None when nothing would tell more."""

    def propose(records: Sequence[Record]) -> Proposal | None:
        here = [one for one in evidence(bench, records) if one.trainings]
        wanted = next_run(here, bench.study, bench.site.limits().cores_per_host)
        if wanted is None:
            return None
        axes, reason = wanted
        study: Study = replace(bench.study, axes={**bench.study.axes, **axes}, of_models={})
        return Proposal(study=study, reason=reason)

    return propose


def split_validation(path: Path, store: str | None = None) -> Validation:
    """Records of our own: fitted on those that a split names, judged on the rest. The split is a file, fixed before.

    Raises:
        PacelineError: the file, or what it names, is not there or cannot be read.
    """
    split = read_split(path)
    families = evidence_of_records(records_in(Path(store) if store else path.parent / split.records))
    results, without = [], []
    for one in families:
        mine = [training for training in one.trainings if split.concerns(training)]
        fits = [training for training in mine if split.fits(training)]
        asked = [training for training in mine if not split.fits(training)]
        if not mine:
            continue
        if not asked or not fits:
            without.append(f"{one.family.label}: {'nothing to predict' if not asked else 'nothing to fit on'}")
            continue
        results.append(validate_family(one, fits, asked))
    return Validation(groups=tuple(results), without_rows=tuple(without))


def records_in(place: Path) -> list[Record]:
    """Measurements of a store or of an archive.

    Raises:
        PacelineError: it is neither.
    """
    if place.is_file():
        found = read_archive(place)
    else:
        with open_store(place) as opened:
            found = opened.records()
    return [record for record in last_attempts(found) if record.kind == MEASUREMENT]


def evidence_of_records(found: Sequence[Record]) -> list[Evidence]:
    """Families of records whose study is not at hand."""

    @cache
    def ready(graph: str) -> Ready | None:
        mine = [record for record in found if record.trial.workload.graph == graph]
        known = graph_by_name(mine[0].trial)
        return ready_of(mine, known) if known is not None else None

    machines = {record.trial.id: str(record.machine.get("id", "unknown")) for record in found}
    return evidence_of(
        trainings(found, manner_of, lambda trial: ready(trial.workload.graph)),
        collectives(found, manner_of),
        lambda trial: machines[trial.id],
        manner_of,
        lambda trial: ready(trial.workload.graph),
    )


def graph_by_name(trial: Trial) -> Graph | None:
    """Of a model of ours, if it is still the graph that was trained."""
    if trial.workload.model not in ZOO:
        return None
    graph = load_workload(trial.workload.model, dict(trial.workload.options))
    return graph if graph.hash == trial.workload.graph else None
