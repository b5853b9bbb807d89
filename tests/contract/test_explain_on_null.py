"""Explanations of runs whose causes are planted: real processes of the null framework in law time, whole commands."""

from __future__ import annotations

import json

import pytest

from causes import POINTS, explained, judged
from paceline.explain.finding import CAUSES
from paceline.prepared import PreparedStudy
from paceline.spec import load_study
from planted import APART, CASES, LEAST, PLANTED, cases
from schemas import assert_valid
from street import paceline, run_study, study_of, to_toml

SOME = 6
"""Of the cases; benchmarks/causes.py runs all."""


@pytest.mark.parametrize("case", cases(SOME), ids=lambda case: f"{case.number}: {' + '.join(case.planted)}")
def test_planted_causes_are_named_in_order_with_their_shares(case, tmp_path):
    row = judged(case, explained(case, tmp_path))

    assert row["named"] == list(case.planted)
    assert abs(row["off"]) <= POINTS


def test_cases_plant_every_cause_alone_and_in_pairs():
    alone = {case.planted for case in cases(CASES) if len(case.planted) == 1}
    pairs = {frozenset(case.planted) for case in cases(CASES) if len(case.planted) == 2}

    assert alone == {(cause,) for cause in PLANTED.values()}
    assert len(pairs) == 15
    for case in cases(CASES):
        shares = [case.truth[cause] for cause in case.planted]
        assert min(shares) >= LEAST
        assert len(shares) == 1 or shares[0] - shares[1] >= APART


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A study with a slow rank and many small buckets, run through the real command line."""
    folder = tmp_path_factory.mktemp("explain")
    law = {"slow_rank": 1, "slow_factor": 1.6, "bucket_bytes": 20000.0, "alpha_s": 2e-4, "jitter": 0.01}
    data = study_of(law, name="slow", cluster={"workers_per_host": [1, 2], "oversubscribe": True})
    (folder / "slow.toml").write_text(to_toml(data), encoding="utf-8")
    assert paceline(folder, "run", "slow.toml").returncode == 0
    return folder


def test_command_says_it_in_words(place):
    ended = paceline(place, "explain", "slow.toml")

    assert ended.returncode == 0, ended.stderr
    assert "1. Host" in ended.stdout
    assert "is slower than the others, and all wait for it" in ended.stdout
    assert "From 1 to 2 workers" in ended.stdout
    assert "next: paceline recommend slow.toml" in ended.stderr


def test_json_is_as_documented_and_shares_sum_up_to_one(place):
    document = json.loads(paceline(place, "explain", "slow.toml", "--json").stdout)

    assert_valid("explain", document)
    for explanation in document["explanations"]:
        assert [share["cause"] for share in explanation["shares"]] == list(CAUSES)
        assert sum(share["measured"] for share in explanation["shares"]) == pytest.approx(1.0)
        assert explanation["loss"] is None or sum(explanation["loss"]["parts"].values()) == pytest.approx(1.0)


def test_a_trial_of_the_store_is_explained_without_its_study(place):
    document = json.loads(paceline(place, "explain", "slow.toml", "--json").stdout)
    slow = next(explanation for explanation in document["explanations"] if ".2w" in explanation["trial"])
    alone = json.loads(paceline(place, "explain", slow["trial"], "--json").stdout)["explanations"]

    assert [explanation["trial"] for explanation in alone] == [slow["trial"]]
    assert alone[0]["findings"][0]["cause"] == slow["findings"][0]["cause"]


def test_experiments_are_studies_that_load_and_hold_the_trial_beside_the_change(place, tmp_path):
    ended = paceline(place, "explain", "slow.toml", "--experiments", str(tmp_path / "try"))
    files = sorted((tmp_path / "try").glob("*.toml"))

    assert ended.returncode == 0
    assert files
    document = json.loads(paceline(place, "explain", "slow.toml", "--json").stdout)
    explained = {explanation["trial"] for explanation in document["explanations"]}
    for path in files:
        trials = {expanded.trial.id for expanded in PreparedStudy.of(load_study(path)).expanded}
        assert len(trials) == 2
        assert trials & explained


def test_unknown_trial_says_what_to_type(place):
    ended = paceline(place, "explain", "null-allreduce.nothing")

    assert ended.returncode == 1
    assert "neither a study file nor a trial" in ended.stderr
    assert "near it: null-allreduce" in ended.stderr


def test_study_that_was_not_run_says_what_to_type(tmp_path):
    (tmp_path / "new.toml").write_text(to_toml(study_of(name="new")), encoding="utf-8")
    ended = paceline(tmp_path, "explain", "new.toml")

    assert ended.returncode == 1
    assert "hint:  measure it: paceline run new.toml" in ended.stderr


def test_regressions_of_a_steady_study_end_with_zero(tmp_path):
    data = study_of({"run_jitter": 0.01}, name="steady", measure={"repeats": 8})
    (tmp_path / "steady.toml").write_text(to_toml(data), encoding="utf-8")
    run_study(data, tmp_path / "store")
    ended = paceline(tmp_path, "explain", "steady.toml", "--regressions", "--json")

    assert ended.returncode == 0, ended.stderr
    assert_valid("explain", json.loads(ended.stdout))


@pytest.mark.parametrize("words", [["explain"], ["recommend"], ["report", "--html", "page.html"]], ids=lambda w: w[0])
def test_one_trial_whose_runs_differ_a_lot_is_answered(words, tmp_path):
    data = study_of({"run_jitter": 0.3, "jitter": 0.25}, name="one")
    (tmp_path / "one.toml").write_text(to_toml(data), encoding="utf-8")
    run_study(data, tmp_path / "store")
    ended = paceline(tmp_path, words[0], "one.toml", *words[1:])

    assert ended.returncode == 0, ended.stderr


def test_peak_of_this_machine_is_measured_and_kept(tmp_path):
    ended = paceline(tmp_path, "probe", "machine", "--json")

    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert_valid("probe-machine", document)
    assert document["flops_per_s"] > 1e8
    assert document["bytes_per_s"] > 1e8


def profile(rank, slow=1.0):
    spans = []
    for number in range(6):
        start = number * 1000
        spans += [
            (f"ProfilerStep#{number}", start, 1000),
            ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 300 * slow),
            ("aten::conv2d", start + 300 * slow, 200),
            ("autograd::engine::evaluate_function: ConvolutionBackward0", start + 500 * slow, 300),
        ]
    events = [{"ph": "X", "name": name, "pid": 0, "tid": 0, "ts": ts, "dur": dur} for name, ts, dur in spans]
    return json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}})


def test_profiles_of_all_ranks_are_a_run_that_is_explained(tmp_path):
    data = study_of(name="mine", cluster={"workers_per_host": 2, "oversubscribe": True})
    (tmp_path / "mine.toml").write_text(to_toml(data), encoding="utf-8")
    files = [f"rank{rank}.json" for rank in range(2)]
    for rank, name in enumerate(files):
        (tmp_path / name).write_text(profile(rank), encoding="utf-8")
    imported = paceline(tmp_path, "import", "mine.toml", *files, "--as-run", "--json")

    assert imported.returncode == 0, imported.stderr
    assert_valid("import", json.loads(imported.stdout))
    (explanation,) = json.loads(paceline(tmp_path, "explain", "mine.toml", "--json").stdout)["explanations"]
    assert explanation["findings"][0]["cause"] == "input"
    assert explanation["findings"][0]["share"] == pytest.approx(0.3, abs=0.01)


def test_profiles_of_some_ranks_are_refused(tmp_path):
    data = study_of(name="mine", cluster={"workers_per_host": 2, "oversubscribe": True})
    (tmp_path / "mine.toml").write_text(to_toml(data), encoding="utf-8")
    (tmp_path / "rank0.json").write_text(profile(0), encoding="utf-8")
    ended = paceline(tmp_path, "import", "mine.toml", "rank0.json", "--as-run")

    assert ended.returncode == 1
    assert "give one file per rank" in ended.stderr
