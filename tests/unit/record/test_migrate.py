"""Every version ever shipped can be read; the future and prehistory are refused, each in its own words."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.record import SCHEMA_VERSION, Store, migrate, summarize
from paceline.record.machines import Machine
from paceline.record.meter import meter_looks
from records import make_record

GOLDEN = Path(__file__).parents[2] / "data" / "record"


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_every_version_ever_shipped_can_be_read(version, tmp_path):
    shutil.copytree(GOLDEN / f"v{version}", tmp_path / "store")

    with Store.open(tmp_path / "store") as store:
        good, failed = store.records()
        assert 3 == store.query("SELECT count(DISTINCT step) AS n FROM samples")["n"][0].as_py()
        assert 8 == store.query("SELECT count(*) AS n FROM layers")["n"][0].as_py()

    assert 320.0 == pytest.approx(summarize(good).throughput, rel=0.05)
    assert "timed_out" == failed.outcome.kind.value
    assert ("Traceback", "boom") == failed.outcome.log_tail
    assert () == good.doubts


def test_version_1_is_updated_with_nothing_lost(tmp_path):
    folder = tmp_path / "store"
    shutil.copytree(GOLDEN / "v1", folder)
    used = {"rss_bytes": 1e6, "cpu_s": 0.5, "read_bytes": 0.0, "written_bytes": 10.0}
    looks = [{"t_s": 0.5, "processes": {"worker0": used}}, {"t_s": 1.0, "processes": {}}]
    before = _with_facts_of_a_real_run(folder, looks)

    with Store.open(folder) as store:
        good, failed = store.records()
        runs = store.query("SELECT run_id, trial_id, started, outcome FROM runs ORDER BY started").to_pylist()

    assert before == [tuple(row.values()) for row in runs]
    assert [good.run_id, failed.run_id] == [row["run_id"] for row in runs]
    assert looks == meter_looks(good.meter)
    assert {"period_s": 0.5, "network": None} == good.resources
    assert (Machine(host="host0", cpu_model="Test CPU", kernel="6.1.0"),) == good.machines
    assert 3 == good.samples.num_rows
    assert SCHEMA_VERSION == good.schema_version
    with Store.open(folder) as store:
        assert [good, failed] == store.records()
        store.add(make_record(repeat=7))


def _with_facts_of_a_real_run(folder, looks):
    """The golden store of version 1 with what real runs had in their rows; what must come out of it again."""
    connection = sqlite3.connect(folder / "facts.sqlite")
    with connection:
        connection.execute("DROP TRIGGER runs_never_change")
        for run, text in connection.execute("SELECT id, json FROM runs").fetchall():
            facts = json.loads(text)
            facts["resources"] = {"period_s": 0.5, "samples": looks, "network": None}
            facts["hosts"] = [{"name": "host0", "address": "127.0.0.1", "cores": [0]}]
            facts["machine"]["kernel"] = "6.1.0"
            connection.execute("UPDATE runs SET json = ? WHERE id = ?", (json.dumps(facts), run))
        connection.execute(
            "CREATE TRIGGER runs_never_change BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    rows = connection.execute("SELECT run_id, trial_id, started, outcome FROM runs ORDER BY started").fetchall()
    connection.close()
    return rows


def test_a_file_that_was_damaged_before_the_update_can_be_restored_after_it(tmp_path):
    shutil.copytree(GOLDEN / "v1", tmp_path / "store")
    (path,) = (tmp_path / "store" / "samples").iterdir()
    content = path.read_bytes()
    path.write_bytes(b"junk")

    with Store.open(tmp_path / "store") as store:
        assert ["samples-damaged"] == [doubt.code for doubt in store.records()[0].doubts]
        path.write_bytes(content)
        assert 320.0 == pytest.approx(summarize(store.records()[0]).throughput, rel=0.05)


def set_version(folder, version):
    connection = sqlite3.connect(folder / "facts.sqlite")
    with connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(version),))
    connection.close()


@pytest.mark.parametrize(
    "version,said,hint",
    [(SCHEMA_VERSION + 1, "newer Paceline", "pip install --upgrade"), (0, "too old", "earlier Paceline")],
)
def test_too_new_and_too_old_are_told_apart_and_left_alone(version, said, hint, tmp_path):
    with Store.open(tmp_path, create=True) as store:
        store.add(make_record())
    set_version(tmp_path, version)

    with pytest.raises(StoreError, match=said) as caught:
        Store.open(tmp_path, create=True)

    assert hint in caught.value.hint
    set_version(tmp_path, SCHEMA_VERSION)
    with Store.open(tmp_path) as store:
        assert [make_record()] == store.records()


def test_a_database_of_something_else_is_not_touched(tmp_path):
    connection = sqlite3.connect(tmp_path / "facts.sqlite")
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = (tmp_path / "facts.sqlite").read_bytes()

    with pytest.raises(StoreError, match="something else"):
        Store.open(tmp_path, create=True)

    assert before == (tmp_path / "facts.sqlite").read_bytes()


@pytest.fixture
def old_store(tmp_path):
    with Store.open(tmp_path, create=True) as store:
        store.add(make_record())
    connection = sqlite3.connect(tmp_path / "facts.sqlite", isolation_level=None)
    yield connection
    connection.close()


def add_column(connection, _folder):
    connection.execute("ALTER TABLE runs ADD COLUMN mood TEXT DEFAULT 'calm'")


def rename_column(connection, _folder):
    connection.execute("ALTER TABLE runs RENAME COLUMN mood TO temper")


def test_versions_are_updated_step_by_step_with_a_copy_kept(old_store, tmp_path):
    updates = {SCHEMA_VERSION + 1: add_column, SCHEMA_VERSION + 2: rename_column}

    migrate.migrate(old_store, tmp_path, target=SCHEMA_VERSION + 2, updates=updates)

    assert ("calm",) == old_store.execute("SELECT temper FROM runs").fetchone()
    assert SCHEMA_VERSION + 2 == migrate.stored_version(old_store)
    copy = sqlite3.connect(tmp_path / f"facts.v{SCHEMA_VERSION}.sqlite")
    assert SCHEMA_VERSION == migrate.stored_version(copy)
    copy.close()


def test_an_update_that_fails_changes_nothing(old_store, tmp_path):
    updates = {SCHEMA_VERSION + 1: add_column, SCHEMA_VERSION + 2: lambda c, _: c.execute("NOT SQL")}

    with pytest.raises(sqlite3.Error):
        migrate.migrate(old_store, tmp_path, target=SCHEMA_VERSION + 2, updates=updates)

    assert SCHEMA_VERSION == migrate.stored_version(old_store)
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        old_store.execute("SELECT mood FROM runs")


def test_there_is_a_step_to_every_version_after_the_first():
    assert set(range(migrate.OLDEST_READ + 1, SCHEMA_VERSION + 1)) == set(migrate.UPDATES)
