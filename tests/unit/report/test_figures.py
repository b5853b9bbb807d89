"""Figures show what the comparison says: a mark for each number, where the number puts it, and a table beside it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from explained import make_explanation
from paceline.compare import compare
from paceline.model.forecast.catalogue import device
from paceline.model.forecast.guess import guess
from paceline.model.forecast.predict import conditions_for, predict
from paceline.model.foreign.measured_step import measured_spans
from paceline.model.foreign.traces import Span
from paceline.record.usage import Series, UsageCurves
from paceline.report.curve import scaling_svg
from paceline.report.figures.contest import contest_figures
from paceline.report.figures.figure import names_for
from paceline.report.figures.ladder import ladder_figures
from paceline.report.figures.phases import parts_of, phase_figures
from paceline.report.figures.resources import resource_figures
from paceline.report.figures.scaling import scaling_figures
from paceline.report.figures.timeline import timeline_figures
from paceline.spec.networks import NETWORKS
from paceline.workloads import load_workload
from records import fused_record, make_record

STEPS = {1: 0.05, 2: 0.0625, 4: 0.1}
DRIFT = (1.0, 1.01, 0.98)


def family(**changes):
    return [
        make_record(workers=n, step_s=s * d, repeat=r, **changes) for n, s in STEPS.items() for r, d in enumerate(DRIFT)
    ]


def knobs(*steps, **changes):
    return compare(
        [
            make_record(knobs={"k": k}, step_s=s * d, repeat=r, **changes)
            for k, s in enumerate(steps)
            for r, d in enumerate(DRIFT)
        ]
    )


def predictions(counts=(1, 2, 4, 8, 16)):
    calibration = guess(load_workload("resnet20", {}), device("V100-SXM2"))
    return [predict(calibration, conditions_for(calibration, workers=n, batch=32)) for n in counts]


def marks(figure, kind="mark"):
    root = ET.fromstring(figure.svg)
    return [one for one in root.iter() if kind in (one.get("class") or "").split()]


def rows_of(figure):
    return list(csv.DictReader(io.StringIO(figure.csv())))


def values(figure, kind="mark"):
    return [float(one.get("data-value")) for one in marks(figure, kind)]


def test_contest_has_a_dot_and_a_whisker_for_each_row_fastest_first():
    comparison = knobs(0.06, 0.05, 0.08)
    (figure,) = contest_figures(comparison)

    fastest_first = sorted((row.throughput.value for row in comparison.rows), reverse=True)
    assert values(figure) == fastest_first
    assert len(marks(figure, "whisker")) == 3
    places = [float(one.get("cx")) for one in marks(figure)]
    assert places == sorted(places, reverse=True)


def test_csv_of_a_figure_has_all_digits_and_the_ends_of_intervals():
    comparison = knobs(0.06, 0.05)
    (figure,) = contest_figures(comparison)

    for line in rows_of(figure):
        row = comparison.row(line["key"])
        ends = (row.throughput.value, row.throughput.low, row.throughput.high)
        assert tuple(float(line[name]) for name in ("throughput", "throughput_low", "throughput_high")) == ends


def test_each_question_has_its_figure_and_rows_without_a_rival_share_one():
    contested = [
        make_record(knobs={"k": k}, workers=n, step_s=0.05 + 0.01 * k, repeat=r)
        for k in range(2)
        for n in (1, 2)
        for r in range(2)
    ]

    assert [len(marks(one)) for one in contest_figures(compare(contested))] == [2, 2]
    assert [len(marks(one)) for one in contest_figures(compare(family()))] == [3]


def test_axis_says_when_it_does_not_begin_at_zero():
    near, far = knobs(0.05, 0.051), knobs(0.05, 0.2)

    assert "does not begin at zero" in contest_figures(near)[0].caption
    assert "zero" not in contest_figures(far)[0].caption


def test_interval_that_is_wider_than_the_picture_is_cut_and_says_so():
    wild = compare([make_record(step_s=s, repeat=r) for r, s in enumerate((0.02, 0.2, 0.02))])
    (figure,) = contest_figures(wild)

    assert "An arrow" in figure.caption
    assert all(
        0 <= float(one.get("x1")) <= 720 and 0 <= float(one.get("x2")) <= 720 for one in marks(figure, "whisker")
    )


def test_nothing_measured_draws_nothing():
    empty = compare([])

    assert contest_figures(empty) == scaling_figures(empty, {}) == phase_figures(empty) == []
    assert timeline_figures(empty, {}) == resource_figures(empty, {}) == []


def test_scaling_has_measured_points_the_ideal_line_and_predictions_with_a_band():
    comparison = compare(family())
    base = comparison.rows[0].key
    (bare,) = scaling_figures(comparison, {})
    (whole,) = scaling_figures(comparison, {base: predictions()})

    # Throughput above, efficiency below.
    assert len(marks(bare)) == len(marks(whole)) == 6
    assert len(marks(bare, "ideal")) == 2
    assert (len(marks(bare, "predicted")), len(marks(whole, "predicted"))) == (0, 2)
    assert len(marks(whole, "band")) == 2
    assert values(bare)[:3] == [row.throughput.value for row in comparison.rows]
    assert values(bare)[3:] == [row.efficiency.value for row in comparison.rows]


def test_scaling_table_tells_measured_from_modelled():
    comparison = compare(family())
    (figure,) = scaling_figures(comparison, {comparison.rows[0].key: predictions()})

    assert [line["by"] for line in rows_of(figure)] == ["measured"] * 3 + ["guessed"] * 5
    assert "90 % interval" in figure.caption


def test_knee_is_marked_where_efficiency_falls():
    said = predictions()
    slower = [
        replace(one, efficiency=replace(one.efficiency, value=0.9 if one.conditions.workers < 4 else 0.5))
        for one in said
    ]
    comparison = compare(family())
    (figure,) = scaling_figures(comparison, {comparison.rows[0].key: slower})

    assert len(marks(figure, "knee")) == 1
    assert "knee: 2" in figure.svg
    assert "stays above 80 % up to 2 workers" in figure.caption


def over(*networks, **changes):
    """A family over each network; one host, which has none, is the base of all."""
    alone = [make_record(workers=1, step_s=0.05 * d, repeat=r, **changes) for r, d in enumerate(DRIFT)]
    return alone + [
        make_record(workers=n, hosts=n, step_s=0.05 * n * slower * d, repeat=r, network=NETWORKS[name], **changes)
        for slower, name in enumerate(networks, start=1)
        for n in (2, 4)
        for r, d in enumerate(DRIFT)
    ]


def test_networks_share_a_figure_and_name_its_curves():
    (figure,) = scaling_figures(compare(over("1GbE", "100Mbit")), {})

    assert figure.title == "Weak scaling · resnet20 · batch 32 per worker"
    assert {line["family"] for line in rows_of(figure)} == {"1GbE", "100Mbit"}
    assert len(marks(figure)) == 2 * 2 * 3


def test_networks_of_many_families_have_figures_of_their_own():
    many = [record for k in range(4) for record in over("1GbE", "100Mbit", knobs={"k": k})]
    figures = scaling_figures(compare(many), {})

    assert [one.title.split(" · ")[-1] for one in figures] == ["1GbE", "100Mbit"]
    assert {line["family"] for line in rows_of(figures[0])} == {f"k={k}" for k in range(4)}


def test_a_curve_that_falls_at_once_has_no_knee_to_draw():
    slower = [
        replace(one, efficiency=replace(one.efficiency, value=1 / one.conditions.workers)) for one in predictions()
    ]
    comparison = compare(family())
    (figure,) = scaling_figures(comparison, {comparison.rows[0].key: slower})

    assert not marks(figure, "knee")
    assert "modelled efficiency is below 80 % from two workers on" in figure.caption


def test_strong_and_weak_scaling_are_two_figures():
    strong = [
        make_record(workers=n, batch=64 // n, scaling="strong", step_s=0.1 / n, repeat=r)
        for n in (1, 2)
        for r in range(2)
    ]
    figures = scaling_figures(compare([*family(), *strong]), {})

    assert [one.title.split(" ·")[0] for one in figures] == ["Weak scaling", "Strong scaling"]
    assert len({one.name for one in figures}) == 2


def test_predicted_curve_alone_is_a_whole_picture():
    drawn = scaling_svg({"torch ddp": predictions(), "<jax>": predictions((1, 4, 64))})

    root = ET.fromstring(drawn)
    assert root.get("role") == "img"
    assert "&lt;jax&gt;" in drawn


def test_phases_of_a_bar_are_as_long_as_the_step():
    comparison = compare(family())
    (figure,) = phase_figures(comparison)

    for row in comparison.rows:
        mine = [one for one in marks(figure) if one.get("data-row") == row.key]
        assert sum(float(one.get("data-value")) for one in mine) == pytest.approx(row.step_s.value, rel=0.01)
        widths = [float(one.get("width")) for one in mine]
        seconds = [float(one.get("data-value")) for one in mine]
        assert widths == pytest.approx([s * sum(widths) / sum(seconds) for s in seconds], abs=0.2)


def test_derived_phases_have_a_dashed_border_and_are_called_derived():
    (figure,) = phase_figures(
        compare([fused_record(seconds={"forward": 0.02, "backward": 0.028}, repeat=r) for r in (0, 1)])
    )

    dashed = {one.get("data-phase") for one in marks(figure) if one.get("stroke-dasharray")}
    assert dashed == {"forward", "backward"}
    assert "derived, not timed" in figure.caption
    assert {line["by"] for line in rows_of(figure) if line["phase"] == "forward"} == {
        "derived by differences of separate programs"
    }


def test_derived_time_below_zero_takes_no_room():
    row = compare([fused_record(seconds={"forward": 0.05, "update": -0.002}, repeat=r) for r in (0, 1)]).rows[0]

    assert min(part.seconds for part in parts_of(row)) == 0


def test_phase_that_no_list_knows_is_drawn_as_other():
    comparison = compare(family())
    odd = {'my "phase" <1>': next(iter(comparison.rows[0].phases.values()))}
    (figure,) = phase_figures(replace(comparison, rows=(replace(comparison.rows[0], phases=odd),)))

    assert marks(figure)[0].get("fill") == f"url(#{figure.name}-other)"


def test_timeline_has_every_span_of_every_rank():
    record = make_record(workers=4, slow_rank=1, slowdown=1.5)
    comparison = compare([record])
    spans = measured_spans(record)
    (figure,) = timeline_figures(comparison, {comparison.rows[0].key: spans})

    assert values(figure) == [span.duration_s for span in spans]
    assert {one.get("data-rank") for one in marks(figure)} == {"0", "1", "2", "3"}
    assert len(rows_of(figure)) == len(spans)
    assert len(figure.sheet.lines) == 4


def test_what_a_rank_does_at_once_is_drawn_in_two_lanes():
    comparison = compare([make_record()])
    spans = [
        Span(name="backward", rank=0, stream="compute", start_s=0.0, duration_s=2.0),
        Span(name="communication", rank=0, stream="communication", start_s=1.0, duration_s=2.0),
    ]
    (beside,) = timeline_figures(comparison, {comparison.rows[0].key: spans})
    (after,) = timeline_figures(comparison, {comparison.rows[0].key: [spans[0], replace(spans[1], start_s=2.0)]})

    assert len({one.get("y") for one in marks(beside)}) == 2
    assert len({one.get("y") for one in marks(after)}) == 1


def test_hundreds_of_ranks_fit():
    comparison = compare([make_record()])
    spans = [Span(name="forward", rank=r, stream="compute", start_s=0.0, duration_s=1.0) for r in range(512)]
    (figure,) = timeline_figures(comparison, {comparison.rows[0].key: spans})

    assert float(ET.fromstring(figure.svg).get("height")) < 2500


def test_ladder_has_a_rung_for_the_step_as_it_is_and_for_each_cause():
    figures = ladder_figures([make_explanation(), make_explanation("other", ladder=())])

    assert set(figures) == {"trial-1"}
    assert values(figures["trial-1"]) == pytest.approx([0.064, 0.050, 0.049])
    assert next(line["cause"] for line in rows_of(figures["trial-1"])) == "nothing"


def usage(name, **changes):
    times = (0.5, 1.0, 1.5)
    fields = {
        "process": name,
        "cores": Series(t_s=times, values=(0.5, 1.0, 0.9)),
        "mean_cores": 0.8,
        "peak_cores": 1.0,
        "rss_bytes": Series(t_s=times, values=(1e8, 2e8, 2e8)),
        "peak_rss_bytes": 2e8,
    }
    return UsageCurves(**(fields | changes))


def test_resources_have_two_curves_a_process_and_every_point_in_the_csv():
    comparison = compare([make_record()])
    (figure,) = resource_figures(comparison, {comparison.rows[0].key: [usage("worker0"), usage("worker1")]})

    assert len(marks(figure)) == 4
    assert len(rows_of(figure)) == 12
    assert [line.cells[0].text for line in figure.sheet.lines] == ["worker0", "worker1"]


def test_many_processes_are_drawn_without_names():
    comparison = compare([make_record()])
    (figure,) = resource_figures(comparison, {comparison.rows[0].key: [usage(f"worker{n}") for n in range(20)]})

    assert len(marks(figure)) == 40
    assert ">worker7</text>" not in figure.svg


def test_no_two_figures_have_one_name():
    names = names_for("kind", ["a", "a", "a 2", "A!", "", "é", "x" * 200, "x" * 300])

    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and len(name) < 70 for name in names)
