"""An archive gives back the records that went in, raw samples included, or says why it cannot."""

from __future__ import annotations

import json
import zipfile

import pytest

from paceline.errors import StoreError
from paceline.record import Store
from paceline.record.archive import read_archive, unpack_archive, write_archive
from paceline.record.meter import USED, meter_looks
from records import failed_record, fused_record, make_record


def test_records_come_out_as_they_went_in(tmp_path):
    records = [
        make_record(workers=1),
        make_record(workers=2, repeat=1),
        make_record(workers=1, layers=True),
        failed_record(),
        fused_record(seconds={"forward": 0.01}),
    ]
    write_archive(records, tmp_path / "runs.zip")
    found = read_archive(tmp_path / "runs.zip")

    assert [one.to_json() for one in found] == [one.to_json() for one in records]
    for one, other in zip(found, records, strict=True):
        for name in ("samples", "layers"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert (mine is None) == (theirs is None)
            assert mine is None or mine.to_pydict() == theirs.to_pydict()
    assert [path.name for path in tmp_path.iterdir()] == ["runs.zip"]


def test_a_store_gets_what_it_does_not_have(tmp_path):
    records = [make_record(workers=2, repeat=repeat) for repeat in range(3)]
    write_archive(records, tmp_path / "runs.zip")
    with Store.open(tmp_path / "store", create=True) as store:
        store.add(records[1])

    assert unpack_archive(tmp_path / "runs.zip", tmp_path / "store") == (2, 1)
    assert unpack_archive(tmp_path / "runs.zip", tmp_path / "store") == (0, 3)
    with Store.open(tmp_path / "store") as store:
        found = {one.repeat: one for one in store.records()}
    assert sorted(found) == [0, 1, 2]
    assert all(found[one.repeat].samples.to_pydict() == one.samples.to_pydict() for one in records)


def rewritten(path, change):
    """An archive with other content, its parts by name."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in change(parts).items():
            file.writestr(name, content)


@pytest.mark.parametrize("part", ["facts.jsonl", "samples.parquet"])
def test_a_part_that_is_not_what_was_written_is_refused_whole(tmp_path, part):
    write_archive([make_record(repeat=repeat) for repeat in range(3)], tmp_path / "runs.zip")
    rewritten(tmp_path / "runs.zip", lambda parts: parts | {part: parts[part][:-9] + b"1" + parts[part][-8:]})

    with pytest.raises(StoreError, match=f"{part} in it is damaged"):
        unpack_archive(tmp_path / "runs.zip", tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("runs", [[make_record(run_id="other.r0.a0")], [make_record(), make_record()]])
def test_runs_that_are_not_what_their_ids_say_are_refused(tmp_path, runs):
    write_archive(runs, tmp_path / "runs.zip")

    with pytest.raises(StoreError, match="not what its id says, or is there twice"):
        unpack_archive(tmp_path / "runs.zip", tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_archives_of_version_1_are_read(tmp_path):
    """As they are committed under validation/ and benchmarks/: no checksums, the meter in the facts."""
    looks = [{"t_s": 0.5, "processes": {"worker0": dict.fromkeys(USED, 1.0)}}]
    record = make_record()
    write_archive([record], tmp_path / "runs.zip")

    def as_version_1(parts):
        facts = json.loads(parts["facts.jsonl"])
        del facts["machines"]
        facts |= {"schema_version": 1, "resources": {"period_s": 0.5, "samples": looks, "network": None}}
        facts["hosts"] = [{"name": "host0", "address": "127.0.0.1", "cores": [0]}]
        about = {"version": 1, "schema": 1, "runs": 1}
        return parts | {"facts.jsonl": json.dumps(facts), "about.json": json.dumps(about)}

    rewritten(tmp_path / "runs.zip", as_version_1)

    (back,) = read_archive(tmp_path / "runs.zip")
    assert looks == meter_looks(back.meter)
    assert ["host0"] == [machine.host for machine in back.machines]
    assert record.samples.to_pydict() == back.samples.to_pydict()
    assert unpack_archive(tmp_path / "runs.zip", tmp_path / "store") == (1, 0)


def test_it_is_much_smaller_than_what_went_in(tmp_path):
    records = [make_record(workers=2, repeat=repeat) for repeat in range(40)]
    write_archive(records, tmp_path / "runs.zip")

    assert (tmp_path / "runs.zip").stat().st_size < 40 * 12_000


@pytest.mark.parametrize("content", [None, b"", b"no archive"], ids=["absent", "empty", "other"])
def test_what_is_no_archive_is_said_to_be_none(tmp_path, content):
    path = tmp_path / "runs.zip"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(StoreError, match="no archive of records"):
        unpack_archive(path, tmp_path / "store")
    assert not (tmp_path / "store").exists()
