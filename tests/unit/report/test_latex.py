from __future__ import annotations

import re

import pytest

from paceline.report.latex import escaped, latex
from records import make_record
from report_data import HOSTILE, make_records, make_report


def tables(text):
    return re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL)


def rows_of(body):
    return [line for line in body.splitlines() if line.endswith("\\\\")]


def strong():
    return [
        make_record(workers=n, batch=64 // n, scaling="strong", step_s=0.1 / n, repeat=r)
        for n in (1, 2, 4)
        for r in range(3)
    ]


def test_each_kind_of_scaling_has_a_table_with_its_efficiency():
    data = make_report(records=[*make_records(), *strong()])
    text = latex(data)

    assert [len(rows_of(body)) for _, body in tables(text)] == [1 + 6, 1 + 3]
    assert "Weak scaling" in text
    assert "Strong scaling" in text
    assert "efficiency" in text


def test_every_row_has_as_many_cells_as_the_table_has_columns():
    for columns, body in tables(latex(make_report())):
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows_of(body)} == {len(columns)}


def test_where_the_plot_is_stands_beside_its_table():
    assert re.search(r"^% plot: figures/scaling-weak-\S+\.svg ", latex(make_report(), "figures"), re.MULTILINE)
    assert "paceline report --svg DIR" in latex(make_report())


def test_study_without_scaling_has_a_table_of_what_was_measured():
    text = latex(make_report(records=[make_record(repeat=r) for r in range(2)]))

    assert "\\label{tab:measured}" in text
    assert len(tables(text)) == 1


def test_fragment_needs_no_package_and_no_letter_beyond_ascii():
    text = latex(make_report(name=HOSTILE, records=make_records(model=HOSTILE), question="Größe → 数?"))

    assert text.isascii()
    assert "\\toprule" not in text
    assert "\\usepackage" not in text


@pytest.mark.parametrize("sign", "&%$#_{}")
def test_signs_of_latex_are_escaped(sign):
    assert escaped(f"a{sign}b") == f"a\\{sign}b"


def test_lines_of_others_stay_in_their_comment():
    text = latex(make_report(name="a\n\\input{secret}", command="b\n\\input{secret}"))

    assert not re.search(r"^\\input", text, re.MULTILINE)
