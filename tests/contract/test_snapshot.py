"""Each command does each piece of work once, and answers about one study never disagree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline import campaigns
from paceline.cli import main
from paceline.snapshot import Snapshot
from paceline.spec import load_study, read_study
from paceline.workbench import Workbench
from street import study_of, to_toml

ROOT = Path(__file__).parent.parent.parent
RECORDS = ROOT / "validation" / "records" / "lab.zip"
STUDY = ROOT / "studies" / "predict" / "resnet44.toml"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed records of the lab, with a calibration of one study."""
    folder = tmp_path_factory.mktemp("records") / "store"
    assert main(["import", str(RECORDS), "--store", str(folder)]) == 0
    assert main(["calibrate", str(STUDY), "--no-run", "--store", str(folder)]) == 0
    return folder


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the costly functions are called, each passed through to the real one."""
    counted: Counter[str] = Counter()

    def count(where: str, name: Callable[..., str]) -> None:
        module, _, function = where.rpartition(".")
        real = getattr(__import__(module, fromlist=[function]), function)

        def passed_on(*args: Any, **options: Any) -> Any:
            counted[name(*args)] += 1
            return real(*args, **options)

        monkeypatch.setattr(where, passed_on)

    count("paceline.prepared.expand", lambda study, _catalog: f"expand {study.name}")
    count("paceline.record.sample_files.state_of", lambda path, *_: f"verify {path}")
    count("paceline.record.on_demand.read_table", lambda path, *_: f"read {path}")
    count("paceline.model.fitting.families.fit", lambda evidence: f"fit {evidence.family}")
    return counted


def prefixed(counts: Counter[str], word: str) -> list[int]:
    return [times for what, times in counts.items() if what.startswith(word)]


@pytest.mark.parametrize(
    "words",
    [
        ("plan",),
        ("compare",),
        ("explain",),
        ("recommend",),
        ("predict",),
        ("report",),
        ("report", "--html", "report.html", "--markdown", "report.md"),
    ],
    ids=" ".join,
)
def test_a_command_expands_once_reads_each_file_once_and_fits_each_family_once(
    words: tuple[str, ...], store: Path, counts: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # A calibration that is older than the records has to be fitted anew.
    kept = store / "models" / "predict-resnet44.json"
    current = kept.read_text(encoding="utf-8")
    document = json.loads(current)
    for calibration in document["calibrations"]:
        calibration["evidence"] = "older"
    kept.write_text(json.dumps(document), encoding="utf-8")
    try:
        assert main([words[0], str(STUDY), *words[1:], "--store", str(store)]) == 0
    finally:
        kept.write_text(current, encoding="utf-8")

    assert prefixed(counts, "expand") == [1]
    assert set(prefixed(counts, "verify")) <= {1}
    assert set(prefixed(counts, "read")) <= {1}
    assert set(prefixed(counts, "fit")) <= {1}
    assert bool(prefixed(counts, "verify")) == (words[0] != "plan")
    assert bool(prefixed(counts, "fit")) == (words[0] not in {"plan", "compare"} and words != ("report",))


def test_run_expands_once_and_reads_no_sample_file_twice(tmp_path: Path, counts: Counter[str]) -> None:
    data = study_of({"run_jitter": 0.3}, measure={"repeats": {"min": 3, "max": 5, "until": "1%"}})
    path = tmp_path / "s.toml"
    path.write_text(to_toml(data), encoding="utf-8")

    assert main(["run", str(path), "--store", str(tmp_path / "store")]) == 0
    assert prefixed(counts, "expand") == [1]
    assert set(prefixed(counts, "verify")) == {1}
    assert set(prefixed(counts, "read")) <= {1}


LAW = {"compute_s": 12e-3, "compute_per_sample_s": 1e-3, "overlap": 0.4, "jitter": 0.02, "run_jitter": 0.005}
"""A law of the null framework by which more workers are faster."""


@pytest.fixture
def rounds(counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """The counts up to each decision of a campaign on what to run next; `counts` has what followed the last one."""
    decided: list[Counter[str]] = []

    def cut(where: str) -> None:
        decide = getattr(campaigns, where)

        def passed_on(*args: Any) -> Any:
            decided.append(counts.copy())
            counts.clear()
            return decide(*args)

        monkeypatch.setattr(campaigns, where, passed_on)

    cut("next_run")
    cut("survey")
    return decided


def assert_no_work_is_repeated(rounds: list[Counter[str]], after: Counter[str]) -> None:
    """Each round expands one proposal, reads what it ran, and fits each family once; nothing is left to do after it."""
    for work in rounds[1:]:
        assert prefixed(work, "expand") == [1]
        assert set(prefixed(work, "verify")) == {1}
        assert prefixed(work, "fit") == [1]
    assert not prefixed(after, "expand") + prefixed(after, "verify") + prefixed(after, "read") + prefixed(after, "fit")
    whole = sum(rounds, Counter())
    assert set(prefixed(whole, "verify")) == {1}
    assert set(prefixed(whole, "read")) <= {1}


def test_each_round_of_a_calibration_expands_once_and_fits_each_family_once(
    tmp_path: Path, counts: Counter[str], rounds: list[Counter[str]]
) -> None:
    data = study_of(LAW, cluster={"workers_per_host": [1, 2], "oversubscribe": True})
    path = tmp_path / "s.toml"
    path.write_text(to_toml(data), encoding="utf-8")

    assert main(["calibrate", str(path), "--budget", "10min", "--store", str(tmp_path / "store")]) == 0
    assert len(rounds) > 2
    assert {"expand street", "expand street-links"} <= set(rounds[0])
    assert set(prefixed(rounds[0], "expand")) == {1}
    assert prefixed(rounds[0], "fit") == [1]
    assert_no_work_is_repeated(rounds, counts)


def calibrated(folder: Path, law: dict[str, float], batches: list[int]) -> tuple[str, str, str]:
    """The flags of a study with one and two workers that was run and fitted."""
    data = study_of(
        law,
        cluster={"workers_per_host": [1, 2], "oversubscribe": True},
        workload={"batch_per_worker": batches},
        measure={"steps": 50, "repeats": 3},
    )
    (folder / "s.toml").write_text(to_toml(data), encoding="utf-8")
    flags = (str(folder / "s.toml"), "--store", str(folder / "store"))
    assert main(["calibrate", *flags, "--budget", "0s"]) == 0
    return flags


def test_each_round_of_trying_a_recommendation_expands_once_and_fits_each_family_once(
    tmp_path: Path, counts: Counter[str], rounds: list[Counter[str]]
) -> None:
    # With these costs every batch has the same throughput, so more is to be tried than one round may run.
    only_per_sample = dict.fromkeys(("compute_s", "input_s", "update_s", "overhead_s", "alpha_s"), 1e-7)
    flags = calibrated(tmp_path, {**LAW, **only_per_sample, "beta_s_per_byte": 1e-12}, [4, 8, 16, 32])
    rounds.clear()
    counts.clear()

    assert main(["recommend", *flags, "--try", "--budget", "10min"]) == 0
    assert len(rounds) > 2
    assert rounds[0]["expand street"] == 1
    assert not prefixed(rounds[0], "fit")
    assert_no_work_is_repeated(rounds, counts)


def test_a_recommendation_that_needs_no_try_fits_each_family_once(
    tmp_path: Path, counts: Counter[str], rounds: list[Counter[str]]
) -> None:
    # Each exchange takes longer than the step that it saves: one worker is best, and that was measured.
    flags = calibrated(tmp_path, {**LAW, "alpha_s": 30e-3, "overlap": 0.0}, [4])
    assert main(["run", *flags, "--again"]) == 0
    rounds.clear()
    counts.clear()

    assert main(["recommend", *flags, "--try"]) == 0
    assert len(rounds) == 1
    whole = rounds[0] + counts
    assert prefixed(whole, "expand") == [1]
    assert prefixed(whole, "fit") == [1]
    assert set(prefixed(whole, "verify")) == {1}


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_explain_recommend_and_report_give_the_same_numbers_for_the_same_trial(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (str(STUDY), "--store", str(store))
    explained = {one["trial"]: one for one in answer(capsys, "explain", *asked)["explanations"]}
    reported = {row["trial"]: row for row in answer(capsys, "report", *asked)["comparison"]["rows"]}
    recommended = [one for one in answer(capsys, "recommend", *asked)["ranked"] if one["trial"]]

    assert set(explained) == {trial for trial, row in reported.items() if row["step_s"]}
    for trial, explanation in explained.items():
        assert explanation["step_s"] == pytest.approx(reported[trial]["step_s"]["value"], rel=1e-9)
    assert recommended
    for choice in recommended:
        trial = choice["trial"]
        assert choice["throughput"]["value"] == pytest.approx(reported[trial]["throughput"]["value"], rel=1e-9)
        assert choice["because"] == explained[trial]["findings"]


def test_a_calibration_is_used_while_it_is_current_and_fitted_anew_when_it_is_not(tmp_path: Path) -> None:
    data = study_of(cluster={"workers_per_host": [1, 2], "oversubscribe": True}, measure={"repeats": 3})
    path, store = tmp_path / "s.toml", tmp_path / "store"
    path.write_text(to_toml(data), encoding="utf-8")
    Workbench(load_study(path), store).run()
    before = Snapshot.of(load_study(path), store)
    assert [(model.kept, model.calibrated) for model in before.models] == [(None, False)]
    assert before.calibrations == []
    assert main(["calibrate", str(path), "--no-run", "--store", str(store)]) == 0
    current = Snapshot.of(load_study(path), store)
    assert [(model.kept is None, model.outdated) for model in current.models] == [(False, False)]
    Workbench(load_study(path), store).run(again=True)
    later = Snapshot.of(load_study(path), store)

    assert [(model.kept, model.outdated) for model in later.models] == [(None, True)]
    assert later.outdated == [later.models[0].family.label]


def test_an_outdated_calibration_is_named_with_the_command_that_renews_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, store = tmp_path / "s.toml", tmp_path / "store"
    path.write_text(to_toml(study_of(measure={"repeats": 3})), encoding="utf-8")
    flags = (str(path), "--store", str(store))
    assert main(["run", *flags]) == 0
    assert main(["calibrate", *flags, "--no-run"]) == 0
    assert main(["explain", *flags]) == 0
    assert "is older than" not in capsys.readouterr().err
    assert main(["run", *flags, "--again"]) == 0
    capsys.readouterr()
    for words in (("explain",), ("recommend",), ("predict",), ("report", "--html", str(tmp_path / "page.html"))):
        assert main([words[0], *flags, *words[1:]]) == 0
        said = capsys.readouterr().err
        assert "The kept calibration is older than" in said
        assert f"paceline calibrate {path} --no-run --store {store}" in said


def test_what_would_be_known_without_a_trial_leaves_the_snapshot_as_it_is(tmp_path: Path) -> None:
    study = read_study(study_of(cluster={"workers_per_host": [1, 2], "oversubscribe": True}))
    bench = Workbench(study, tmp_path)
    bench.run()
    snapshot = bench.snapshot()
    first, second = snapshot.trials

    assert {record.trial.id for record in snapshot.without(first.id).records} == {second.id}
    assert {record.trial.id for record in snapshot.records} == {first.id, second.id}
