from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.run.events import LastWord, log_tail, read_events
from paceline.run.series import layers_table, samples_table


def line(event: str, **fields: object) -> str:
    return json.dumps({"v": 1, "t": 0.0, "rank": 0, "event": event, **fields})


def block(first: int, count: int, kind: str = "measured") -> str:
    times = [0.1] * count
    return line(
        "steps",
        kind=kind,
        first=first,
        start_s=times,
        wall_s=times,
        cpu_s=times,
        loss=[None] * count,
        phases={"forward": times},
    )


def test_line_cut_off_by_a_kill_is_passed_over_and_the_rest_counts(tmp_path: Path) -> None:
    path = tmp_path / "events.0.jsonl"
    path.write_text("\n".join([line("hello", pid=7), block(0, 2), block(2, 3)[:40]]))
    events = read_events(path, 0)

    assert events.hello.pid == 7
    assert events.steps == 2
    assert events.stage == "after step 1"


@pytest.mark.parametrize(
    "nonsense",
    ["12", "{}", '{"event": "steps"}', '{"event": "ready", "facts": [1]}', "null", block(2, 1).replace("null", '"x"')],
)
def test_line_that_is_no_event_is_noted_and_passed_over(tmp_path: Path, nonsense: str) -> None:
    path = tmp_path / "e"
    path.write_text("\n".join([block(0, 2), nonsense]))
    events = read_events(path, 0)

    assert events.steps == 2
    assert samples_table([events]).num_rows == 2
    assert events.notes == ["line 2 of its events could not be read"]


def test_rank_without_a_file_said_nothing(tmp_path: Path) -> None:
    events = read_events(tmp_path / "absent", 3)

    assert (events.rank, events.steps, events.stage) == (3, 0, "at the start")
    assert samples_table([events]) is None


def test_samples_have_a_row_a_rank_and_step(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"{rank}").write_text("\n".join([block(0, 1, "first"), block(1, 2)]))
    table = samples_table([read_events(tmp_path / str(rank), rank) for rank in (0, 1)])

    assert table is not None
    assert table.column("step").to_pylist() == [0, 1, 2, 0, 1, 2]
    assert table.column("kind").to_pylist() == ["first", "measured", "measured"] * 2
    assert table.column("phase.forward").null_count == 0


def test_later_facts_win(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_text("\n".join([line("ready", facts={"a": 1, "b": 1}), line("facts", facts={"b": 2})]))

    assert read_events(path, 0).facts == {"a": 1, "b": 2}


def test_last_word_of_a_rank_is_read_in_our_time(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_text(line("crashed", error="Oops", message="too bad", traceback=["line 1", "line 2"]))

    assert read_events(path, 0, clock_ahead_s=2.0).last_word == LastWord(
        kind="crashed", unix_s=-2.0, error="Oops", message="too bad", traceback=("line 1", "line 2")
    )


def test_layer_times_become_rows(tmp_path: Path) -> None:
    path = tmp_path / "e"
    path.write_text(line("layers", first=5, forward_s={"conv": [1.0, 2.0]}, gradient_ready_s={"conv": [3.0, 4.0]}))
    table = layers_table([read_events(path, 0)])

    assert table is not None
    assert table.to_pylist()[-1] == {"rank": 0, "layer": "conv", "what": "gradient_ready", "step": 6, "seconds": 4.0}


def test_log_tail_is_the_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\n".join(b"line %d" % n for n in range(5000)) + b"\xff")

    assert log_tail(path)[-2:] == ("line 4998", "line 4999\N{REPLACEMENT CHARACTER}")
    assert len(log_tail(path)) == 20
