"""The store: what goes in comes out, once, whatever happens to the process, the disk or the files."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paceline.errors import StoreError
from paceline.plan.trial import Limits
from paceline.record import Store
from records import failed_record, make_record, make_trial

WRITER = Path(__file__).with_name("writer.py")
TESTS = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store", create=True) as opened:
        yield opened


def test_a_record_comes_back_as_it_went_in(store):
    record = make_record(layers=True, knobs={"a": 1, "b": [1, 2]}, hosts=2)

    store.add(record)

    (back,) = store.records()
    assert record == back
    assert record.samples == back.samples
    assert record.layers == back.layers
    assert record.to_json() == back.to_json()


def test_a_record_survives_closing_and_opening(tmp_path):
    with Store.open(tmp_path, create=True) as store:
        store.add(make_record())
    with Store.open(tmp_path) as store:
        assert [make_record()] == store.records()


def test_records_come_in_the_order_they_started(store):
    for repeat in (2, 0, 1):
        store.add(make_record(repeat=repeat))

    assert [0, 1, 2] == [record.repeat for record in store.records()]


def test_records_are_chosen_by_trial_study_and_machine(store):
    one, two = make_trial(), make_trial(model="alexnet")
    store.add(make_record(trial=one, study="s"))
    store.add(make_record(trial=two, study="s", repeat=1))
    store.add(make_record(trial=two, study="other", machine_id="machine-b"))

    assert [one.id] == [r.trial.id for r in store.records(trial_ids=[one.id])]
    assert [] == store.records(trial_ids=[])
    assert [one.id, two.id] == [r.trial.id for r in store.records(study="s")]
    assert ["other"] == [r.study for r in store.records(machine="machine-b")]


def test_samples_are_left_on_the_disk_when_not_wanted(store):
    store.add(make_record())

    (record,) = store.records(with_samples=False)

    assert record.samples is None
    assert () == record.doubts


def test_the_same_run_is_refused_and_the_first_one_stays(store):
    first = make_record(random_seed=1)
    store.add(first)

    with pytest.raises(StoreError, match="recorded already"):
        store.add(make_record(random_seed=2))

    (kept,) = store.records()
    assert first.samples == kept.samples


def test_the_same_run_on_another_machine_is_another_run(store):
    here, there = make_record(random_seed=1), make_record(random_seed=2, machine_id="machine/b")
    store.add(here)
    store.add(there)

    back = {record.machine["id"]: record.samples for record in store.records()}
    assert {"machine-a": here.samples, "machine/b": there.samples} == back


def test_each_run_keeps_its_own_limits(store):
    record = make_record()
    other = replace(
        record,
        trial=replace(record.trial, limits=Limits(time_s=1.0, memory_bytes=2.0)),
        run_id="x.r1.a0",
        repeat=1,
        started=record.started + 1,
    )
    store.add(record)
    store.add(other)

    assert [600.0, 1.0] == [r.trial.limits.time_s for r in store.records()]
    assert 1 == len({r.trial.id for r in store.records()})


def test_facts_can_neither_be_edited_nor_deleted(store):
    store.add(make_record())
    with sqlite3.connect(store.folder / "facts.sqlite") as connection:
        for statement in ("UPDATE runs SET outcome = 'ok'", "DELETE FROM runs"):
            with pytest.raises(sqlite3.IntegrityError, match="facts are never"):
                connection.execute(statement)
    connection.close()


def test_the_last_attempt_at_each_repeat_counts(store):
    trial = make_trial()
    store.add(failed_record(trial=trial))
    store.add(make_record(trial=trial, attempt=1))
    store.add(failed_record("timed_out", trial=trial, repeat=1))

    attempts = store.last_attempts("machine-a")
    assert [(trial.id, 0, 1, "ok", True), (trial.id, 1, 0, "timed_out", False)] == [
        (attempt.trial, attempt.repeat, attempt.number, attempt.outcome, attempt.ok) for attempt in attempts
    ]
    assert {trial.limits} == {attempt.limits for attempt in attempts}
    assert [] == store.last_attempts("machine-b")


def test_an_attempt_that_failed_before_its_first_step_says_that_others_would_fail_too(store):
    store.add(failed_record())
    store.add(failed_record("timed_out", repeat=1))
    store.add(make_record(repeat=2))

    reasons = [attempt.would_fail_again for attempt in store.last_attempts("machine-a")]
    assert "it broke" in reasons[0]
    assert [None, None] == reasons[1:]


def test_an_attempt_at_a_proof_names_the_adapters_that_it_ran(store):
    store.add(make_record(kind="proof", inputs={"worker": "0123"}))
    store.add(make_record(repeat=1, inputs={"worker": "0123"}))

    assert ["0123", None] == [attempt.proof_by for attempt in store.last_attempts("machine-a")]


def test_estimates_rest_on_runs_that_ended_well(store):
    trial = make_trial()
    for repeat, elapsed in enumerate((1.0, 2.0, 9.0)):
        store.add(make_record(trial=trial, repeat=repeat, elapsed_s=elapsed))
    store.add(failed_record("timed_out", trial=trial, repeat=3, elapsed_s=600.0))

    assert {trial.id: 2.0} == store.recent_elapsed([trial.id, "unknown"])


def test_run_ids_that_no_file_system_likes_are_stored(store):
    record = make_record(run_id="a/../b:c " + "x" * 300 + ".r0.a0")

    store.add(record)

    assert [record] == store.records()
    assert record.samples == store.records()[0].samples


@pytest.mark.parametrize(
    "harm,doubt",
    [(Path.unlink, "samples-missing"), (lambda path: path.write_bytes(b"PAR1 no more"), "samples-damaged")],
)
def test_damaged_samples_cost_one_record_its_samples_and_nothing_else(store, harm, doubt):
    for repeat in range(2):
        store.add(make_record(repeat=repeat))
    harm(store.folder / "samples" / f"{make_record().run_id}.parquet")

    damaged, whole = store.records()

    assert damaged.samples is None
    assert [doubt] == [seen.code for seen in damaged.doubts]
    assert whole.samples is not None
    assert () == whole.doubts


def test_sql_reaches_runs_samples_and_layers(store):
    store.add(make_record(layers=True, workers=1, knobs={"compile": True}))
    store.add(make_record(workers=2, steps=10))
    store.add(failed_record(workers=4))

    runs = store.query('SELECT workers, outcome, "knob.compile" AS compile FROM runs ORDER BY workers').to_pylist()
    samples = store.query(
        "SELECT workers, count(*) AS n FROM samples JOIN runs USING (run_id, machine_id)"
        " WHERE kind = 'measured' GROUP BY workers ORDER BY workers"
    ).to_pylist()

    assert [1, 2, 4] == [row["workers"] for row in runs]
    assert ["ok", "ok", "failed"] == [row["outcome"] for row in runs]
    assert [True, None, None] == [row["compile"] for row in runs]
    assert [{"workers": 1, "n": 40}, {"workers": 2, "n": 20}] == samples
    assert 8 == store.query("SELECT count(*) AS n FROM layers")["n"][0].as_py()


def test_sql_on_an_empty_store_answers_empty(store):
    for view in ("runs", "samples", "layers", "meter"):
        assert 0 == store.query(f"FROM {view}").num_rows


def test_sql_leaves_out_a_damaged_file(store):
    store.add(make_record())
    store.add(make_record(repeat=1))
    (store.folder / "samples" / f"{make_record().run_id}.parquet").write_bytes(b"junk")

    assert 1 == store.query("SELECT DISTINCT run_id FROM samples").num_rows


def test_wrong_sql_is_told_what_there_is(store):
    with pytest.raises(StoreError) as caught:
        store.query("SELECT nothing FROM nowhere")
    assert "runs, samples, layers" in caught.value.hint


def test_sql_without_duckdb_is_told_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.delitem(sys.modules, "paceline.record.query", raising=False)

    with pytest.raises(StoreError) as caught:
        store.query("FROM runs")
    assert "paceline[sql]" in caught.value.hint


def test_sweep_removes_what_dead_writers_left_and_nothing_else(store):
    store.add(make_record())
    samples = store.folder / "samples"
    host = _temporary_name_of_this_host(store)
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    leftovers = [samples / "orphan.parquet", samples / f".x.parquet.{host}.{int(dead.stdout)}.tmp"]
    alive = samples / f".y.parquet.{host}.{os.getppid()}.tmp"
    foreign = samples / f".z.parquet.another-host.{int(dead.stdout)}.tmp"
    before_this_store = samples / "older.parquet"
    for path in (*leftovers, alive, foreign, before_this_store):
        path.write_bytes(b"x")
    os.utime(before_this_store, (time.time() - 3600, time.time() - 3600))

    removed = store.sweep()

    assert sorted(leftovers) == sorted(removed)
    assert {alive, foreign, before_this_store} <= set(samples.iterdir())
    assert store.records()[0].samples is not None


def _temporary_name_of_this_host(store):
    from paceline.record import sample_files

    temporary, _ = sample_files.write_temporary(store.folder / "samples" / "t.parquet", make_record().samples)
    temporary.unlink()
    return temporary.name.split(".")[-3]


def test_an_orphan_of_a_killed_writer_is_replaced_by_the_run_that_is_recorded(store):
    record = make_record()
    pq.write_table(make_record(random_seed=9).samples, store.folder / "samples" / f"{record.run_id}.parquet")

    store.add(record)

    assert record.samples == store.records()[0].samples


@pytest.mark.processes
def test_after_kill_9_every_run_is_there_once_or_not_at_all(tmp_path):
    folder = tmp_path / "store"
    lives = _start_writer(folder, "lives", 20)
    promised = set(lives.communicate(timeout=120)[0].split())
    assert lives.returncode == 0

    with Store.open(folder, create=True) as store:
        store.sweep()
        records = store.records()
        found = {path.stem for path in (folder / "samples").iterdir()}
    assert len(records) == len({r.run_id for r in records}) > 0
    assert promised <= {r.run_id for r in records}
    assert {r.run_id for r in records} == found
    for record in records:
        assert () == record.doubts
        assert make_record(trial=record.trial, repeat=record.repeat).samples == record.samples


@pytest.mark.processes
def test_two_writers_record_everything_once_and_fight_over_nothing(tmp_path):
    folder = tmp_path / "store"
    writers = [_start_writer(folder, "once", 10) for _ in range(2)]
    written = [run for writer in writers for run in writer.communicate(timeout=120)[0].split()]

    assert [0, 0] == [writer.returncode for writer in writers]
    with Store.open(folder) as store:
        assert sorted(written) == sorted(record.run_id for record in store.records())
    assert len(written) == len(set(written)) == 10


@pytest.mark.processes
def test_a_full_disk_stops_with_a_message_and_loses_nothing(tmp_path):
    """A limit on file size stands in for the disk: it fails the same writes."""
    folder = tmp_path / "store"
    with Store.open(folder, create=True) as store:
        store.add(make_record())
    program = (
        "import resource, sys; sys.path.insert(0, sys.argv[2]); from records import make_record\n"
        "from paceline.errors import StoreError; from paceline.record import Store\n"
        "store = Store.open(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "for repeat in (1, 2):\n"
        "    record = make_record(repeat=repeat, **({'samples': None} if repeat == 2 else {}))\n"
        "    try: store.add(record)\n"
        "    except StoreError as error: print(error.message, '|', error.hint)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, folder, WRITER.parents[2]],
        capture_output=True,
        text=True,
        env=_environment(),
        check=False,
    )

    lines = run.stdout.splitlines()
    assert 2 == len(lines), run.stderr
    assert all("could not be written" in line and "--store DIR" in line for line in lines)
    with Store.open(folder) as store:
        assert [make_record()] == store.records()
        assert 1 == len(list((folder / "samples").iterdir()))
        store.add(make_record(repeat=1))


def _start_writer(folder, mode, number):
    return subprocess.Popen(
        [sys.executable, WRITER, folder, mode, str(number)],
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(),
    )


def _environment():
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.parametrize("content", [b"this is no database, and never was one" * 50])
def test_a_damaged_database_says_how_to_move_it_aside(tmp_path, content):
    (tmp_path / "facts.sqlite").write_bytes(content)

    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path)

    assert "damaged" in caught.value.message
    assert f"mv {tmp_path} {tmp_path}.broken" in caught.value.hint
    assert content == (tmp_path / "facts.sqlite").read_bytes()


def test_damage_inside_is_told_too(tmp_path):
    with Store.open(tmp_path, create=True) as store:
        for repeat in range(5):
            store.add(make_record(repeat=repeat))
    facts = tmp_path / "facts.sqlite"
    content = facts.read_bytes()
    facts.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))

    with pytest.raises(StoreError, match="damaged"), Store.open(tmp_path) as store:
        store.records()


def test_no_store_says_how_to_get_one(tmp_path):
    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path / "nowhere")
    assert "paceline run" in caught.value.hint
    assert not (tmp_path / "nowhere").exists()
    assert not Store.exists(tmp_path)


def test_a_file_in_the_place_of_the_store_is_told(tmp_path):
    (tmp_path / "store").write_text("mine")
    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path / "store", create=True)
    assert "--store DIR" in caught.value.hint


READER = """
import sys
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.record import Store
from records import make_record

folder = Path(sys.argv[1])
with Store.open(folder) as store:
    assert [make_record()] == store.records()
    with pytest.raises(StoreError, match="cannot be written"):
        store.add(make_record(repeat=1))
with pytest.raises(StoreError, match="cannot be written"):
    Store.open(folder, create=True)
"""


def test_a_store_that_cannot_be_written_can_be_read(tmp_path):
    folder = tmp_path / "store"
    with Store.open(folder, create=True) as store:
        store.add(make_record())
    program = [sys.executable, "-c", READER, str(folder)]
    if os.geteuid() == 0:  # root may write whatever the mode says, but not on a read-only file system
        read_only = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        program = ["unshare", "--mount", "sh", "-c", read_only, str(folder), *program]
    else:
        for path in (folder / "facts.sqlite", folder):
            path.chmod(0o555)
    done = subprocess.run(
        program, env=os.environ | {"PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=False
    )
    folder.chmod(0o755)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("left", [None, b""])
def test_a_store_whose_making_was_killed_is_finished(tmp_path, left):
    (tmp_path / "samples").mkdir()
    if left is not None:
        (tmp_path / "facts.sqlite").write_bytes(left)

    with Store.open(tmp_path) as store:
        assert [] == store.records()


def test_numbers_of_numpy_are_stored_as_numbers(store):
    np = pytest.importorskip("numpy")
    store.add(make_record(resources={"t_s": [np.float64(0.5)], "n": np.int64(3)}))

    assert {"t_s": [0.5], "n": 3} == store.records()[0].resources
    assert json.dumps(store.records()[0].resources)


def test_a_copied_store_is_a_store(store, tmp_path):
    store.add(make_record())
    store.close()
    shutil.copytree(store.folder, tmp_path / "copy")

    with Store.open(tmp_path / "copy") as copy:
        assert make_record().samples == copy.records()[0].samples
