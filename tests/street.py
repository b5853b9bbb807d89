"""The whole street for tests: write a study, run it in a temporary store, through the API or the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.record import Record
from paceline.spec import Study, read_study
from paceline.workbench import Workbench

LAW = {"time": "law"}


def study_of(
    knobs: Mapping[str, Any] | None = None,
    *,
    name: str = "street",
    cluster: Mapping[str, Any] | None = None,
    measure: Mapping[str, Any] | None = None,
    workload: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A study of the null framework in law time, as the dict that its TOML would give."""
    return {
        "study": {"name": name, "question": "Does it hold?"},
        "workload": {"model": "lenet5", "batch_per_worker": 8, **(workload or {})},
        "framework": {"name": "null", "null": {**LAW, **(knobs or {})}},
        "cluster": {"workers_per_host": 1, **(cluster or {})},
        "measure": {"warmup_steps": 2, "steps": 10, "repeats": 2, **(measure or {})},
    }


def run_study(data: Mapping[str, Any] | Study, folder: Path) -> list[Record]:
    """Run a study through the workbench; all its records."""
    bench = Workbench(data if isinstance(data, Study) else read_study(data), folder)
    bench.run()
    return bench.snapshot().records


def to_toml(data: Mapping[str, Any]) -> str:
    """A study's dict as TOML; knows what studies are made of and no more."""
    lines = []
    for section, table in data.items():
        plain = {
            key: value for key, value in table.items() if not isinstance(value, dict) or key in {"network", "repeats"}
        }
        lines.append(f"[{section}]")
        lines += [f"{key} = {_value(value)}" for key, value in plain.items()]
        for key in table.keys() - plain.keys():
            lines.append(f"[{section}.{key}]")
            lines += [f"{name} = {_value(value)}" for name, value in table[key].items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value)


def command_environment(folder: Path, **extra: str) -> dict[str, str]:
    """The environment of a command under test: its own store, cache and machine lock."""
    return {
        **os.environ,
        "PACELINE_STORE": str(folder / "store"),
        "PACELINE_CACHE": str(folder / "cache"),
        "PACELINE_LOCK": str(folder / "lock"),
        **extra,
    }


def paceline(folder: Path, *args: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """The real command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "paceline", *args],
        cwd=folder,
        env=command_environment(folder, **extra),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
