"""A user's own graph and a user's own script, through the whole street, without any deep-learning framework."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.environments.interpreters import find_interpreter, find_uv
from paceline.errors import SpecError
from paceline.record import OutcomeKind, Record
from paceline.run.inputs import prepare_inputs
from paceline.run.worker_source import worker_folder
from paceline.spec import load_study, read_study
from paceline.workbench import Workbench
from paceline.workloads import PLACEHOLDERS
from schemas import assert_valid
from street import paceline

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

LOOP = """\
import sys
from paceline_worker import mark
for number in range({rounds}):
    with mark.phase("forward"):
        sum(range(2000))
    mark.samples({samples})
    mark.loss(1.0 / (number + 1))
    mark.step()
{end}
"""


def run_script(folder: Path, text: str, **workload: Any) -> Record:
    """One run of a script, with 2 + 10 steps."""
    (folder / "train.py").write_text(text, encoding="utf-8")
    study = {
        "study": {"name": "own"},
        "workload": {"script": "train.py", "batch_per_worker": 8, **workload},
        "measure": {"warmup_steps": 2, "steps": 10, "repeats": 1},
    }
    bench = Workbench(read_study(study, source=str(folder / "study.toml")), folder / "store")
    (record,) = bench.run()
    return record


def script(rounds: int = 100, samples: int = 8, end: str = "") -> str:
    return LOOP.format(rounds=rounds, samples=samples, end=end)


def codes(record: Record) -> set[str]:
    return {doubt.code for doubt in record.doubts}


@pytest.mark.processes
def test_marked_script_gives_a_record_like_any_other_and_is_cut_after_its_steps(tmp_path: Path) -> None:
    record = run_script(tmp_path, script(rounds=10**9))
    assert record.samples is not None
    kinds = record.samples["kind"].to_pylist()

    assert record.ok, record.outcome
    assert (kinds.count("first"), kinds.count("warmup"), kinds.count("measured")) == (1, 1, 10)
    assert min(record.samples["phase.forward"].to_pylist()) > 0
    assert record.trial.label == "script-own.train.b8.1w1t"
    assert record.trial.workload.graph == record.inputs["graph"]
    assert record.trial.workload.graph.startswith("script:")
    assert "batch-samples" not in codes(record)


@pytest.mark.processes
def test_other_number_of_samples_than_the_study_says_is_a_doubt(tmp_path: Path) -> None:
    record = run_script(tmp_path, script(samples=32))
    (doubt,) = [doubt for doubt in record.doubts if doubt.code == "batch-samples"]

    assert "32 samples per step, the study says 8" in doubt.message
    assert "batch_per_worker = 32" in (doubt.hint or "")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (script(rounds=7), "train.py took 7 of 12 steps: lower measure.steps"),
        ("from paceline_worker import mark\n", "train.py marked no step"),
        ("print('hello')\n", "did not import PyTorch: mark its steps"),
        (script(rounds=3, end="sys.exit(3)"), "ended itself with exit code 3"),
        (script(rounds=3, end="raise KeyError('lost')"), "KeyError: 'lost'"),
    ],
)
def test_script_that_does_not_take_its_steps_is_an_outcome_with_the_reason(
    tmp_path: Path, text: str, reason: str
) -> None:
    record = run_script(tmp_path, text)

    assert record.outcome.kind is OutcomeKind.FAILED
    assert reason in (record.outcome.reason or "")


@pytest.mark.processes
def test_script_is_started_as_python_would_start_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("WORD = 'beside'\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("listed", encoding="utf-8")
    checks = """\
import os, sys
import beside
assert __name__ == "__main__"
assert sys.argv[1:] == ["--batch", "8", "--note", "two words"], sys.argv
assert os.path.samefile(sys.argv[0], __file__)
assert beside.WORD == "beside" and open("words.txt").read() == "listed"
assert (os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"]) == ("0", "1", "0")
assert os.environ["MASTER_ADDR"] and int(os.environ["MASTER_PORT"])
open("made.txt", "w").write("gone with the run")
"""
    record = run_script(
        tmp_path, checks + script(), arguments="--batch {batch_per_worker} --note 'two words'", files="*.txt"
    )

    assert record.ok, record.outcome
    assert record.inputs["files"] == ["train.py", "beside.py", "words.txt"]
    assert not (tmp_path / "made.txt").exists()


@pytest.mark.processes
def test_plain_launch_hands_over_no_rank_and_the_working_directory_is_current(tmp_path: Path) -> None:
    (tmp_path / "place" / "code").mkdir(parents=True)
    (tmp_path / "place" / "data.txt").write_text("beside", encoding="utf-8")
    checks = f"""\
import os, sys
told = [name for name in os.environ if name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")]
assert told == [], told
assert os.getcwd() == {str(tmp_path / "place" / "code")!r}, os.getcwd()
assert open("../data.txt").read() == "beside"
assert os.path.dirname(os.path.abspath(__file__)) != os.getcwd()
"""
    record = run_script(tmp_path, checks + script(), launch="plain", working_directory="place/code")

    assert record.ok, record.outcome
    assert record.trial.workload.options == {"launch": "plain", "working_directory": "place/code"}
    assert record.inputs["working_directory"] == str(tmp_path / "place" / "code")
    exported = paceline(tmp_path, "export", "--store", "store", "--format", "json", "--samples")
    assert_valid("export", json.loads(exported.stdout))


@pytest.mark.parametrize("key", ["hosts", "workers_per_host"])
def test_plain_launch_of_several_workers_is_an_error_of_the_study(tmp_path: Path, key: str) -> None:
    data = {
        "study": {"name": "s"},
        "workload": {"script": "train.py", "batch_per_worker": 8, "launch": "plain"},
        "cluster": {key: [1, 2]},
    }
    with pytest.raises(SpecError, match=f"'plain' starts one worker, and cluster.{key} asks for more"):
        read_study(data, source=str(tmp_path / "s.toml"))


@pytest.mark.processes
@pytest.mark.parametrize(
    ("opens", "workload", "line"),
    [
        ("open('words.txt')", {}, 'add files = "words.txt" under [workload]'),
        ("open('words.txt')", {"files": "more.txt"}, 'add files = "more.txt words.txt" under [workload]'),
        ("open(__import__('os').path.join('table', 'a.csv'))", {}, 'add files = "table/a.csv" under [workload]'),
        ("__import__('os').listdir('table')", {}, 'add files = "table/**/*" under [workload]'),
        ("open('../outside.txt')", {}, 'add working_directory = "." under [workload]'),
    ],
)
def test_file_beside_the_script_that_it_does_not_find_is_named_with_the_line_to_add(
    tmp_path: Path, opens: str, workload: dict[str, str], line: str
) -> None:
    place = tmp_path / "own"
    (place / "table").mkdir(parents=True)
    for name in ("words.txt", "more.txt", "table/a.csv", "../outside.txt"):
        (place / name).write_text("here", encoding="utf-8")
    record = run_script(place, f"{opens}\n" + script(), **workload)

    assert record.outcome.kind is OutcomeKind.FAILED
    assert "FileNotFoundError" in (record.outcome.reason or "")
    assert line in (record.outcome.reason or "")


@pytest.mark.processes
def test_file_that_is_nowhere_is_told_without_advice(tmp_path: Path) -> None:
    record = run_script(tmp_path, "open('nowhere.txt')\n" + script())

    assert "No such file or directory: 'nowhere.txt'" in (record.outcome.reason or "")
    assert "add files" not in (record.outcome.reason or "")


@pytest.mark.processes
def test_output_of_a_script_is_kept_and_shown_whether_it_ends_well_or_not(tmp_path: Path) -> None:
    loud = "import sys\nprint('early')\nfor k in range(9000):\n    print('line', k)\n"
    good = run_script(tmp_path, loud + "sys.stderr.write('aside\\n')\n" + script())
    bad = run_script(tmp_path, loud + "raise KeyError('lost')\n")

    for record in (good, bad):
        (kept,) = record.output.to_pylist()
        assert kept["process"] == "worker0"
        assert "line 8999\n" in kept["text"]
        assert "early" not in kept["text"]
        assert kept["text"].startswith("line ")
        assert len(kept["text"].encode()) <= 64 * 2**10
    assert good.ok
    assert "aside\n" in good.output["text"][0].as_py()
    shown = paceline(tmp_path, "export", "--store", "store", "--format", "log", "--run", good.run_id)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(f"==> {good.run_id} worker0 <==\nline ")
    assert shown.stdout.count("==> ") == 1
    none = paceline(tmp_path, "export", "--store", "store", "--format", "log", "--run", "other")
    assert none.returncode == 1
    assert "no run other has kept output" in none.stderr


def test_every_placeholder_is_filled_in_with_the_value_of_the_trial(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    data = {
        "study": {"name": "s"},
        "workload": {
            "script": "train.py",
            "batch_per_worker": 8,
            "arguments": " ".join(f"{{{name}}}" for name in PLACEHOLDERS),
        },
        "cluster": {"workers_per_host": 2, "threads_per_worker": 1, "oversubscribe": True},
        "measure": {"seed": 5},
    }
    bench = Workbench(read_study(data, source=str(tmp_path / "s.toml")), tmp_path / "store")
    (trial,) = bench.prepared.trials
    workload = bench.prepared.catalog.workload(trial.workload.model, trial.workload.options)
    inputs = prepare_inputs(workload, trial, tmp_path / "cache", tmp_path / "run", needs_weights=False)

    assert inputs.facts["arguments"] == ["8", "16", "2", "1", "5"]


def test_changed_script_is_another_trial(tmp_path: Path) -> None:
    def identity(text: str, arguments: str = "", **more: str) -> str:
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        workload = {"script": "train.py", "batch_per_worker": 8, "arguments": arguments, **more}
        study = read_study({"study": {"name": "s"}, "workload": workload}, source=str(tmp_path / "s.toml"))
        (trial,) = Workbench(study, tmp_path / "store").prepared.trials
        return trial.id

    assert identity("a = 1") == identity("a = 1")
    assert len({identity("a = 1"), identity("a = 2"), identity("a = 1", "--fast")}) == 3
    assert identity("a = 1", launch="torchrun") == identity("a = 1")
    assert len({identity("a = 1"), identity("a = 1", launch="plain"), identity("a = 1", working_directory=".")}) == 3


def test_graph_frameworks_refuse_a_script_and_a_script_refuses_a_model(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    for workload, framework in (({"script": "train.py"}, "null"), ({"model": "mlp"}, "script")):
        data = {
            "study": {"name": "s"},
            "workload": {**workload, "batch_per_worker": 8},
            "framework": {"name": framework},
        }
        (skip,) = (
            Workbench(read_study(data, source=str(tmp_path / "s.toml")), tmp_path / "store").snapshot().plan.skipped
        )

        assert "runs a" in skip.reason


@pytest.mark.processes
def test_own_graph_example_runs_and_its_options_are_an_axis(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "own_graph", tmp_path / "own")
    study = (tmp_path / "own" / "study.toml").read_text(encoding="utf-8")
    study = study.replace('"torch"', '"null"').replace("[cluster]", '[framework.null]\ntime = "law"\n\n[cluster]')
    (tmp_path / "own" / "study.toml").write_text(study, encoding="utf-8")
    records = Workbench(load_study(tmp_path / "own" / "study.toml"), tmp_path / "store").run()

    assert len(records) == 12
    assert all(record.ok for record in records)
    assert {record.trial.label for record in records} == {
        "null-allreduce.model.b16.1w1t",
        "null-allreduce.model.b16.2w1t",
    }
    assert len({record.trial.workload.graph for record in records}) == 2


def test_own_graph_example_runs_alone() -> None:
    printed = subprocess.run(
        [sys.executable, "model.py"],
        cwd=EXAMPLES / "own_graph",
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ).stdout

    assert "global_avg_pool" in printed


def test_error_in_a_graph_file_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def graph():\n    return 1 / 0\n", encoding="utf-8")
    text = '[study]\nname = "s"\n[workload]\nmodel = "model.py"\nbatch_per_worker = 8\n[framework]\nname = "null"\n'
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    ended = paceline(tmp_path, "plan", "s.toml")

    assert ended.returncode == SpecError.exit_code
    assert "model.py, line 2: ZeroDivisionError" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.processes
def test_marked_example_runs_alone_and_measured(tmp_path: Path) -> None:
    alone = subprocess.run(
        [sys.executable, "train_marked.py", "--steps", "10"],
        cwd=EXAMPLES / "own_script",
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(worker_folder(tmp_path))},
    )
    records = Workbench(load_study(EXAMPLES / "own_script" / "marked.toml"), tmp_path / "store").run()

    assert alone.stdout.startswith("loss ")
    assert len(records) == 6
    for record in records:
        assert record.ok, record.outcome
        assert record.samples is not None
        phases = [name for name in record.samples.column_names if name.startswith("phase.")]
        assert phases == ["phase.data", "phase.forward", "phase.backward", "phase.update"]


@pytest.mark.processes
def test_script_is_marked_under_python_3_6_too(tmp_path: Path) -> None:
    python = find_interpreter("3.6")
    if python is None:
        pytest.skip("no Python 3.6 here: pyenv install 3.6.15")
    study = {
        "study": {"name": "old"},
        "workload": {"script": "train_marked.py", "batch_per_worker": 16},
        "framework": {"interpreter": str(python.path)},
        "measure": {"warmup_steps": 2, "steps": 10, "repeats": 1},
    }
    source = str(EXAMPLES / "own_script" / "study.toml")
    (record,) = Workbench(read_study(study, source=source), tmp_path / "store").run()

    assert record.ok, record.outcome
    assert (record.ranks[0].framework_version or "").startswith("Python 3.6")


def test_worker_is_a_wheel_of_its_own_without_dependencies(tmp_path: Path) -> None:
    uv = find_uv()
    if uv is None:
        pytest.skip("no uv to build it with")
    built = subprocess.run(
        [str(uv), "build", "--wheel", "--out-dir", str(tmp_path / "wheel"), str(ROOT / "packaging" / "worker")],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip(f"hatchling cannot be had: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "unpacked", "zip")
    (metadata,) = (tmp_path / "unpacked").glob("*.dist-info/METADATA")
    program = "from paceline_worker import mark; print(mark.steps([1, 2]), mark.__file__)"
    printed = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path / 'unpacked')!r}); {program}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "Requires-Dist" not in metadata.read_text(encoding="utf-8")
    assert "Requires-Python: >=3.6" in metadata.read_text(encoding="utf-8")
    assert printed.startswith("[1, 2] ")
    assert str(tmp_path) in printed


@pytest.mark.processes
def test_a_script_that_fails_before_its_first_step_is_started_once_until_a_retry_is_asked_for(tmp_path: Path) -> None:
    wanted = tmp_path / "is-there"
    refuses = f"import pathlib\nassert pathlib.Path({str(wanted)!r}).exists(), 'no data'\n"
    (tmp_path / "train.py").write_text(refuses + script(), encoding="utf-8")
    study = """\
[study]
name = "own"
[workload]
script = "train.py"
batch_per_worker = 8
[measure]
warmup_steps = 2
steps = 10
repeats = 3
"""
    (tmp_path / "own.toml").write_text(study, encoding="utf-8")

    first = paceline(tmp_path, "run", "own.toml")
    assert first.returncode == 5
    assert first.stderr.count("no data") == 1, first.stderr
    assert "its other repeats would fail the same way and are not started" in first.stderr
    second = paceline(tmp_path, "run", "own.toml")
    assert second.returncode == 5
    assert "repeat 1 failed during setup, and further ones would fail too" in second.stderr
    assert "[1/" not in second.stderr
    wanted.touch()
    third = paceline(tmp_path, "run", "own.toml", "--retry-failed")
    assert third.returncode == 0, third.stderr
    assert "[3/3]" in third.stderr
