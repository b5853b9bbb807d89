"""Truth first: the model calibrated on `null`, whose law is known, finds the law again and predicts what was not run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from paceline.campaigns import companions_of, keep_models
from paceline.model.forecast.predict import conditions_for, predict
from paceline.record import summarize
from paceline.recorded import split_validation
from paceline.spec import read_study
from paceline.workbench import Workbench
from street import paceline, run_study, study_of, to_toml

LAW = {
    "compute_s": 12e-3,
    "compute_per_sample_s": 1e-3,
    "alpha_s": 1e-4,
    "beta_s_per_byte": 2e-8,
    "overlap": 0.4,
    "update_s": 3e-3,
    "overhead_s": 2e-3,
    "input_s": 1e-3,
    "input_per_sample_s": 0.0,
    "jitter": 0.02,
    "run_jitter": 0.005,
}
SEEDS = (1, 2, 3, 4, 5, 6)
GRADIENT_BYTES = 4 * 61706
"""Of lenet5, which the laws pretend to train."""
BATCHES = (4, 8, 32)
FARTHER = 8
"""Four times the workers of the calibration."""


def random_law(seed):
    """Every second law has a slow rank, every third sends buckets, every fourth prefetches its input."""
    generator = np.random.default_rng(seed)

    def between(low, high):
        return float(np.exp(generator.uniform(np.log(low), np.log(high))))

    law = {
        "compute_s": between(2e-3, 40e-3),
        "compute_per_sample_s": between(1e-4, 4e-3),
        "alpha_s": between(5e-5, 1e-3),
        "beta_s_per_byte": between(1e-8, 1e-7),
        "overlap": float(generator.uniform()),
        "update_s": between(5e-4, 5e-3),
        "overhead_s": between(5e-4, 5e-3),
        "input_s": between(5e-4, 3e-3),
        "input_per_sample_s": between(1e-5, 3e-4),
        "jitter": float(generator.uniform(0, 0.05)),
        "jitter_correlation": float(generator.uniform(0, 0.8)),
        "run_jitter": float(generator.uniform(0, 0.01)),
    }
    if seed % 2:
        law |= {"slow_rank": 1, "slow_factor": float(generator.uniform(1.05, 1.5))}
    if seed % 3 == 0:
        law |= {"bucket_bytes": 65536.0}
    if seed % 4 == 0:
        law |= {"input_overlap": True}
    return law


def truth_of(law):
    """What the law's knobs are to the model: a third of computing is the forward pass."""
    return {
        "forward_s": law["compute_s"] / 3,
        "forward_per_sample_s": law["compute_per_sample_s"] / 3,
        "backward_s": law["compute_s"] * 2 / 3,
        "backward_per_sample_s": law["compute_per_sample_s"] * 2 / 3,
        "update_s": law["update_s"],
        "overhead_s": law["overhead_s"],
        "input_s": law["input_s"],
        "input_per_sample_s": law["input_per_sample_s"],
        "alpha_s": law["alpha_s"],
        "byte_s": law["beta_s_per_byte"],
        "start": 1 - law["overlap"],
        "contention": 0.0,
    }


def mean_step_s(law, workers, batch):
    """The mean over many draws of the law's step, by its equations in docs/reference/null.md."""
    sigma = law["jitter"]
    factors = np.exp(sigma * np.random.default_rng(0).normal(size=(20000, workers)) - sigma**2 / 2)
    if workers > law.get("slow_rank", workers):
        factors[:, law["slow_rank"]] *= law["slow_factor"]
    compute = (law["compute_s"] + law["compute_per_sample_s"] * batch) * factors.max(axis=1)
    buckets = -(-GRADIENT_BYTES // law.get("bucket_bytes", GRADIENT_BYTES))
    carried = 2 * (workers - 1) / workers * GRADIENT_BYTES * law["beta_s_per_byte"]
    exchange = buckets * 2 * (workers - 1) * law["alpha_s"] + carried
    exposed = np.maximum(0, exchange - law["overlap"] * compute * 2 / 3)
    rest = compute + exposed + law["update_s"] + law["overhead_s"]
    feeding = law["input_s"] + law["input_per_sample_s"] * batch
    shown = np.maximum(0, feeding - rest) if law.get("input_overlap") else feeding
    return float((rest + shown).mean())


def calibrated_study(law=LAW, **changes):
    return study_of(
        law,
        cluster={"workers_per_host": [1, 2], "oversubscribe": True},
        workload={"batch_per_worker": [4, 16]},
        measure={"steps": 100, "repeats": 4},
        **changes,
    )


def measured(law, folder) -> Workbench:
    """All that a calibration on one and two workers needs."""
    bench = Workbench(read_study(calibrated_study(law)), folder)
    bench.run()
    for companion in companions_of(bench):
        Workbench(companion, bench.folder).run()
    return bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Workbench:
    return measured(LAW, tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def calibration(bench):
    (calibration,) = keep_models(bench.snapshot())
    return calibration


@pytest.fixture(scope="module", params=SEEDS)
def law_and_calibration(request, tmp_path_factory):
    law = random_law(request.param)
    (calibration,) = keep_models(measured(law, tmp_path_factory.mktemp("law")).snapshot())
    return law, calibration


def assert_found_again(calibration, law):
    parameters = calibration.parameters()
    for name, truth in truth_of(law).items():
        assert parameters[name].contains(truth), (name, truth, parameters[name])
    assert calibration.straggling.spread == pytest.approx(law["jitter"], rel=0.2)
    assert calibration.straggling.slowest == pytest.approx(law.get("slow_factor", 1.0), rel=0.02)


def test_every_parameter_lies_in_its_interval(calibration):
    assert_found_again(calibration, LAW)


def test_every_parameter_of_any_law_lies_in_its_interval(law_and_calibration):
    law, calibration = law_and_calibration

    assert_found_again(calibration, law)


def was_shown(calibration):
    return not any("always hidden" in sentence for sentence in calibration.unidentified)


@pytest.mark.parametrize("batch", BATCHES)
def test_four_times_the_workers_of_any_law_are_predicted_within_two_per_cent(law_and_calibration, batch):
    law, calibration = law_and_calibration
    said = predict(calibration, conditions_for(calibration, workers=FARTHER, workers_per_host=FARTHER, batch=batch))
    truth = mean_step_s(law, FARTHER, batch)

    assert said.step.low <= truth <= said.step.high
    # Where two workers hid all of the exchange, no run tells how much eight can hide: that the interval holds it is all
    # that can be promised, and the calibration says so.
    if was_shown(calibration):
        assert said.step.value == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("workers", [4, 8])
@pytest.mark.parametrize("batch", [4, 8, 32])
def test_four_times_the_workers_are_predicted_within_two_per_cent(calibration, tmp_path, workers, batch):
    said = predict(calibration, conditions_for(calibration, workers=workers, workers_per_host=workers, batch=batch))
    records = run_study(
        study_of(
            LAW,
            cluster={"workers_per_host": workers, "oversubscribe": True},
            workload={"batch_per_worker": batch},
            measure={"steps": 200, "repeats": 3},
        ),
        tmp_path,
    )
    steps = [summary.step_s for record in records if (summary := summarize(record))]

    assert said.step.value == pytest.approx(sum(steps) / len(steps), rel=0.02)


def test_families_are_told_apart_by_knobs(bench):
    (model,) = bench.snapshot().models

    assert {training.trial.workers for training in model.evidence.trainings} == {1, 2}
    assert {collective.operation for collective in model.evidence.collectives} == {"all_reduce"}


def test_the_command_line_calibrates_predicts_and_answers_in_json(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(to_toml(calibrated_study()))
    done = paceline(tmp_path, "calibrate", str(study), "--budget", "0s")
    assert done.returncode == 0, done.stderr
    assert "forward_per_sample_s" in done.stdout
    assert "next: paceline predict" in done.stderr

    said = paceline(
        tmp_path,
        "predict",
        str(study),
        "--workers",
        "1..16",
        "--json",
        "--picture",
        str(tmp_path / "p.svg"),
        "--trace",
        str(tmp_path / "t.json"),
        "--chakra",
        str(tmp_path / "t.et"),
    )
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    assert [row["workers"] for row in answer["rows"]] == [1, 2, 4, 8, 16]
    for row in answer["rows"]:
        assert row["step_s"]["low"] <= row["step_s"]["value"] <= row["step_s"]["high"]
        assert set(row["throughput"]) == {"value", "low", "high", "level", "unit", "by", "n_runs"}
        assert row["extrapolated_by"] == max(1, row["workers"] / 2)
        assert row["bottleneck"]
    assert answer["rows"][0]["efficiency"]["value"] == pytest.approx(1)
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert (tmp_path / "t.et").read_bytes()

    text = paceline(
        tmp_path,
        "predict",
        str(study),
        "--workers",
        "1..64",
        "--what-if",
        "bandwidth=x4",
        "--helps-most",
        "--epoch",
        "50000",
        "--price",
        "2",
        "--power",
        "300",
    )
    assert text.returncode == 0, text.stderr
    assert "With the change" in text.stdout
    assert "Worth paying for" in text.stdout
    assert "kWh" in text.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["predict"], "nothing is calibrated"),
        (["predict", "--workers", "8..2"], "increasing numbers"),
        (["predict", "--device", "V100-SXM2"], "needs a model"),
        (["predict", "--device", "V1000", "--model", "resnet50"], "unknown device"),
        (["predict", "--device", "V100-SXM2", "--model", "resnet50", "--network", "fast"], "--network"),
        (["predict", "--device", "V100-SXM2", "--model", "resnet50", "--what-if", "speed=2"], "unknown input"),
        (["predict", "--device", "V100-SXM2", "--model", "resnet50", "--what-if", "slow-host=x0.5"], "at least 1"),
        (
            ["predict", "--device", "V100-SXM2", "--model", "resnet50", "--what-if", "jobs=2", "--trace", "t.json"],
            "need a modelled step",
        ),
        (["validate"], "what should be validated"),
        (["validate", "--table", "none.csv"], "which rows"),
        (["validate", "--table", "none.csv", "--fit", "num_nodes<=4"], "cannot be read"),
        (["validate", "--split", "none.toml"], "no such split file"),
    ],
)
def test_bad_input_says_what_to_type_next(tmp_path, args, words):
    done = paceline(tmp_path, *args)

    # 1: a flag's value does not fit, or nothing is there yet; 2: a name or a file that nobody knows.
    assert done.returncode in {1, 2}, done.stderr
    assert words in done.stderr
    assert "hint:" in done.stderr


def test_a_guess_needs_no_run_and_is_called_one(tmp_path):
    done = paceline(
        tmp_path,
        "predict",
        "--device",
        "V100-SXM2",
        "--model",
        "resnet50",
        "--network",
        "10GbE",
        "--json",
        "--workers",
        "1..64",
        "--batch",
        "32",
    )
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
    validation = split_validation(split, str(bench.folder))

    (group,) = validation.groups
    assert {point.batch for point in group.points} == {16}
    assert set(group.predicted) >= {"paceline", "ernest", "pollux", "usl", "sum", "max", "last value"}


def test_runs_that_calibration_proposes_are_part_of_the_fit(tmp_path):
    study = study_of(LAW, cluster={"workers_per_host": [1, 2], "oversubscribe": True}, measure={"repeats": 2})
    (tmp_path / "one-batch.toml").write_text(to_toml(study), encoding="utf-8")
    ended = paceline(tmp_path, "calibrate", "one-batch.toml", "--budget", "10min", "--json")
    (calibration,) = json.loads(ended.stdout)["calibrations"]

    assert len(calibration["runs"]) > 2
    assert not any("only batch" in sentence for sentence in calibration["unidentified"])
