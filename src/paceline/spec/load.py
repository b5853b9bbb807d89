"""Read a study from TOML. Unknown keys are errors with the nearest known one; values are checked key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from paceline.errors import SpecError, did_you_mean, documented
from paceline.spec.catalog import REQUIRED, SECTIONS, Key
from paceline.spec.study import Repeats, Study, StudyValue, of_type
from paceline.spec.toml_file import read_toml, tomllib
from paceline.workloads import COLLECTIVE, PLAIN, TORCHRUN

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
Axes = dict[str, tuple[StudyValue, ...]]
RawTable = dict[str, tuple[object, ...]]
"""Key of [section.NAME] → values as the file has them."""

_SUBTABLES = ("framework", "workload", "cluster")
"""Sections that may hold further tables, named after a framework, a model or a site."""

OF_A_MODEL = (
    "workload.batch_per_worker",
    "workload.batch_global",
    "measure.warmup_steps",
    "measure.steps",
    "measure.repeats",
    "cluster.network",
)
"""Keys that [workload.MODEL] may set for one model, because models differ a thousandfold in size."""


def load_study(path: str | Path) -> Study:
    """Read and check a study file.

    Raises:
        SpecError: no such file, not TOML, an unknown key, or a value that does not fit.
    """
    path = Path(path)
    data = read_toml(
        path,
        kind="study",
        where="start one: paceline init FILE   or take an example: paceline init --example quickstart FILE",
        form=documented("reference/study"),
    )
    return read_study(data, source=str(path))


def parse_study(text: str, *, source: str) -> Study:
    """Read and check the text of a study; files that it names are relative to the folder of `source`."""
    return read_study(tomllib.loads(text), source=source)


def read_study(data: Mapping[str, object], *, source: str = "study") -> Study:
    """Check parsed TOML (or a dict of the same shape) and fill in the defaults."""
    _refuse_unknown(data, SECTIONS, source, "")
    data = _with_framework_of_script(data)
    axes: Axes = {}
    subtables: dict[str, dict[str, RawTable]] = {section: {} for section in _SUBTABLES}
    for section, keys in SECTIONS.items():
        table = data.get(section, {})
        if not isinstance(table, Mapping):
            raise SpecError(f"{source}: {section}: should be a table", hint=f"write [{section}] on a line of its own")
        plain = dict(table)
        if section in _SUBTABLES:
            for owner in [k for k, v in table.items() if isinstance(v, Mapping) and k not in keys]:
                subtables[section][owner] = {k: _values(v) for k, v in plain.pop(owner).items()}
        _refuse_unknown(plain, keys, source, f"{section}.")
        for key_name, key in keys.items():
            axes[f"{section}.{key_name}"] = _axis(key, plain.get(key_name), f"{source}: {section}.{key_name}")
    name, question = of_type((*axes["study.name"], *axes["study.question"]), str)
    _check_name(name, source)
    _check_workload(axes, source)
    _check_batch(axes, source)
    of_models = {model: _of_model(model, table, axes, source) for model, table in subtables["workload"].items()}
    interpreters = _of_frameworks("interpreter", "one Python", axes, subtables["framework"], source)
    environments = _of_frameworks("environment", "one environment", axes, subtables["framework"], source)
    for framework in interpreters.keys() & environments.keys():
        raise SpecError(
            f"{source}: framework.{framework}: interpreter and environment exclude each other",
            hint="keep the environment (pinned), or the interpreter (yours, as it is)",
        )
    return Study(
        interpreters=interpreters,
        environments=environments,
        site_options=subtables["cluster"],
        name=name,
        question=question,
        source=source,
        axes=axes,
        knobs=subtables["framework"],
        model_options=subtables["workload"],
        of_models=of_models,
        repeats=of_type(axes["measure.repeats"], Repeats)[0],
    )


def _values(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _with_framework_of_script(data: Mapping[str, object]) -> Mapping[str, object]:
    """Fill in the framework "script" for a script, so that a study need not name it."""
    workload, framework = data.get("workload"), data.get("framework", {})
    if not isinstance(workload, Mapping) or "script" not in workload or not isinstance(framework, Mapping):
        return data
    return {**data, "framework": {"name": "script", **framework}}


def _of_frameworks(
    key: str,
    thing: str,
    axes: Axes,
    frameworks: dict[str, RawTable],
    source: str,
) -> dict[str, str]:
    """Framework → its value of a key that is in [framework.NAME] or, if there is only one framework, in [framework]."""
    shared = axes[f"framework.{key}"]
    names = of_type(axes["framework.name"], str)
    if shared != (None,) and len(names) > 1:
        raise SpecError(
            f"{source}: framework.{key}: {thing} cannot serve {len(names)} frameworks",
            hint=f"write it under each: [framework.{names[0]}] {key} = ...",
        )
    chosen = {} if shared == (None,) else {names[0]: of_type(shared, str)[0]}
    for name, table in frameworks.items():
        values = table.pop(key, (None,))
        if values != (None,):
            where = f"{source}: framework.{name}.{key}"
            chosen[name] = of_type(_axis(SECTIONS["framework"][key], list(values), where), str)[0]
    return chosen


def _of_model(model: str, table: RawTable, axes: Axes, source: str) -> Axes:
    """Keys of the study that [workload.MODEL] sets for this model alone; they are removed from its options."""
    chosen: Axes = {}
    for full in OF_A_MODEL:
        section, name = full.split(".")
        if name not in table:
            continue
        where = f"{source}: workload.{model}.{name}"
        if section == "workload" and (axes[full] == (None,) or model == COLLECTIVE):
            raise SpecError(f"{where}: the study has no {name}", hint=f"a model's own {name} replaces the study's")
        chosen[full] = _axis(SECTIONS[section][name], list(table.pop(name)), where)
    if any(repeats.until is not None for repeats in of_type(chosen.get("measure.repeats", ()), Repeats)):
        raise SpecError(
            f"{source}: workload.{model}.repeats: only a study repeats until it knows enough",
            hint="give a number here, or move min, max and until to [measure]",
        )
    return chosen


def _axis(key: Key, given: object, where: str) -> tuple[StudyValue, ...]:
    if given is None:
        if key.default is REQUIRED:
            raise SpecError(f"{where}: is missing", hint=f"add it: {key.doc}")
        return (key.default,)
    values = _values(given)
    if not values:
        raise SpecError(f"{where}: is an empty list", hint="give at least one value, or leave the key out")
    if len(values) > 1 and not key.axis:
        raise SpecError(f"{where}: cannot be an axis", hint="give one value; write one study for each other")
    parsed = []
    for value in values:
        try:
            parsed.append(key.parse(value))
        except ValueError as error:
            raise SpecError(f"{where}: {error}", hint=key.doc) from None
    return tuple(dict.fromkeys(parsed))


def _refuse_unknown(table: Mapping[str, object], allowed: Mapping[str, object], source: str, prefix: str) -> None:
    for name in table:
        if name not in allowed:
            raise SpecError(
                f"{source}: unknown key '{prefix}{name}'",
                hint=f"{did_you_mean(name, allowed)}   all keys: {documented('reference/study')}",
            )


def _check_name(name: str, source: str) -> None:
    if not _NAME.match(name):
        raise SpecError(f"{source}: study.name: {name!r} does not fit", hint="use letters, digits, dash and underscore")


def _check_batch(axes: Axes, source: str) -> None:
    weak, strong = (axes[f"workload.batch_{kind}"] != (None,) for kind in ("per_worker", "global"))
    if COLLECTIVE in axes["workload.model"]:
        _check_collective(axes, source, batch=weak or strong)
        # A collective trains no samples, but every trial has a batch. This value has no effect.
        axes["workload.batch_per_worker"] = (1,)
        return
    if weak and strong:
        raise SpecError(
            f"{source}: workload: batch_per_worker and batch_global exclude each other",
            hint="keep batch_per_worker for weak scaling, or batch_global for strong scaling",
        )
    if not weak and not strong:
        raise SpecError(
            f"{source}: workload.batch_per_worker: is missing",
            hint="give batch_per_worker (weak scaling) or batch_global (strong scaling)",
        )


def _check_collective(axes: Axes, source: str, *, batch: bool) -> None:
    if len(axes["workload.model"]) > 1:
        raise SpecError(
            f"{source}: workload.model: {COLLECTIVE} cannot be compared with models",
            hint="write one study for the collectives and one for the models",
        )
    if batch:
        raise SpecError(
            f"{source}: workload: a collective has no batch", hint="its sizes stand in [workload.collective] sizes"
        )


def _check_workload(axes: Axes, source: str) -> None:
    model, script = (axes[f"workload.{key}"] != (None,) for key in ("model", "script"))
    if model and script:
        raise SpecError(
            f"{source}: workload: model and script exclude each other",
            hint="a script brings its own model: write one study for each",
        )
    if not model and not script:
        raise SpecError(
            f"{source}: workload.model: is missing",
            hint="add it: model (an id, or a file that builds a graph) or script (a training program of yours)",
        )
    for key in ("arguments", "files", "launch", "working_directory"):
        if axes[f"workload.{key}"] != (SECTIONS["workload"][key].default,) and not script:
            raise SpecError(
                f"{source}: workload.{key}: belongs to a script, and there is none",
                hint="options of a model stand in [workload.MODEL]",
            )
    if axes["workload.launch"] == (PLAIN,):
        for key in ("hosts", "workers_per_host"):
            if max(of_type(axes[f"cluster.{key}"], int)) > 1:
                raise SpecError(
                    f"{source}: workload.launch: '{PLAIN}' starts one worker, and cluster.{key} asks for more",
                    hint=f"write {key} = 1, or launch = '{TORCHRUN}': the script learns its rank from variables",
                )
