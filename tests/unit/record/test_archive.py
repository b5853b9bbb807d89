"""An archive gives back the records that went in, raw samples included, or says why it cannot."""

from __future__ import annotations

import pytest

from paceline.errors import StoreError
from paceline.record import Store
from paceline.record.archive import read_archive, unpack_archive, write_archive
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
