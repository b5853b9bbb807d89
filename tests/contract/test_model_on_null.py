"""Truth first: the model calibrated on `null`, whose law is known, finds the law again and predicts what was not run."""

from __future__ import annotations

import json

import pytest

from paceline.model.predict import conditions_for, predict
from paceline.modelbench import calibrate, companions, evidence, split_validation
from paceline.record import summarize
from paceline.spec import read_study
from paceline.workbench import Workbench
from street import paceline, run_study, study_of, to_toml

LAW = {
    "compute_s": "12ms", "compute_per_sample_s": "1ms", "alpha_s": "100us", "beta_s_per_byte": 2e-8, "overlap": 0.4,
    "update_s": "3ms", "overhead_s": "2ms", "input_s": "1ms", "jitter": 0.02, "run_jitter": 0.005,
}  # fmt: skip
TRUTH = {
    "forward_s": 4e-3, "forward_per_sample_s": 1e-3 / 3, "backward_s": 8e-3, "backward_per_sample_s": 2e-3 / 3,
    "update_s": 3e-3, "overhead_s": 2e-3, "input_s": 1e-3, "alpha_s": 1e-4, "byte_s": 2e-8, "start": 0.6,
}  # fmt: skip
"""What the law's knobs are to the model: a third of computing is the forward pass."""


def calibrated_study(**changes):
    return study_of(
        LAW, cluster={"workers_per_host": [1, 2], "oversubscribe": True},
        workload={"batch_per_worker": [4, 16]}, measure={"steps": 100, "repeats": 4}, **changes,
    )  # fmt: skip


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Workbench:
    bench = Workbench(read_study(calibrated_study()), tmp_path_factory.mktemp("store"))
    bench.run()
    for companion in companions(bench):
        Workbench(companion, bench.folder).run()
    return bench


@pytest.fixture(scope="module")
def calibration(bench):
    (found,) = calibrate(bench)
    return found


def test_every_parameter_lies_in_its_interval(calibration):
    found = calibration.parameters()
    for name, truth in TRUTH.items():
        # Half a per cent: a law that is met exactly leaves no interval at all.
        assert found[name]["low"] * 0.995 <= truth <= found[name]["high"] * 1.005, (name, truth, found[name])
    assert calibration.straggling.spread == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("workers", [4, 8])
@pytest.mark.parametrize("batch", [4, 8, 32])
def test_four_times_the_workers_are_predicted_within_two_per_cent(calibration, tmp_path, workers, batch):
    said = predict(calibration, conditions_for(calibration, workers=workers, workers_per_host=workers, batch=batch))
    records = run_study(
        study_of(
            LAW, cluster={"workers_per_host": workers, "oversubscribe": True}, workload={"batch_per_worker": batch},
            measure={"steps": 200, "repeats": 3},
        ),
        tmp_path,
    )  # fmt: skip
    steps = [summary.step_s for record in records if (summary := summarize(record))]

    assert said.step.value == pytest.approx(sum(steps) / len(steps), rel=0.02)


def test_families_are_told_apart_by_knobs(bench):
    (one,) = evidence(bench)

    assert {training.trial.workers for training in one.trainings} == {1, 2}
    assert {collective.operation for collective in one.collectives} == {"all_reduce"}


def test_the_command_line_calibrates_predicts_and_answers_in_json(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(to_toml(calibrated_study()))
    done = paceline(tmp_path, "calibrate", str(study), "--budget", "0s")
    assert done.returncode == 0, done.stderr
    assert "forward_per_sample_s" in done.stdout
    assert "next: paceline predict" in done.stderr

    said = paceline(tmp_path, "predict", str(study), "--workers", "1..16", "--json", "--picture", str(tmp_path / "p.svg"),
                    "--trace", str(tmp_path / "t.json"), "--chakra", str(tmp_path / "t.et"))  # fmt: skip
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    assert [row["workers"] for row in answer["rows"]] == [1, 2, 4, 8, 16]
    for row in answer["rows"]:
        assert row["step_s"]["low"] <= row["step_s"]["value"] <= row["step_s"]["high"]
        assert set(row["throughput"]) == {"value", "low", "high", "unit"}
        assert row["extrapolated_by"] == max(1, row["workers"] / 2)
        assert row["bottleneck"]
    assert answer["rows"][0]["efficiency"]["value"] == pytest.approx(1)
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert (tmp_path / "t.et").read_bytes()

    text = paceline(tmp_path, "predict", str(study), "--workers", "1..64", "--what-if", "bandwidth=x4", "--helps-most",
                    "--epoch", "50000", "--price", "2", "--power", "300")  # fmt: skip
    assert text.returncode == 0, text.stderr
    assert "With the change" in text.stdout
    assert "Worth paying for" in text.stdout
    assert "kWh" in text.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["predict"], "nothing is calibrated"),
        (["predict", "--workers", "8..2"], "numbers that grow"),
        (["predict", "--device", "V100-SXM2"], "which model"),
        (["predict", "--device", "V1000", "--model", "resnet50"], "no device"),
        (["predict", "--device", "V100-SXM2", "--model", "resnet50", "--network", "fast"], "--network"),
        (["predict", "--device", "V100-SXM2", "--model", "resnet50", "--what-if", "speed=2"], "no such input"),
        (["validate"], "what should be validated"),
        (["validate", "--table", "none.csv"], "which rows"),
        (["validate", "--table", "none.csv", "--fit", "num_nodes<=4"], "cannot be read"),
        (["validate", "--split", "none.toml"], "no such split file"),
    ],
)
def test_bad_input_says_what_to_type_next(tmp_path, args, words):
    done = paceline(tmp_path, *args)

    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "hint:" in done.stderr


def test_a_guess_needs_no_run_and_is_called_one(tmp_path):
    done = paceline(tmp_path, "predict", "--device", "V100-SXM2", "--model", "resnet50", "--network", "10GbE", "--json",
                    "--workers", "1..64", "--batch", "32")  # fmt: skip
    answer = json.loads(done.stdout)

    assert answer["by"] == "guessed"
    assert "nothing was run" in answer["remarks"][0]
    (first, *_) = answer["rows"]
    assert first["step_s"]["high"] / first["step_s"]["low"] > 2
    assert 50 < first["throughput"]["value"] < 2000


def test_published_tables_are_skipped_with_the_reason_where_they_are_not(tmp_path):
    done = paceline(tmp_path, "validate", "--published", "--json", PACELINE_PUBLISHED="")

    assert done.returncode == 0
    assert "PACELINE_PUBLISHED" in done.stderr
    assert "skipped" in json.loads(done.stdout)


def test_a_split_of_our_own_records_is_judged_point_by_point(bench, tmp_path):
    split = tmp_path / "split.toml"
    split.write_text('[split]\nrecords = "records"\nfit = "batch<=4"\n')
    found = split_validation(split, str(bench.folder))

    (group,) = found.groups
    assert {point.batch for point in group.points} == {16}
    assert set(group.predicted) >= {"paceline", "ernest", "pollux", "usl", "sum", "max", "last value"}
