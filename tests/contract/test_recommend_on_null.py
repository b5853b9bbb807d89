"""Truth first: recommendations for `null`, whose law is known, name what the law says is best, and trying it confirms it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.frameworks.null import KNOBS, law_step_s
from paceline.spec import parse_study
from schemas import assert_valid
from street import command_environment, paceline, study_of, to_toml

CHEAP = {
    "compute_s": 12e-3,
    "compute_per_sample_s": 1e-3,
    "alpha_s": 1e-4,
    "beta_s_per_byte": 2e-8,
    "overlap": 0.4,
    "update_s": 3e-3,
    "overhead_s": 2e-3,
    "input_s": 1e-3,
    "jitter": 0.02,
    "run_jitter": 0.005,
}
"""A law by which more workers pay."""
DEAR = {**CHEAP, "alpha_s": 30e-3, "overlap": 0.0}
"""One by which each exchange takes longer than the step that it spares."""
GRADIENT_BYTES = 4 * 61706
"""Of lenet5, which the laws pretend to train."""
WORKERS, BATCHES = (1, 2, 4, 8), (4, 16)


def throughput(law: dict[str, Any], workers: int, batch: int) -> float:
    """By the law, without jitter."""
    knobs = {name: knob.default for name, knob in KNOBS.items()} | law
    return workers * batch / law_step_s(knobs, workers, batch, GRADIENT_BYTES)["step_s"]


def calibrated(folder: Path, law: dict[str, Any]) -> Path:
    """A folder with a study of one and two workers that was run and fitted."""
    study = study_of(
        law,
        name="street",
        cluster={"workers_per_host": [1, 2]},
        workload={"batch_per_worker": list(BATCHES)},
        measure={"steps": 50, "repeats": 3},
    )
    (folder / "study.toml").write_text(to_toml(study), encoding="utf-8")
    done = paceline(folder, "calibrate", "study.toml", "--budget", "0s")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def cheap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calibrated(tmp_path_factory.mktemp("cheap"), CHEAP)


@pytest.fixture(scope="module")
def dear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calibrated(tmp_path_factory.mktemp("dear"), DEAR)


def advice(folder: Path, *args: str) -> dict[str, Any]:
    done = paceline(folder, "recommend", "study.toml", *args, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert_valid("recommend", found)
    return found


def test_where_exchanging_is_cheap_the_most_workers_are_recommended(cheap: Path) -> None:
    found = advice(cheap)
    best = max(((w, b) for w in WORKERS for b in BATCHES), key=lambda size: throughput(CHEAP, *size))
    first = found["ranked"][0]

    assert (first["workers"], first["batch"]) == best
    assert first["by"] == "modelled"
    assert {(one["workers"], one["batch"]) for one in found["ranked"]} == {(w, b) for w in WORKERS for b in BATCHES}
    for one in found["ranked"]:
        truth = throughput(CHEAP, one["workers"], one["batch"])
        if one["by"] == "modelled":
            assert one["throughput"]["low"] <= truth <= one["throughput"]["high"]
        # The mean of the slowest of several workers is above what the law says without jitter.
        assert one["throughput"]["value"] == pytest.approx(truth, rel=0.05)


def test_where_exchanging_is_dear_one_worker_is_recommended_and_nothing_is_left_to_try(dear: Path) -> None:
    found = advice(dear)
    best = max(((w, b) for w in WORKERS for b in BATCHES), key=lambda size: throughput(DEAR, *size))

    assert (found["ranked"][0]["workers"], found["ranked"][0]["batch"]) == best
    assert best[0] == 1
    assert found["ranked"][0]["by"] == "simulated"
    assert found["settling"] == ""


def test_limits_and_goals_are_heard(cheap: Path) -> None:
    found = advice(cheap, "--goal", "cost", "--epoch", "50000", "--price", "2", "--within", "workers<=4,batch=4")

    assert {(one["workers"], one["batch"]) for one in found["ranked"]} == {(1, 4), (2, 4), (4, 4)}
    first = found["ranked"][0]
    assert first["value"]["unit"] == "currency"
    # One host whatever the workers: the fastest is the cheapest.
    assert first["value"]["value"] == pytest.approx(50000 / first["throughput"]["value"] / 3600 * 2)
    assert found["front"] == [0]
    by_name = advice(cheap, "--from", found["ranked"][1]["trial"])
    assert next(one for one in by_name["ranked"] if one["trial"] == found["ranked"][1]["trial"])["switching"] == ""


def test_what_would_settle_it_is_a_study_that_runs(cheap: Path) -> None:
    study = parse_study(advice(cheap)["settling"], source=str(cheap / "study.toml"))

    assert study.name == "street-try"
    assert (study.axes["cluster.workers_per_host"], study.axes["workload.batch_per_worker"]) == ((8,), (16,))


def test_the_answer_for_people_names_the_next_command(cheap: Path) -> None:
    done = paceline(cheap, "recommend", "study.toml", "--within", "workers<=8")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Choose null allreduce · lenet5 · 8 workers · batch 16")
    assert "next: paceline recommend study.toml --within 'workers<=8' --try" in done.stderr


def test_trying_it_confirms_the_prediction_and_is_remembered(tmp_path: Path) -> None:
    folder = calibrated(tmp_path, CHEAP)
    said = advice(folder)["ranked"][0]
    found = advice(folder, "--try", "--budget", "1min")
    (tried,) = found["tried"]
    first = found["ranked"][0]

    assert tried["predicted"] == said["throughput"]
    assert tried["inside"] is True
    assert tried["trial"] == first["trial"]
    assert (first["workers"], first["batch"], first["by"]) == (8, 16, "simulated")
    assert max(one["workers"] for one in found["ranked"]) == 8
    assert found["settling"] == ""
    again = advice(folder)
    assert again["ranked"][0]["trial"] == first["trial"]
    text = paceline(folder, "recommend", "study.toml", "--try")
    assert text.returncode == 0, text.stderr
    assert "next: paceline report" in text.stderr


def test_without_a_calibration_what_was_measured_is_ranked(tmp_path: Path) -> None:
    study = study_of(CHEAP, cluster={"workers_per_host": [1, 2]})
    (tmp_path / "study.toml").write_text(to_toml(study), encoding="utf-8")
    assert paceline(tmp_path, "run", "study.toml").returncode == 0
    found = advice(tmp_path)

    assert [(one["workers"], one["by"]) for one in found["ranked"]] == [(2, "simulated"), (1, "simulated")]
    assert any("paceline calibrate" in sentence for sentence in found["not_considered"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--within", "wokers<=8"], "no such limit"),
        (["--within", "workers<=few"], "whole number"),
        (["--within", "framework=torch"], "no such framework was measured"),
        (["--goal", "speed"], "no such goal"),
        (["--goal", "cost", "--epoch", "50000"], "needs --price"),
        (["--goal", "energy"], "needs --epoch SAMPLES and --power"),
        (["--within", "deadline<=1h"], "needs --epoch"),
        (["--from", "torch"], "no such trial"),
        (["--allow", "anything"], "no such class"),
        (["--budget", "10"], "--budget"),
    ],
)
def test_bad_input_says_what_to_type_next(cheap: Path, args: list[str], words: str) -> None:
    done = paceline(cheap, "recommend", "study.toml", *args)

    assert done.returncode in {1, 2}, done.stderr
    assert words in done.stderr
    assert "hint:" in done.stderr
    assert done.stdout == ""


def test_a_study_that_was_not_run_says_what_to_type_next(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(to_toml(study_of()), encoding="utf-8")
    done = paceline(tmp_path, "recommend", "study.toml")

    assert done.returncode == 1
    assert "nothing is recorded yet" in done.stderr
    assert "paceline calibrate" in done.stderr


def test_with_the_best_held_out_it_is_recommended_all_the_same(cheap: Path) -> None:
    program = Path(__file__).parents[2] / "benchmarks" / "regret.py"
    done = subprocess.run(
        [sys.executable, str(program), "study.toml", "--store", str(cheap / "store"), "--json"],
        cwd=cheap,
        env=command_environment(cheap),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    (contest,) = json.loads(done.stdout)["rows"]
    assert contest["configurations"] == 4
    assert contest["predicted"] is True
    assert contest["best"] == contest["chosen"]
    assert contest["regret"] == 0


def test_times_from_a_law_are_called_simulated_and_never_measured(cheap: Path) -> None:
    document = json.loads(paceline(cheap, "recommend", "study.toml", "--json").stdout)
    was_run = [one for one in document["ranked"] if one["trial"] is not None]

    assert was_run
    assert {one["by"] for one in was_run} == {"simulated"}
    assert "simulated" in document["sentence"]
    findings = [finding for one in was_run for finding in one["because"]]
    assert "measured" not in {number["by"] for finding in findings for number in finding["numbers"]}
    assert "measured" not in {finding["by"] for finding in findings}
    words = paceline(cheap, "recommend", "study.toml", "--within", "workers<=2").stdout
    assert "simulated" in words
    assert "measured" not in words.partition("Not considered")[0]


def test_explanations_of_times_from_a_law_say_simulated(cheap: Path) -> None:
    document = json.loads(paceline(cheap, "explain", "study.toml", "--json").stdout)
    words = paceline(cheap, "explain", "study.toml").stdout

    assert_valid("explain", document)
    assert all(one["simulated"] for one in document["explanations"])
    assert "simulated in 3 runs" in words
    assert "measured" not in words


def test_report_of_times_from_a_law_draws_simulated_points(cheap: Path, tmp_path: Path) -> None:
    done = paceline(cheap, "report", "study.toml", "--html", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert done.returncode == 0, done.stderr
    assert "Solid with marks: simulated" in page
    assert ": measured " not in page
