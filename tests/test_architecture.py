"""The import rules of ARCHITECTURE.md, held: who may import whom, and that the host imports no framework."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
HOST = SRC / "paceline"
WORKER = SRC / "paceline_worker"

LEAVES = {"errors", "units", "stats", "folders", "_version"}
ACTORS = {"datasets", "environments", "frameworks", "sites"}
EVERYTHING = {"*"}
MAY_IMPORT: dict[str, set[str]] = {
    **{leaf: set() for leaf in LEAVES},
    "plugins": {"errors"},
    "workloads": LEAVES,
    "spec": LEAVES | {"workloads"},
    "plan": LEAVES | {"workloads", "spec"},
    "record": LEAVES | {"workloads", "spec", "plan"},
    # Siblings never import each other.
    **{actor: LEAVES | {"plugins", "workloads", "spec", "plan"} for actor in ACTORS},
    "run": LEAVES | ACTORS | {"workloads", "spec", "plan", "record"},
    "compare": LEAVES | {"workloads", "spec", "plan", "record"},
    "model": LEAVES | {"workloads", "spec", "plan", "record"},
    "explain": LEAVES | {"workloads", "spec", "plan", "record", "compare", "model"},
    "recommend": LEAVES | {"workloads", "spec", "plan", "record", "compare", "model", "explain"},
    "report": LEAVES | {"workloads", "spec", "plan", "record", "compare", "model", "explain", "recommend"},
    # The places where the stages are joined.
    **dict.fromkeys(
        ("prepared", "snapshot", "recorded", "workbench", "campaigns", "api", "cli", "__main__", "__init__"), EVERYTHING
    ),
}
DEEP_LEARNING = {
    "torch",
    "tensorflow",
    "keras",
    "jax",
    "mxnet",
    "horovod",
    "cntk",
    "caffe",
    "theano",
    "singa",
    "chainer",
    "paddle",
}
WRITTEN_IN = {"reference": "torch", "mpi": "mpi4py"}
"""Adapters of the worker that are not named after the package they import."""
STANDARD_LIBRARY = set(sys.stdlib_module_names)


def stage_of(path: Path) -> str:
    relative = path.relative_to(HOST)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return modules


def python_files(folder: Path) -> list[Path]:
    files = sorted(folder.rglob("*.py"))
    assert files, f"no Python files under {folder}"
    return files


@pytest.mark.parametrize("path", python_files(HOST), ids=lambda p: str(p.relative_to(HOST)))
def test_stage_imports_only_what_lies_left_of_it(path: Path) -> None:
    stage = stage_of(path)
    allowed = MAY_IMPORT[stage]
    ours = {name.split(".")[1] for name in imports_of(path) if name.startswith("paceline.")}
    strangers = {name for name in ours if (HOST / name).is_dir() or (HOST / f"{name}.py").exists()} - {stage}

    assert allowed == EVERYTHING or strangers <= allowed


@pytest.mark.parametrize("path", python_files(HOST), ids=lambda p: str(p.relative_to(HOST)))
def test_host_imports_neither_worker_nor_framework(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports_of(path)}

    assert not roots & (DEEP_LEARNING | {"paceline_worker"})


def test_every_stage_has_a_rule() -> None:
    stages = {stage_of(path) for path in python_files(HOST)}

    assert stages <= set(MAY_IMPORT)


NUMPY_TOO = {"evidence.py"}
"""Every lock contains NumPy; what only adapters import may use it."""


@pytest.mark.parametrize("path", python_files(WORKER), ids=lambda p: str(p.relative_to(WORKER)))
def test_worker_imports_standard_library_only_outside_its_adapters(path: Path) -> None:
    relative = path.relative_to(WORKER)
    roots = {name.split(".")[0] for name in imports_of(path)} - {"paceline_worker"}
    strangers = roots - STANDARD_LIBRARY
    if relative.parts[0] == "frameworks" and len(relative.parts) > 2:
        framework = relative.parts[1]
        # on_jax of Keras is Keras on JAX: it may use both.
        named_after = {framework, *(word for word in relative.stem.split("_") if word in DEEP_LEARNING)}
        assert strangers <= {WRITTEN_IN.get(word, word) for word in named_after} | {"numpy"}
    elif relative.parts[0] in {"graph", "frameworks"} and len(relative.parts) > 1:
        assert strangers <= {"numpy"}
    elif relative.name in NUMPY_TOO:
        assert strangers == {"numpy"}
    else:
        assert not strangers
    assert "paceline" not in roots


def test_importing_the_host_loads_no_framework_and_no_worker() -> None:
    program = (
        "import sys, paceline.api, paceline.cli; paceline.cli.make_parser();"
        "print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    assert not set(loaded) & (DEEP_LEARNING | {"paceline_worker"})


def test_nothing_is_called_utils() -> None:
    forbidden = {"utils", "util", "common", "helpers", "helper", "core", "manager", "misc"}

    assert not {path.stem for path in [*python_files(HOST), *python_files(WORKER)]} & forbidden


def test_no_public_class_name_is_defined_twice() -> None:
    homes: dict[str, list[str]] = {}
    for path in python_files(HOST):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(f"{path.relative_to(SRC)}:{node.lineno}")

    assert not {name: places for name, places in homes.items() if len(places) > 1}


FOR_PROGRAMS_BESIDE = {"record": {"facts_of"}}
"""Stage → names that only programs beside the package reach: docs/generate_reference.py."""


@pytest.mark.parametrize(
    "stage", ["spec", "plan", "record", "compare", "model", "explain", "recommend", "report", "stats"]
)
def test_no_function_or_class_is_used_by_tests_alone(stage: str) -> None:
    """By name: one that occurs nowhere but where it is defined is reached by no command."""
    used = {
        node.id if isinstance(node, ast.Name) else node.attr
        for path in python_files(HOST)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    defined = {
        node.name
        for path in python_files(HOST / stage)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not any(getattr(decorator, "attr", "") == "register" for decorator in node.decorator_list)
    }

    assert defined - used == FOR_PROGRAMS_BESIDE.get(stage, set())


FOREIGN_DATA_ENTERS = {
    "model/fitting/calibration.py": "a calibration file that an earlier version wrote",
    "plan/trial.py": "a stored trial",
    "plugins.py": "what another package offers as a plug-in",
    "record/archive.py": "an archive that somebody sent",
    "record/query.py": "a stored row",
    "record/record.py": "a stored record",
    "record/store.py": "a row of the database",
    "record/summaries.py": "a stored summary",
    "record/update_to_2.py": "a stored record of version 1",
    "run/events.py": "lines that workers wrote",
    "sites/remote/link.py": "answers of an agent",
    "spec/study.py": "a stored network",
    "spec/toml_file.py": "a user's TOML",
    "workloads/atomic_file.py": "a JSON file",
    "workloads/graph.py": "a graph as JSON, which may be written by hand",
}
"""Module → the data that enters there and has no type yet."""


def test_any_stands_only_where_foreign_data_enters() -> None:
    untyped = {
        str(path.relative_to(HOST))
        for path in python_files(HOST)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.alias) and node.name == "Any"
    }

    assert untyped == set(FOREIGN_DATA_ENTERS)
