"""No reader holds a 90 % interval against a 95 % one unawares: every table says the level of its intervals."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from explained import make_explanation, make_finding
from paceline.compare import compare
from paceline.explain.finding import Remedy, promised
from paceline.model.forecast.catalogue import device
from paceline.model.forecast.guess import guess
from paceline.model.forecast.predict import conditions_for, predict
from paceline.report.explanation import explanation_text
from paceline.report.gallery import gallery
from paceline.report.html import page
from paceline.report.latex import latex
from paceline.report.markdown import markdown
from paceline.report.model import calibration_text, prediction_text
from paceline.report.sheet import LEVEL, Line, Sheet, fields, level_cell, measured, word
from paceline.report.sheets import measurement_sheet, verdict_sheet
from paceline.report.text import comparison_table
from paceline.stats.estimate import Estimate, exactly
from paceline.workloads import load_workload
from records import make_record
from report_data import make_report

CALIBRATION = guess(load_workload("resnet20", {}), device("V100-SXM2"))
PREDICTED = [predict(CALIBRATION, conditions_for(CALIBRATION, workers=n, batch=32)) for n in (1, 2, 4, 8)]


def report_of(runs):
    """Two knobs and three sizes with so many runs each, and what a model says of the first knob."""
    records = [
        make_record(knobs={"k": k}, workers=n, step_s=0.05 * (1 + 0.2 * k) * n**0.3 * (1 + 0.01 * r), repeat=r)
        for k in (0, 1)
        for n in (1, 2, 4)
        for r in range(runs)
    ]
    base = compare(records).rows[0].key
    return make_report(records=records, timelines={}, resources={}, curves={base: PREDICTED})


def sheets_of(data):
    return [measurement_sheet(data.results), verdict_sheet(data.results), *(f.sheet for f in gallery(data).all())]


def levels_of(line):
    return {cell.level for cell in line.cells} - {None}


def cell(level):
    """A number with an interval of this level."""
    quantity = Estimate(value=2.0, low=1.0, high=3.0, level=level, unit="1", by="measured", n_runs=3)
    return measured(quantity, "2 (1–3)")


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_every_table_names_the_level_of_its_intervals(runs):
    for sheet in sheets_of(report_of(runs)):
        levels = {level for line in sheet.lines for level in levels_of(line)}
        if LEVEL in [field.name for field in sheet.fields]:
            continue
        assert len(levels) <= 1, sheet.caption
        assert all(f"{level * 100:g} %" in sheet.caption for level in levels), sheet.caption


@pytest.mark.parametrize(("runs", "measured_level"), [(1, "-"), (2, "-"), (3, "0.95")])
def test_rows_of_a_scaling_table_say_the_level_of_their_own_intervals(runs, measured_level):
    (figure,) = gallery(report_of(runs)).scaling
    rows = list(csv.DictReader(io.StringIO(figure.csv())))

    assert {row[LEVEL] for row in rows if row["by"] == "measured"} == {measured_level}
    assert {row[LEVEL] for row in rows if row["by"] == "guessed"} == {"0.9"}


def test_latex_says_the_level_in_each_row_of_a_table_with_predictions():
    text = latex(report_of(3))

    assert "family & by & level & workers" in text
    assert len(re.findall(r"& measured & 95 \\% &", text)) == 6
    assert len(re.findall(r"& guessed & 90 \\% &", text)) == len(PREDICTED)


def test_page_says_the_level_of_every_interval():
    cells = re.findall(r"<td[^>]*data-low=[^>]*>", page(report_of(3)))
    by_level = {level: [cell for cell in cells if f'data-level="{level}"' in cell] for level in (0.95, 0.9)}

    assert len(by_level[0.9]) == 2 * len(PREDICTED)
    exact = [cell for cell in cells if "data-level" not in cell]
    assert len(by_level[0.95]) + len(by_level[0.9]) + len(exact) == len(cells)
    assert all(re.search(r'data-low="([^"]*)" data-high="\1"', cell) for cell in exact)


def test_markdown_and_text_show_measured_intervals_only_and_name_their_level():
    data = report_of(3)
    table = markdown(data).partition("###")[0]
    text = comparison_table(data.results)

    assert "In brackets: 95 % interval of the mean over runs" in table
    assert "in brackets: 95 % interval of the mean over runs" in text
    assert "90 %" not in text


def test_predictions_and_calibrations_name_their_level():
    answer = {
        "calibration": CALIBRATION,
        "predictions": PREDICTED,
        "knee": None,
        "worth": 8,
        "without": [],
        "helps": [],
    }
    extras = {"epoch": None, "price": None, "power": None, "memory": None}

    assert "guessed, 90 % intervals" in prediction_text(answer, extras, 100)
    assert "interval (99 % for all)" in calibration_text(replace(CALIBRATION, by="modelled"), 100)


def test_explanations_name_the_level_of_every_gain():
    finding = make_finding(change=Remedy(words="hide the exchange", gain=promised(1.2, 1.1, 1.3)))
    text = explanation_text(make_explanation(findings=(finding,)), 100)

    assert "1.27 × (1.21–1.33, 90 %) as fast" in text
    assert "1.20 × (1.10–1.30, 90 %) the throughput" in text


def test_table_with_unmarked_levels_is_refused():
    lines = tuple(Line(key="", cells=(word(""), cell(level))) for level in (0.95, 0.9))

    with pytest.raises(ValueError, match="several levels in one table, unmarked: Speed"):
        Sheet(caption="Speed", fields=fields(name="name", speed="speed"), lines=lines)


def test_table_that_marks_another_level_than_its_intervals_have_is_refused():
    lines = tuple(Line(key="", cells=(level_cell(cell(0.95)), cell(level))) for level in (0.95, 0.9))

    with pytest.raises(ValueError, match="several levels in one table, unmarked"):
        Sheet(caption="Speed", fields=fields(level=LEVEL, speed="speed"), lines=lines)


def test_exact_number_has_no_level_and_mixes_with_all():
    base = measured(exactly(1.0, "1", 3), "1")
    lines = tuple(Line(key="", cells=(each,)) for each in (base, cell(0.9)))

    assert base.level is None
    assert Sheet(caption="", fields=fields(speed="speed"), lines=lines).lines == lines


def test_level_of_a_line_is_that_of_its_intervals():
    base = measured(exactly(1.0, "1", 3), "1")

    assert level_cell(base, cell(0.9)).text == "90 %"
    assert level_cell(base, word("-")).text == "-"
