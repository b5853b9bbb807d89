"""Every version ever shipped can be read; the future and prehistory are refused, each in its own words."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.record import SCHEMA_VERSION, Store, migrate, summarize
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


def add_column(connection):
    connection.execute("ALTER TABLE runs ADD COLUMN mood TEXT DEFAULT 'calm'")


def rename_column(connection):
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
    updates = {SCHEMA_VERSION + 1: add_column, SCHEMA_VERSION + 2: lambda c: c.execute("NOT SQL")}

    with pytest.raises(sqlite3.Error):
        migrate.migrate(old_store, tmp_path, target=SCHEMA_VERSION + 2, updates=updates)

    assert SCHEMA_VERSION == migrate.stored_version(old_store)
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        old_store.execute("SELECT mood FROM runs")


def test_there_is_a_step_to_every_version_after_the_first():
    assert set(range(migrate.OLDEST_READ + 1, SCHEMA_VERSION + 1)) == set(migrate.UPDATES)
