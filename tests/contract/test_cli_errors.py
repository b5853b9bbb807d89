"""Point 8: what a user meets when something is wrong. One clear message, what to type next, no traceback, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.record import Store
from street import command_environment, paceline, study_of, to_toml


def write(folder: Path, data: dict[str, Any]) -> str:
    path = folder / "s.toml"
    path.write_text(to_toml(data), encoding="utf-8")
    return "s.toml"


def assert_clear(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "hint:  " in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cluster": {"worker_per_host": 1}}, ("s.toml: unknown key 'cluster.worker_per_host'", "workers_per_host")),
        ({"measure": {"time_limit": "5 bananas"}}, ("s.toml: measure.time_limit", "ms")),
        ({"framework": {"name": "pytorch"}}, ("s.toml: framework.name: unknown framework 'pytorch'", "torch")),
        ({"framework": {"name": "null", "null": {"overlapp": 1}}}, ("framework.null: unknown knob", "overlap")),
        ({"workload": {"model": "resnet21", "batch_per_worker": 1}}, ("s.toml: workload.model", "resnet20")),
        ({"cluster": {"site": "moon"}}, ("s.toml: cluster.site: unknown site 'moon'", "local")),
        (
            {"framework": {"name": "null", "interpreter": "no/such/python"}},
            ("framework.interpreter", "no/such/python"),
        ),
        ({"framework": {"name": "null", "interpreter": "x" * 500}}, ("framework.interpreter", "not a Python")),
        (
            {"framework": {"name": "null"}, "cluster": {"workers_per_host": 512}},
            ("s.toml: cluster: 512 workers", "workers_per_host"),
        ),
        ({"framework": {"name": "null", "strategy": "ring"}}, ("unknown strategy 'ring'", "allreduce")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_wrong_study_is_two_lines_and_exit_code_two(
    tmp_path: Path, change: dict[str, Any], words: tuple[str, ...], command: str
) -> None:
    study = write(tmp_path, {**study_of(), **change})

    assert_clear(paceline(tmp_path, command, study), 2, *words)


def test_missing_study_file(tmp_path: Path) -> None:
    assert_clear(paceline(tmp_path, "run", "absent.toml"), 2, "absent.toml: no such study file")


@pytest.mark.parametrize("command", ["compare", "report", "export"])
def test_nothing_recorded_names_the_command_that_records(tmp_path: Path, command: str) -> None:
    assert_clear(paceline(tmp_path, command, write(tmp_path, study_of())), 1, "nothing is recorded", "paceline run")


@pytest.mark.parametrize("command", ["run", "compare", "plan"])
def test_unreadable_store_is_named_and_left_as_it_is(tmp_path: Path, command: str) -> None:
    study = write(tmp_path, study_of())
    (tmp_path / "store").mkdir()
    database = tmp_path / "store" / "facts.sqlite"
    database.write_bytes(b"this is no database" * 100)

    assert_clear(paceline(tmp_path, command, study), 4, "store", "--store")
    assert database.read_bytes() == b"this is no database" * 100


def test_store_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    study = write(tmp_path, study_of())
    (tmp_path / "store").write_text("a file where a folder should be")

    assert_clear(paceline(tmp_path, "run", study), 4, "store")


def test_full_disk_loses_nothing_that_was_recorded(tmp_path: Path) -> None:
    """A file-size limit stands for the full disk: the write fails in the same place."""
    first = write(tmp_path, study_of(measure={"repeats": 1, "steps": 10}))
    assert paceline(tmp_path, "run", first).returncode == 0
    second = write(tmp_path, study_of(measure={"repeats": 1, "steps": 50000}))
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000));"
        "import paceline.cli; sys.exit(paceline.cli.main(['run', 's.toml']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert "Traceback" not in done.stderr
    assert done.returncode in {4, 5}, done.stderr
    with Store.open(tmp_path / "store") as store:
        assert [record.ok for record in store.records() if record.trial.measure.steps == 10] == [True]
    assert paceline(tmp_path, "run", second, "--retry-failed").returncode == 0


def test_missing_interpreter_skips_its_framework_with_the_fix_and_runs_the_others(tmp_path: Path) -> None:
    """An environment whose Python is nowhere: its trials are skipped with the reason."""
    pins = tmp_path / "pins" / "torch-cpu"
    pins.mkdir(parents=True)
    root = Path(__file__).parents[2] / "environments" / "torch-cpu"
    for file in root.iterdir():
        text = file.read_text(encoding="utf-8")
        (pins / file.name).write_text(text.replace('python = "3.11"', 'python = "3.99"'), encoding="utf-8")
    data = study_of(measure={"repeats": 1})
    data["framework"]["name"] = ["null", "torch"]
    study = write(tmp_path, data)
    done = paceline(tmp_path, "run", study, PACELINE_ENVIRONMENTS=str(tmp_path / "pins"))

    assert "Traceback" not in done.stderr
    assert "3.99" in done.stderr
    with Store.open(tmp_path / "store") as store:
        assert [record.trial.framework.name for record in store.records()] == ["null"]


def test_interrupt_keeps_what_was_recorded_and_says_how_to_go_on(tmp_path: Path) -> None:
    data = study_of({"fault": ["none", "hang"]}, measure={"repeats": 1, "time_limit": "300s"})
    study = write(tmp_path, data)
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", "run", study],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        # Tests in the background of a shell ignore interrupts, and their children would.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no threads of ours
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("[2/2]"):
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=300)

    assert process.returncode == 130
    assert "Traceback" not in "".join(lines) + rest
    assert "Continue with the same command" in rest
    with Store.open(tmp_path / "store") as store:
        assert [record.ok for record in store.records()] == [True]


def test_second_run_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    import fcntl

    study = write(tmp_path, study_of(measure={"repeats": 1}))
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", "run", study],
        cwd=tmp_path,
        env=command_environment(tmp_path),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "another measurement is running" in line:
            break
    os.close(descriptor)
    process.communicate(timeout=300)

    assert process.returncode == 0


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["words", "json"])
def test_a_study_of_which_all_is_skipped_ends_with_five_and_a_step_that_helps(
    tmp_path: Path, command: str, flags: list[str]
) -> None:
    study = write(tmp_path, study_of(cluster={"hosts": 4}))
    done = paceline(tmp_path, command, study, *flags)

    assert_clear(done, 5, "no trial can run here", "paceline doctor")
    assert "next: paceline run" not in done.stderr
    assert "--again" not in done.stderr
    assert "the trial wants 4" in done.stdout


def test_a_million_workers_are_not_planned(tmp_path: Path) -> None:
    done = paceline(tmp_path, "plan", write(tmp_path, study_of(cluster={"workers_per_host": 10**6})))

    assert_clear(done, 5, "no trial can run here")
    assert "the trial wants 1000000" in done.stdout


@pytest.mark.parametrize("words", [["explain"], ["explain", "--regressions"], ["recommend"], ["calibrate", "--no-run"]])
def test_runs_that_all_failed_are_told_with_the_first_reason(tmp_path: Path, words: list[str]) -> None:
    study = write(tmp_path, study_of({"fault": "crash"}))
    assert paceline(tmp_path, "run", study).returncode == 5
    done = paceline(tmp_path, words[0], study, *words[1:])

    assert_clear(done, 5, "all 2 recorded runs failed", "crash asked for", "paceline run s.toml --retry-failed")


@pytest.mark.parametrize("words", [["compare"], ["report"]])
def test_after_failures_alone_the_next_step_is_to_run_them_again(tmp_path: Path, words: list[str]) -> None:
    study = write(tmp_path, study_of({"fault": "crash"}))
    paceline(tmp_path, "run", study)
    done = paceline(tmp_path, *words, study)

    assert done.returncode == 0
    assert "next: paceline run s.toml --retry-failed" in done.stderr
