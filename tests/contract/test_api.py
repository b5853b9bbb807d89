"""Point 10: the Python API, in fresh interpreters, whatever was imported before."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import paceline
from street import command_environment, study_of, to_toml


def test_public_names_are_these_and_all_exist() -> None:
    assert paceline.__all__ == [
        "Records",
        "Study",
        "__version__",
        "fit",
        "load_study",
        "predict",
        "records",
        "run_study",
    ]
    assert all(getattr(paceline, name) is not None for name in paceline.__all__)


def test_no_public_name_is_a_stage() -> None:
    """Importing a stage binds its name in the package, over whatever else was there."""
    stages = {folder.name for folder in Path(paceline.__file__).parent.iterdir() if (folder / "__init__.py").exists()}

    assert not stages & set(paceline.__all__)
    assert not callable(importlib.import_module("paceline.run"))


@pytest.mark.parametrize(
    "before",
    [
        "import paceline; run_study, records, load_study = paceline.run_study, paceline.records, paceline.load_study",
        "from paceline import load_study, records, run_study",
        "import paceline.run, paceline.record; from paceline import load_study, records, run_study",
        "from paceline.api import load_study, records, run_study",
    ],
)
def test_study_runs_and_becomes_a_table_however_the_names_were_imported(tmp_path: Path, before: str) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of()), encoding="utf-8")
    program = f"""
{before}
first = run_study(load_study("s.toml"))
again = run_study("s.toml")
assert [r.run_id for r in first] == [r.run_id for r in again]
frame = records().to_pandas()
print(len(frame), round(frame.step_s.mean(), 6), sorted(set(frame.outcome)))
print(len(records("s.toml").samples_to_pandas()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == ["2 0.05 ['ok']", "24"], done.stderr


def test_a_model_is_fitted_and_asked(tmp_path: Path) -> None:
    study = study_of(
        workload={"batch_per_worker": [4, 16]}, cluster={"workers_per_host": [1, 2], "oversubscribe": True}
    )
    (tmp_path / "s.toml").write_text(to_toml(study), encoding="utf-8")
    program = """
from paceline import fit, predict, run_study
run_study("s.toml")
(model,) = fit("s.toml")
said = predict(model, workers=8, batch=8, what_if="compute=x2")
print(said.step.low <= said.step.value <= said.step.high, said.extrapolated_by, said.bottleneck)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == ["True 4.0 compute"], done.stderr
