"""Read a study from TOML. Unknown keys are errors with the nearest known one; values are checked key by key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.errors import SpecError, did_you_mean, documented
from paceline.spec.catalog import REQUIRED, SECTIONS, Key
from paceline.spec.study import Study
from paceline.spec.toml_file import read_toml, tomllib
from paceline.workloads import COLLECTIVE, PLAIN, TORCHRUN

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
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
"""Keys that a model may have of its own, because models differ a thousandfold in size."""


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
    """A study that is at hand as text; files that it names are looked for beside `source`."""
    return read_study(tomllib.loads(text), source=source)


def read_study(data: Mapping[str, Any], *, source: str = "study") -> Study:
    """Check parsed TOML (or a dict of the same shape) and fill in the defaults."""
    _refuse_unknown(data, SECTIONS, source, "")
    data = _with_framework_of_script(data)
    axes: dict[str, tuple[Any, ...]] = {}
    subtables: dict[str, dict[str, dict[str, tuple[Any, ...]]]] = {section: {} for section in _SUBTABLES}
    for section, keys in SECTIONS.items():
        table = data.get(section, {})
        if not isinstance(table, Mapping):
            raise SpecError(f"{source}: {section}: should be a table", hint=f"write [{section}] on a line of its own")
        plain = dict(table)
        if section in _SUBTABLES:
            for name in [k for k, v in table.items() if isinstance(v, Mapping) and k not in keys]:
                subtables[section][name] = {k: _values(v) for k, v in plain.pop(name).items()}
        _refuse_unknown(plain, keys, source, f"{section}.")
        for name, key in keys.items():
            axes[f"{section}.{name}"] = _axis(key, plain.get(name), f"{source}: {section}.{name}")
    _check_name(axes["study.name"][0], source)
    _check_workload(axes, source)
    _check_batch(axes, source)
    of_models = {name: _own(name, table, axes, source) for name, table in subtables["workload"].items()}
    interpreters = _of_frameworks("interpreter", "one Python", axes, subtables["framework"], source)
    environments = _of_frameworks("environment", "one environment", axes, subtables["framework"], source)
    for name in interpreters.keys() & environments.keys():
        raise SpecError(
            f"{source}: framework.{name}: interpreter and environment exclude each other",
            hint="keep the environment (pinned), or the interpreter (yours, as it is)",
        )
    return Study(
        interpreters=interpreters,
        environments=environments,
        site_options=subtables["cluster"],
        name=axes["study.name"][0],
        question=axes["study.question"][0],
        source=source,
        axes=axes,
        knobs=subtables["framework"],
        model_options=subtables["workload"],
        of_models=of_models,
        repeats=axes["measure.repeats"][0],
    )


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _with_framework_of_script(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A script has one framework, its own, which need not be said."""
    workload, framework = data.get("workload"), data.get("framework", {})
    if not isinstance(workload, Mapping) or "script" not in workload or not isinstance(framework, Mapping):
        return data
    return {**data, "framework": {"name": "script", **framework}}


def _of_frameworks(
    key: str,
    thing: str,
    axes: dict[str, tuple[Any, ...]],
    frameworks: dict[str, dict[str, tuple[Any, ...]]],
    source: str,
) -> dict[str, str]:
    """Framework → its value of a key that stands in [framework.NAME] or, where there is only one, in [framework]."""
    given = axes[f"framework.{key}"][0]
    names = axes["framework.name"]
    if given is not None and len(names) > 1:
        raise SpecError(
            f"{source}: framework.{key}: {thing} cannot serve {len(names)} frameworks",
            hint=f"write it under each: [framework.{names[0]}] {key} = ...",
        )
    found = {} if given is None else {names[0]: given}
    for name, table in frameworks.items():
        own = table.pop(key, (None,))
        if own != (None,):
            found[name] = _axis(SECTIONS["framework"][key], list(own), f"{source}: framework.{name}.{key}")[0]
    return found


def _own(
    model: str, table: dict[str, tuple[Any, ...]], axes: dict[str, tuple[Any, ...]], source: str
) -> dict[str, tuple[Any, ...]]:
    """Keys of the study that [workload.MODEL] sets for this model alone; taken out of its options."""
    found = {}
    for full in OF_A_MODEL:
        section, name = full.split(".")
        if name not in table:
            continue
        where = f"{source}: workload.{model}.{name}"
        if section == "workload" and (axes[full] == (None,) or model == COLLECTIVE):
            raise SpecError(f"{where}: the study has no {name}", hint=f"a model's own {name} replaces the study's")
        found[full] = _axis(SECTIONS[section][name], list(table.pop(name)), where)
    if (repeats := found.get("measure.repeats")) and repeats[0].until is not None:
        raise SpecError(
            f"{source}: workload.{model}.repeats: only a study repeats until it knows enough",
            hint="give a number here, or move min, max and until to [measure]",
        )
    return found


def _axis(key: Key, value: Any, where: str) -> tuple[Any, ...]:
    if value is None:
        if key.default is REQUIRED:
            raise SpecError(f"{where}: is missing", hint=f"add it: {key.doc}")
        return (key.default,)
    values = _values(value)
    if not values:
        raise SpecError(f"{where}: is an empty list", hint="give at least one value, or leave the key out")
    if len(values) > 1 and not key.axis:
        raise SpecError(f"{where}: cannot be an axis", hint="give one value; write one study for each other")
    parsed = []
    for one in values:
        try:
            parsed.append(key.parse(one))
        except ValueError as error:
            raise SpecError(f"{where}: {error}", hint=key.doc) from None
    return tuple(dict.fromkeys(parsed))


def _refuse_unknown(table: Mapping[str, Any], known: Mapping[str, Any], source: str, prefix: str) -> None:
    for name in table:
        if name not in known:
            raise SpecError(
                f"{source}: unknown key '{prefix}{name}'",
                hint=f"{did_you_mean(name, known)}   all keys: {documented('reference/study')}",
            )


def _check_name(name: str, source: str) -> None:
    if not _NAME.match(name):
        raise SpecError(f"{source}: study.name: {name!r} does not fit", hint="use letters, digits, dash and underscore")


def _check_batch(axes: dict[str, tuple[Any, ...]], source: str) -> None:
    weak, strong = (axes[f"workload.batch_{kind}"] != (None,) for kind in ("per_worker", "global"))
    if COLLECTIVE in axes["workload.model"]:
        _check_collective(axes, source, batch=weak or strong)
        # It trains no samples; a trial has a batch, and this one changes nothing.
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


def _check_collective(axes: dict[str, tuple[Any, ...]], source: str, *, batch: bool) -> None:
    if len(axes["workload.model"]) > 1:
        raise SpecError(
            f"{source}: workload.model: {COLLECTIVE} cannot be compared with models",
            hint="write one study for the collectives and one for the models",
        )
    if batch:
        raise SpecError(
            f"{source}: workload: a collective has no batch", hint="its sizes stand in [workload.collective] sizes"
        )


def _check_workload(axes: dict[str, tuple[Any, ...]], source: str) -> None:
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
            if max(axes[f"cluster.{key}"]) > 1:
                raise SpecError(
                    f"{source}: workload.launch: '{PLAIN}' starts one worker, and cluster.{key} asks for more",
                    hint=f"write {key} = 1, or launch = '{TORCHRUN}': the script learns its rank from variables",
                )
