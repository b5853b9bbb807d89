"""S7: what each command prints with --json is what docs/reference/schemas says, for runs that end well and badly."""

from __future__ import annotations

import copy
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from paceline.cli.output import DOCUMENT_VERSION
from schemas import SCHEMAS, SUFFIX, assert_valid, read_schema, validator
from street import paceline, study_of, to_toml

COMMANDS = (
    "doctor",
    "init",
    "env-list",
    "env-build",
    "env-remove",
    "probe",
    "probe-machine",
    "plan",
    "run",
    "check",
    "compare",
    "calibrate",
    "predict",
    "validate",
    "explain",
    "recommend",
    "report",
    "import",
    "export",
)
LIBRARIES = ("trial", "facts", "proof", "collectives")
"""Schemas that others refer to; no command prints them."""

ESTIMATE = {"value", "low", "high", "level", "unit", "by", "n_runs"}

FAULTY = study_of(
    {"fault": ["none", "crash"], "jitter": 0.02},
    name="faulty",
    cluster={"workers_per_host": [1, 2]},
)
FAULTY["framework"]["strategy"] = ["allreduce", "single"]
"""Trials that end well, that crash, and (`single` with two workers) that are skipped."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study of every kind of ending, run once through the real command line."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "study.toml").write_text(to_toml(FAULTY), encoding="utf-8")
    (folder / "good.toml").write_text(to_toml(study_of(name="good")), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def planned(place: Path) -> dict[str, Any]:
    return printed(place, "plan", "study.toml")


@pytest.fixture(scope="module")
def ran(place: Path, planned: dict[str, Any]) -> dict[str, Any]:
    return printed(place, "run", "study.toml", exit_code=5)


def printed(folder: Path, *args: str, exit_code: int = 0, **extra: str) -> dict[str, Any]:
    """What the command prints on stdout, which must be one JSON document and nothing else."""
    ended = paceline(folder, *args, "--json", **extra)

    assert (ended.returncode, ended.stderr if ended.returncode != exit_code else "") == (exit_code, "")
    document = json.loads(ended.stdout)
    assert document["schema_version"] == DOCUMENT_VERSION
    return document


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob(f"*{SUFFIX}")), ids=lambda path: path.name)
def test_schema_is_a_valid_schema(path: Path) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_command_has_its_schema_and_every_schema_its_command() -> None:
    files = {path.name.removesuffix(SUFFIX) for path in SCHEMAS.glob(f"*{SUFFIX}")}

    assert files == {*COMMANDS, *LIBRARIES}


@pytest.mark.parametrize("name", [*COMMANDS, *LIBRARIES])
def test_every_field_is_described_and_every_object_closed_or_a_map(name: str) -> None:
    def visit(node: Any, where: str) -> None:
        if isinstance(node, dict):
            for field, description in node.get("properties", {}).items():
                # A schema of an `allOf` only narrows a field that is described where it is defined.
                described = "description" in description or "$ref" in description or "allOf" in where
                assert described, f"{where}.{field} has no description"
            if "properties" in node and "allOf" not in where:
                assert node.get("additionalProperties") is False, f"{where} accepts any key"
            for key, value in node.items():
                visit(value, f"{where}/{key}")
        elif isinstance(node, list):
            for index, value in enumerate(node):
                visit(value, f"{where}/{index}")

    visit(read_schema(name), name)


def test_init(tmp_path: Path) -> None:
    shipped = printed(tmp_path, "init", "--list")
    started = printed(tmp_path, "init")
    copied = printed(tmp_path, "init", "--example", "own-graph")

    for document in (shipped, started, copied):
        assert_valid("init", document)
    assert {"null", "quickstart", "own-graph"} <= {row["name"] for row in shipped["examples"]}
    assert (started["file"], started["example"]) == ("study.toml", None)
    assert copied["written"] == ["own-graph.toml", "model.py"]
    assert all((tmp_path / file).exists() for file in (*started["written"], *copied["written"]))


def test_doctor(place: Path) -> None:
    found = printed(place, "doctor")

    assert_valid("doctor", found)
    assert {"null", "torch"} <= {row["name"] for row in found["frameworks"]}
    for row in (*found["frameworks"], *found["sites"]):
        assert {"name", "state", "version", "reason", "fix"} <= set(row)
    assert next(row for row in found["frameworks"] if row["name"] == "null")["state"] == "ready"
    assert next(row for row in found["frameworks"] if row["name"] == "torch-cuda")["state"] == "untested"


@pytest.mark.parametrize("framework", ["null", "torch"])
def test_doctor_of_one_framework_tells_its_capabilities(place: Path, framework: str) -> None:
    found = printed(place, "doctor", "--framework", framework)

    assert_valid("doctor", found)
    assert found["capabilities"]["knobs"]


def test_env_list(place: Path) -> None:
    found = printed(place, "env", "list")

    assert_valid("env-list", found)
    (torch,) = (row for row in found["environments"] if row["name"] == "torch-cpu")
    assert torch["state"] in {"buildable", "unavailable"}
    assert torch["size_bytes"] is None


def test_env_build_and_remove(place: Path, tmp_path: Path) -> None:
    where = tiny_environment(tmp_path)

    built = printed(place, "env", "build", "tiny", **where)
    removed = printed(place, "env", "remove", "tiny", **where)

    assert_valid("env-build", built)
    assert_valid("env-remove", removed)
    assert built["environments"][0]["version"] == "1.0"
    assert built["environments"][0]["size_bytes"] > 0
    assert removed["environments"][0]["size_bytes"] is None


def tiny_environment(folder: Path) -> dict[str, str]:
    """Pins of an environment with one package, and its wheel, so that building needs no network."""
    wheels, pins = folder / "wheels", folder / "pins" / "tiny"
    wheels.mkdir()
    pins.mkdir(parents=True)
    info = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheels / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
    (pins / "requirements.lock").write_text("tiny==1.0\n", encoding="utf-8")
    (pins / "environment.toml").write_text(
        'name = "tiny"\ndescription = "one package"\npackage = "tiny"\nimports = ["tiny"]\n'
        f'python = "{sys.version_info.major}.{sys.version_info.minor}"\nlock = "requirements.lock"\n'
        "disk_bytes = 1_000_000\n",
        encoding="utf-8",
    )
    return {
        "PACELINE_ENVIRONMENTS": str(pins.parent),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }


def test_plan_before_anything_ran(planned: dict[str, Any]) -> None:
    assert_valid("plan", planned)
    assert planned["runs"]
    assert planned["done"] == []
    assert {skip["reason"] for skip in planned["skipped"]} == {"strategy single takes at most 1 worker(s)"}
    assert {run["trial"] for run in planned["runs"]} <= set(planned["trials"])


def test_plan_after_everything_ran(place: Path, ran: dict[str, Any]) -> None:
    plan = printed(place, "plan", "study.toml")

    assert_valid("plan", plan)
    assert plan["runs"] == []
    assert len(plan["done"]) == len(ran["runs"])


def test_run_with_a_failing_and_a_skipped_trial(ran: dict[str, Any], planned: dict[str, Any]) -> None:
    assert_valid("run", ran)
    assert {run["outcome"] for run in ran["runs"]} == {"ok", "failed"}
    assert [run["run"] for run in ran["new"]] == [run["run"] for run in planned["runs"]]
    assert ran["skipped"] == planned["skipped"]
    assert all(run["simulated"] for run in ran["runs"])


def test_run_with_nothing_left_to_do(place: Path, ran: dict[str, Any]) -> None:
    again = printed(place, "run", "study.toml", exit_code=5)

    assert_valid("run", again)
    assert again["new"] == []
    assert again["runs"] == ran["runs"]


def test_compare_has_the_names_that_others_rely_on(place: Path, ran: dict[str, Any]) -> None:
    comparison = printed(place, "compare", "study.toml")

    assert_valid("compare", comparison)
    assert comparison == {"schema_version": DOCUMENT_VERSION, **ran["comparison"]}
    for row in comparison["rows"]:
        assert {
            "trial",
            "framework",
            "strategy",
            "workload",
            "workers",
            "hosts",
            "network",
            "outcome",
            "throughput",
            "step_s",
            "efficiency",
            "phases",
            "warnings",
        } <= set(row)
        if row["outcome"] == "ok":
            for quantity in (row["throughput"], row["step_s"], row["efficiency"], *row["phases"].values()):
                assert set(quantity) >= ESTIMATE
    assert comparison["verdicts"]
    for verdict in comparison["verdicts"]:
        assert {"a", "b", "ratio", "low", "high", "level", "p", "verdict"} <= set(verdict)
    assert {row["outcome"] for row in comparison["rows"]} == {"ok", "failed", "skipped"}


def test_report(place: Path, ran: dict[str, Any]) -> None:
    report = printed(place, "report", "study.toml")

    assert_valid("report", report)
    assert report["comparison"] == ran["comparison"]
    assert report["repeat_with"] == "paceline run study.toml --again"


def test_export_of_good_and_failed_runs(place: Path, ran: dict[str, Any]) -> None:
    records = printed(place, "export", "study.toml")

    assert_valid("export", records)
    assert [record["run_id"] for record in records["records"]] == [run["run"] for run in ran["runs"]]
    assert all((record["summary"] is None) == (record["outcome"]["kind"] != "ok") for record in records["records"])
    assert not any("samples" in record for record in records["records"])


def test_export_with_samples(place: Path, ran: dict[str, Any]) -> None:
    records = printed(place, "export", "study.toml", "--samples")

    assert_valid("export", records)
    for record in records["records"]:
        if record["outcome"]["kind"] == "ok":
            assert len(record["samples"]["wall_s"]) == 12 * len(record["ranks"])


def test_good_study_exits_with_zero(place: Path) -> None:
    ran = printed(place, "run", "good.toml")

    assert_valid("run", ran)
    assert {run["outcome"] for run in ran["runs"]} == {"ok"}


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [
        (("plan", "absent.toml"), 2),
        (("doctor", "--framework", "nulll"), 2),
        (("env", "build", "absent"), 2),
        (("compare", "unmeasured.toml"), 1),
        (("compare", "study.toml", "--margin", "2"), 1),
        (("compare", "study.toml", "--margin", "0%"), 1),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value),
)
def test_error_leaves_stdout_empty_and_says_what_to_type(
    place: Path, ran: dict[str, Any], args: tuple[str, ...], exit_code: int
) -> None:
    (place / "unmeasured.toml").write_text(to_toml(study_of({"compute_s": "1ms"})), encoding="utf-8")
    ended = paceline(place, *args, "--json")

    assert (ended.returncode, ended.stdout) == (exit_code, "")
    assert ended.stderr.startswith("error: ")
    assert "\nhint:  " in ended.stderr
    assert "Traceback" not in ended.stderr


def wrong_documents(right: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str, Any]]:
    """The document with one thing wrong in it, at its top and in the first of every list."""
    found: list[tuple[str, Any]] = []
    if isinstance(right, dict):
        found.append((f"{path}: unknown key", {**right, "surprise": 1}))
        found += [
            (f"{path}: without {key}", {name: value for name, value in right.items() if name != key}) for key in right
        ]
    if isinstance(right, list):
        found.append((f"{path}: not a list", {}))
        if right:
            found += [(where, [wrong, *right[1:]]) for where, wrong in wrong_documents(right[0], (*path, 0))]
    return found


@pytest.mark.parametrize("name", ["plan", "run", "compare"])
def test_schema_rejects_a_wrong_document(name: str, planned: dict[str, Any], ran: dict[str, Any]) -> None:
    right = copy.deepcopy({"plan": planned, "run": ran, "compare": ran["comparison"]}[name])
    check = validator(name)

    assert check.is_valid(right)
    for where, wrong in wrong_documents(right):
        assert not check.is_valid(wrong), where
    for key, value in right.items():
        if isinstance(value, list):
            for where, wrong in wrong_documents(value, (key,)):
                assert not check.is_valid({**right, key: wrong}), where


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("compare", ("rows", 0, "outcome"), "fine"),
        ("compare", ("rows", 0, "throughput", "value"), "fast"),
        ("compare", ("rows", 0, "workers"), 0),
        ("compare", ("verdicts", 0, "verdict"), "faster"),
        ("compare", ("verdicts", 0, "level"), 95),
        ("run", ("runs", 0, "outcome"), "skipped"),
        ("run", ("comparison", "rows", 0, "step_s", "unit"), "ms"),
        ("plan", ("estimate_s",), None),
    ],
    ids=str,
)
def test_schema_rejects_a_wrong_value(
    name: str, path: tuple[str | int, ...], value: Any, planned: dict[str, Any], ran: dict[str, Any]
) -> None:
    document = copy.deepcopy({"plan": planned, "run": ran, "compare": ran["comparison"]}[name])
    *way, last = path
    inner: Any = document
    for step in way:
        inner = inner[step]
    inner[last] = value

    assert not validator(name).is_valid(document)


@pytest.fixture(scope="module")
def calibrated(place: Path) -> dict[str, Any]:
    study = study_of(
        {"jitter": 0.01},
        name="model",
        workload={"batch_per_worker": [4, 16]},
        cluster={"workers_per_host": [1, 2], "oversubscribe": True},
    )
    (place / "model.toml").write_text(to_toml(study), encoding="utf-8")
    return printed(place, "calibrate", "model.toml", "--budget", "0s")


def test_calibrate(calibrated: dict[str, Any]) -> None:
    assert_valid("calibrate", calibrated)
    (family,) = calibrated["calibrations"]
    assert family["by"] == "modelled"
    assert ESTIMATE == set(family["parameters"]["alpha_s"])


def test_predict_by_simulation(place: Path, calibrated: dict[str, Any]) -> None:
    found = printed(
        place, "predict", "model.toml", "--workers", "1..8", "--what-if", "slow-host=x2,oversubscription=x4"
    )

    assert_valid("predict", found)
    assert found["by"] == calibrated["calibrations"][0]["by"]
    assert {row["by"] for row in found["rows"]} == {"simulated"}
    assert {row["by"] for row in found["without_change"]} == {"modelled"}


def test_predict(place: Path, calibrated: dict[str, Any]) -> None:
    found = printed(
        place,
        "predict",
        "model.toml",
        "--workers",
        "1..8",
        "--what-if",
        "bandwidth=x4,compression=fp16,bucket=5MB",
        "--helps-most",
        "--epoch",
        "50000",
        "--price",
        "2",
        "--power",
        "300",
        "--memory",
        "16GB",
    )

    assert_valid("predict", found)
    assert [row["workers"] for row in found["rows"]] == [1, 2, 4, 8]
    for row in found["rows"]:
        assert all(set(row[name]) == ESTIMATE for name in ("step_s", "throughput", "efficiency"))
        assert row["extrapolated_by"] >= 1
        assert row["bottleneck"] in row["shares"]
        assert sum(row["shares"].values()) == pytest.approx(1)


def test_recommend(place: Path, calibrated: dict[str, Any]) -> None:
    found = printed(
        place,
        "recommend",
        "model.toml",
        "--goal",
        "energy",
        "--epoch",
        "50000",
        "--power",
        "300",
        "--within",
        "workers<=8,memory<=16GB",
    )

    assert_valid("recommend", found)
    assert {one["by"] for one in found["ranked"]} == {"simulated", "modelled"}
    for one in found["ranked"]:
        value = one["value"]
        # What was run was run twice, which gives no interval.
        assert (value["low"] is None) == (value["high"] is None) == (one["by"] == "simulated")
        assert value["low"] is None or value["low"] <= value["value"] <= value["high"]
        assert (one["trial"] is None) == bool(one["experiment"])


def test_predict_without_any_run(place: Path) -> None:
    found = printed(
        place,
        "predict",
        "--device",
        "V100-SXM2",
        "--model",
        "resnet50",
        "--network",
        "10GbE",
        "--workers",
        "2..4096",
        "--batch",
        "32",
        "--strategy",
        "ddp",
    )

    assert_valid("predict", found)
    assert found["by"] == "guessed"


def test_validate(place: Path) -> None:
    rows = [
        f"mlp,here,{nodes},{nodes},{batch},{0.01 + 0.001 * batch + 0.002 * nodes}"
        for nodes in (1, 2, 3, 4, 6, 8)
        for batch in (4, 8, 16, 32)
    ]
    table = "\n".join(["model,cluster,num_nodes,num_replicas,local_bsz,step_time_s", *rows])
    (place / "table.csv").write_text(table, encoding="utf-8")

    found = printed(place, "validate", "--table", "table.csv", "--fit", "num_nodes<=4")

    assert_valid("validate", found)
    assert [model["name"] for model in found["models"]][:4] == ["paceline", "ernest", "pollux", "usl"]
    assert_valid("validate", printed(place, "validate", "--published", PACELINE_PUBLISHED=""))


def test_import(place: Path, calibrated: dict[str, Any]) -> None:
    (place / "osu.txt").write_text(
        "# OSU MPI Allreduce Latency Test v5.8\n# Size  Avg Latency(us)\n4  2.5\n1048576  1034.2\n", encoding="utf-8"
    )

    found = printed(place, "import", "model.toml", "osu.txt", "--workers", "2")

    assert_valid("import", found)
    assert found["kind"] == "osu"
    assert_valid("calibrate", printed(place, "calibrate", "model.toml", "--no-run"))


def test_records_of_somebody_else(place: Path, calibrated: dict[str, Any]) -> None:
    paceline(place, "export", "--format", "archive", "--output", "records.zip")

    found = printed(place, "import", "records.zip", "--store", "theirs")

    assert_valid("import", found)
    assert found["tells"]["added"] > 0
    assert found["tells"]["known"] == 0
    assert printed(place, "import", "records.zip", "--store", "theirs")["tells"]["added"] == 0
    mine, theirs = (printed(place, "report", "model.toml", *store) for store in ((), ("--store", "theirs")))
    assert theirs["comparison"] == mine["comparison"]


def test_a_measured_step_becomes_a_trace(place: Path, calibrated: dict[str, Any]) -> None:
    trace = json.loads(paceline(place, "export", "model.toml", "--format", "perfetto").stdout)
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]

    assert {span["pid"] for span in spans} == {0, 1}
    assert {"forward", "backward", "communication"} <= {span["name"] for span in spans}
    ended = paceline(place, "export", "model.toml", "--format", "chakra", "--output", "step.et")
    assert ended.returncode == 0, ended.stderr
    assert (place / "step.0.et").stat().st_size > 0
    assert (place / "step.1.et").stat().st_size > 0
