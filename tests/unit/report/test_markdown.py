from __future__ import annotations

import re

from paceline.compare import Collectives
from paceline.record.record import Doubt
from paceline.report.markdown import markdown, plain
from paceline.report.numbers import plain as shown
from report_data import HOSTILE, make_records, make_report


def table_rows(text):
    return [line for line in text.splitlines() if line.startswith("| ")][2:]


def test_pull_request_gets_answer_table_verdicts_findings_and_folded_warnings():
    doubt = Doubt(code="spread", message="steps vary by 12 %", hint="close other programs")
    text = markdown(make_report(records=make_records(doubts=(doubt,))))

    parts = [
        "## study",
        "**With 4 workers, k=0 is 1.2",
        "> How well",
        "Recommended: Take two",
        "| trial | runs |",
        "### Verdicts",
        "### What holds it back",
        "<details><summary>Warnings (1)</summary>",
        "steps vary",
        "</details>",
        "Repeat it: `paceline run s.toml --again`",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)


def test_table_has_every_row_with_its_numbers():
    data = make_report()
    rows = table_rows(markdown(data))

    assert len(rows) == len(data.results.rows)
    for row, line in zip(data.results.rows, rows, strict=True):
        assert f"| {shown(row.throughput)} |" in line


def test_hostile_names_break_neither_the_table_nor_the_page():
    text = markdown(make_report(name=HOSTILE, records=make_records(model=HOSTILE, framework=HOSTILE)))

    assert "<script" not in text
    assert "<img" not in text
    cells = {len(re.split(r"(?<!\\)\|", row)) for row in table_rows(text)}
    assert len(cells) == 1


def test_lines_of_others_stay_on_one_line():
    assert plain("a\n\n# b | c `d` *e*") == "a # b \\| c \\`d\\` \\*e\\*"


def test_no_warnings_no_fold():
    text = markdown(make_report(explanations=(), advice=None))

    assert "<details>" not in text
    assert "Recommended" not in text
    assert "holds it back" not in text


def test_caution_is_marked_below_the_answer():
    _, answer, *others = markdown(make_report(records=make_records(simulated=True))).split("\n\n")

    assert answer.startswith("**With 4 workers, k=0 is 1.2")
    assert "**Caution:** Times are simulated, not measured." in others[:2]


def test_collectives_without_a_run_are_a_text_too():
    assert "No answer yet: no collective was measured." in markdown(
        make_report(results=Collectives(tables=(), shared="", notes=()))
    )
