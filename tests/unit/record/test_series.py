"""Series of a run in files: read when somebody looks, never other than they were written."""

import sqlite3
from dataclasses import replace
from random import Random

import pytest

from paceline.compare import compare
from paceline.errors import StoreError
from paceline.record import Store, sample_files, summaries, summarize
from paceline.record.meter import meter_looks, meter_table
from paceline.record.on_demand import file_of
from paceline.record.store import ARCHIVE
from paceline.record.summary import sum_up
from records import fused_record, make_record

FLIPS = 400
USED = {"rss_bytes": 1e6, "cpu_s": 0.5, "read_bytes": 0.0, "written_bytes": 10.0}
LOOKS = [
    {"t_s": 0.5, "processes": {"worker0": USED, "worker1": USED}},
    {"t_s": 1.0, "processes": {}},
    {"t_s": 1.5, "processes": {"worker1": USED}},
]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store", create=True) as opened:
        yield opened


def samples_file(store, record):
    return store.folder / "samples" / f"{record.run_id}.parquet"


def test_of_400_flipped_bits_none_gives_other_numbers(store):
    record = make_record(steps=30)
    store.add(record)
    path = samples_file(store, record)
    content, random = path.read_bytes(), Random(7)
    for _ in range(FLIPS):
        bit = random.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)

        (back,) = store.records()

        assert back.samples is None
        assert summarize(back) is None
        assert ["samples-damaged"] == [doubt.code for doubt in back.doubts]
    path.write_bytes(content)
    assert record.samples == store.records()[0].samples


def test_a_file_that_is_damaged_between_verifying_and_reading_gives_nothing(store):
    store.add(make_record())
    (back,) = store.records()
    path = samples_file(store, back)
    path.write_bytes(path.read_bytes()[:-1] + b"x")

    assert back.samples is None


def test_a_damaged_run_stays_in_its_row_and_the_row_says_so(store):
    for repeat in range(3):
        store.add(make_record(repeat=repeat))
    samples_file(store, make_record(repeat=1)).write_bytes(b"junk")

    (row,) = compare(store.records()).rows

    assert 2 == row.n_runs
    (warning,) = [warning for warning in row.warnings if warning.code == "samples-damaged"]
    assert 1 == warning.n_runs


def test_a_trial_whose_samples_are_all_damaged_has_no_numbers_and_says_why(store):
    store.add(make_record())
    samples_file(store, make_record()).write_bytes(b"junk")

    (row,) = compare(store.records()).rows

    assert ("no numbers", None) == (row.outcome, row.throughput)
    assert "samples-damaged" in {warning.code for warning in row.warnings}
    assert "samples" in row.reason


def test_samples_are_not_decoded_before_somebody_looks(store, monkeypatch):
    decoded = []
    read = sample_files._decoded
    monkeypatch.setattr(sample_files, "_decoded", lambda *given: decoded.append(1) or read(*given))
    store.add(make_record())

    (back,) = store.records()
    assert 2 == summarize(back).n_ranks
    assert [] == decoded
    assert back.samples is back.samples
    assert [1] == decoded


def test_a_record_with_other_samples_forgets_the_file(store):
    store.add(make_record(step_s=0.05))
    (back,) = store.records()

    slower = replace(back, samples=make_record(step_s=0.1).samples)

    assert file_of(slower, "samples") is None
    assert 2 == pytest.approx(summarize(slower).step_s / summarize(back).step_s, rel=0.1)


@pytest.mark.parametrize(
    "record", [make_record(), make_record(workers=1), fused_record(seconds={"forward": 0.01}), make_record(steps=1)]
)
def test_a_kept_summary_is_the_same_to_the_last_bit(store, record):
    store.add(record)

    assert sum_up(record) == summarize(store.records()[0])
    assert sum_up(record) == summaries.from_json(summaries.to_json(sum_up(record)))


def test_summaries_of_another_version_or_other_samples_do_not_count_and_are_kept_anew(store):
    record = make_record()
    store.add(record)
    connection = sqlite3.connect(store.folder / "facts.sqlite")
    for change in ("version = 0", "checksum = 'other'"):
        with connection:
            connection.execute(f"UPDATE summaries SET {change}, json = 'null'")

        assert sum_up(record) == summarize(store.records()[0])
        ((version, text),) = connection.execute("SELECT version, json FROM summaries").fetchall()
        assert (summaries.VERSION, True) == (version, text != "null")
    connection.close()


def test_what_the_meter_saw_is_a_file_and_comes_back(store):
    store.add(make_record(meter=meter_table(LOOKS)))

    (back,) = store.records()

    assert LOOKS == meter_looks(back.meter)
    assert "cpu_s" not in back.resources
    assert {"worker0", "worker1", None} == set(store.query("SELECT process FROM meter")["process"].to_pylist())


def test_a_damaged_meter_gives_no_curves(store):
    store.add(make_record(meter=meter_table(LOOKS)))
    (path,) = (store.folder / "meter").iterdir()
    path.write_bytes(path.read_bytes()[:-1])

    (back,) = store.records()

    assert back.meter is None
    assert back.samples is not None


def test_a_row_tells_where_it_came_from(store):
    store.add(make_record())
    store.add_all([make_record(repeat=1)], origin=ARCHIVE)

    connection = sqlite3.connect(store.folder / "facts.sqlite")
    assert [("run",), ("archive",)] == connection.execute("SELECT origin FROM runs ORDER BY id").fetchall()
    connection.close()


def test_several_runs_are_recorded_all_or_none(store):
    store.add(make_record(repeat=2))

    with pytest.raises(StoreError, match="recorded already"):
        store.add_all(make_record(repeat=repeat) for repeat in range(3))
    assert [2] == [record.repeat for record in store.records()]
    store.sweep()

    store.add_all([make_record(), make_record(machine_id="machine-b", random_seed=9), make_record(repeat=1)])
    assert [0, 0, 1, 2] == sorted(record.repeat for record in store.records())
    assert all(record.samples is not None and not record.doubts for record in store.records())
    assert 4 == len({file_of(record, "samples").checksum for record in store.records()})
