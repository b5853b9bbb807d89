"""What the processes of a run printed, as a table with one row per process: `process`, `text`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paceline.record.record import Record

SCHEMA = pa.schema([("process", pa.string()), ("text", pa.string())])


def output_table(texts: Mapping[str, str]) -> pa.Table | None:
    """A table from the name of each process and what it printed; None if none printed anything."""
    printed = {name: text for name, text in texts.items() if text}
    if not printed:
        return None
    return pa.table({"process": list(printed), "text": list(printed.values())}, schema=SCHEMA)


def output_text(records: Sequence[Record]) -> str:
    """What all processes of these runs printed, each under a line with the run and the process."""
    blocks = [
        f"==> {record.run_id} {row['process']} <==\n{row['text'].rstrip()}\n"
        for record in records
        if record.output is not None
        for row in record.output.to_pylist()
    ]
    return "\n".join(blocks)
