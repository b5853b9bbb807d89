import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from paceline.errors import StoreError
from paceline.record import runs_table, samples_table, summarize, to_csv, to_json
from paceline.record.export import write_parquet, write_text
from paceline.record.record import Doubt, Record
from records import failed_record, make_record


@pytest.fixture
def records():
    doubts = (Doubt(code="spread", message="12 %"), Doubt(code="drift", message="9 %"))
    return [
        make_record(knobs={"compile": True, "threads": 2}, doubts=doubts),
        make_record(workers=1, knobs={"compile": "max"}, repeat=1),
        failed_record(options={"widths": [1, 2]}),
    ]


def test_csv_has_one_row_a_run(records):
    rows = list(csv.DictReader(io.StringIO(to_csv(records))))

    assert [r.run_id for r in records] == [row["run_id"] for row in rows]
    assert ["ok", "ok", "failed"] == [row["outcome"] for row in rows]
    assert "spread drift" == rows[0]["warnings"]
    assert summarize(records[0]).throughput == pytest.approx(float(rows[0]["throughput"]))
    assert "" == rows[2]["throughput"]
    assert "[1, 2]" == rows[2]["option.widths"]


def test_a_column_of_mixed_kinds_becomes_text(records):
    assert ["true", "max", None] == runs_table(records)["knob.compile"].to_pylist()


def test_columns_of_one_family_stand_together(records):
    names = runs_table(records[::-1]).column_names
    for family in ("knob.", "phase.", "share."):
        places = [i for i, name in enumerate(names) if name.startswith(family)]
        assert places == list(range(places[0], places[-1] + 1))


def test_runs_become_a_data_frame(records):
    frame = runs_table(records).to_pandas()
    assert [64, 32, 64] == frame["batch_global"].tolist()


def test_samples_become_one_long_table(records):
    table = samples_table(records)

    assert sum(r.samples.num_rows for r in records if r.samples is not None) == table.num_rows
    assert {r.run_id for r in records[:2]} == set(table["run_id"].to_pylist())
    assert {"framework", "model", "workers", "rank", "step", "wall_s"} <= set(table.column_names)
    # One worker does not communicate, so its rows have no such number.
    assert 43 == table["phase.communication"].null_count


def test_no_records_make_empty_tables():
    assert 0 == runs_table([]).num_rows
    assert 0 == samples_table([failed_record()]).num_rows
    assert "" == to_csv([]).strip()


def test_json_holds_the_whole_record(records):
    data = json.loads(json.dumps(to_json(records, samples=True), allow_nan=False))

    row = data["records"][0]
    assert records[0].samples.to_pydict() == row["samples"]
    assert summarize(records[0]).throughput == row["summary"]["throughput"]
    known = {k: v for k, v in row.items() if k not in {"trial_id", "summary", "series", "samples", "layers"}}
    assert records[0] == Record.from_json(known)


def test_json_has_no_word_for_nan():
    record = make_record(resources={"x": [float("nan"), float("inf"), 1.0]})
    assert [None, None, 1.0] == to_json([record])["records"][0]["resources"]["x"]


def test_parquet_and_text_are_written_to_a_path(records, tmp_path):
    write_parquet(records, tmp_path / "s.parquet")
    write_text(to_csv(records), tmp_path / "r.csv")

    assert samples_table(records) == pq.read_table(tmp_path / "s.parquet")
    assert to_csv(records) == (tmp_path / "r.csv").read_text()


def test_a_path_that_cannot_be_written_is_told(records, tmp_path):
    with pytest.raises(StoreError, match="No such file"):
        write_parquet(records, tmp_path / "nowhere" / "s.parquet")
