from __future__ import annotations

import re

import pytest

from paceline.compare import Factor, compare
from paceline.record.record import Doubt
from paceline.report.glyphs import for_encoding
from paceline.report.sentences import factor_text
from paceline.report.text import comparison_table, report
from records import MACHINE, failed_record, make_record


def repeats(count=3, **changes):
    return [make_record(repeat=repeat, **changes) for repeat in range(count)]


def scaling():
    steps = {1: 0.05, 2: 0.0625, 4: 0.1}
    drift = [1.0, 1.01, 0.98]
    return compare(
        [make_record(workers=n, step_s=s * d, repeat=r) for n, s in steps.items() for r, d in enumerate(drift)]
    )


def knobs(*steps):
    return compare([r for k, s in enumerate(steps) for r in repeats(knobs={"k": k}, step_s=s)])


def test_answer_comes_first_and_its_caution_beside_it():
    noisy = Doubt(code="noisy-neighbour", message="others took 40 % of the cores", hint="close them")
    text = comparison_table(compare([r for n in (1, 2) for r in repeats(workers=n, doubts=(noisy,))]))
    first, second, table, *_ = text.split("\n\n")

    assert first.startswith("Answer: 2 workers train")
    assert " ".join(first.split()).endswith(
        "Caution: All runs were disturbed by other programs: treat this as preliminary."
    )
    assert second.startswith("torch ddp · resnet20")
    assert table.startswith("configuration")


def test_table_has_throughput_with_its_interval_step_time_efficiency_and_runs():
    text = comparison_table(scaling())

    line = next(line for line in text.splitlines() if line.startswith("2 workers"))
    assert re.search(r"\d \([\d.]+–[\d.]+\) +6\d\.\d ms +\d+.* % \(.*\)$", line)
    assert "(3 runs each; in brackets: 95 % interval of the mean over runs)" in text


def test_runs_are_a_column_where_they_differ():
    text = comparison_table(compare([*repeats(workers=1), *repeats(4, workers=2)]))

    lines = text.splitlines()
    assert next(line for line in lines if line.startswith("configuration")).endswith("runs")
    assert next(line for line in lines if line.startswith("2 workers")).endswith(" 4")


@pytest.mark.parametrize("width", [80, 120, 160])
def test_one_table_fits_the_width_and_nothing_else_is_wider(width):
    text = comparison_table(scaling(), width)

    assert max(map(len, text.splitlines())) <= width
    assert text.count("configuration") == 1
    for header in ("samples/s", "step time", "efficiency", "3 runs each"):
        assert header in text
    assert "…" not in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_is_lost_and_no_line_is_wider_than_asked(width):
    text = comparison_table(scaling(), width, details=True)

    assert max(map(len, text.splitlines())) <= width
    for header in ("runs", "samples/s", "step time", "efficiency", "CPU", "memory", "the step"):
        assert header in text
    assert "…" not in text


def test_what_most_do_not_ask_for_is_told_with_all():
    short, whole = (comparison_table(scaling(), details=details) for details in (False, True))

    assert "memory" in short.splitlines()[-1]
    assert "add --all" in short
    assert "forward" not in short
    assert "forward" in whole
    assert "--all" not in whole


@pytest.mark.parametrize(("runs", "words"), [(1, "(1 run: no interval)"), (2, "(2 runs: no interval)")])
def test_fewer_than_three_runs_have_no_interval(runs, words):
    text = comparison_table(compare([make_record(step_s=0.05 + 0.02 * r, repeat=r) for r in range(runs)]), details=True)

    assert words in text
    assert "–" not in text
    assert "fewer than three runs and so no intervals" in " ".join(text.split())


def test_charts_of_one_workload_share_one_scale():
    steps = {"torch": 0.05, "jax": 0.1}
    text = comparison_table(
        compare([r for f, s in steps.items() for n in (1, 2) for r in repeats(framework=f, workers=n, step_s=s)])
    )
    bars = [line.count("█") for line in text.splitlines() if "█" in line and "measured" not in line]

    assert "torch ddp, samples/s" in text
    assert "jax ddp, samples/s" in text
    assert bars[0] == pytest.approx(2 * bars[2], abs=1)
    assert bars[1] == pytest.approx(2 * bars[3], abs=1)


def test_long_names_are_wrapped_in_one_table():
    values = ("a rather long value of a knob that nobody abbreviates", "another rather long value of it, just as long")
    text = comparison_table(compare([r for v in values for r in repeats(knobs={"first_knob": v})]))

    assert text.count("configuration") == 1
    assert max(map(len, text.splitlines())) <= 80
    assert values[0] in " ".join(text.split("Verdicts")[1].split())


def test_ascii_terminal_gets_the_same_table_with_the_same_columns():
    text = comparison_table(scaling())
    plain = for_encoding(text, "ascii")

    assert plain.isascii()
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in text.splitlines()]
    assert for_encoding(text, "utf-8") == text


def test_phase_bar_is_cut_in_proportion():
    text = comparison_table(compare(repeats(workers=1, step_s=0.05)), details=True)

    bar = next(line for line in text.splitlines() if "▓▓▓" in line)
    assert (bar.count("▓"), bar.count("▒")) == (10, 17)
    assert "▓ forward  ▒ backward" in text
    assert "36 %" in bar


def test_scaling_chart_marks_the_ideal_only_where_it_is_missed():
    lines = comparison_table(scaling()).splitlines()
    start = lines.index("throughput, samples/s")
    one, two, four = lines[start + 1 : start + 4]

    assert "│" not in one
    assert "│" in two
    assert four.index("│") > two.index("│") > two.rindex("█")


def test_one_world_size_has_no_chart():
    assert "ideal" not in comparison_table(compare(repeats()))


def test_verdicts_are_sentences():
    text = comparison_table(knobs(0.06, 0.05))

    assert "k=1 is 1.2" in text
    assert "× as fast as k=0" in text
    assert "p<0.001, n=3)" in text


def factor(share):
    return Factor(phase="update", seconds=0.01, share=share, derived=False)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.35, "the largest part of it, 35 %, in update: 10 ms per step"),
        (0.5, "the largest part of it, 50 %, in update: 10 ms per step"),
        (0.8, "most of it, 80 %, in update: 10 ms per step"),
        (1.001, "all of it in update: 10 ms per step"),
        (1.3, "more than all of it, 130 %, in update: 10 ms per step"),
    ],
)
def test_how_much_of_a_difference_a_part_makes_is_said(share, words):
    assert factor_text(factor(share)) == words


def test_many_pairs_are_told_only_about_the_fastest():
    _, text = comparison_table(knobs(*(0.05 + 0.01 * k for k in range(7)))).split("Verdicts")

    assert text.count("× as fast as") == 6
    assert "(15 more pairs" in text


def test_failures_are_told_with_their_reason():
    text = comparison_table(compare([*repeats(workers=1), failed_record("out_of_memory", workers=2)]))

    assert "  - 2 workers: out_of_memory: 1 of 1 runs: it broke (during setup)" in text


def test_warning_is_told_once_with_its_rows_and_what_to_do():
    doubt = Doubt(code="spread", message="steps vary by 12 %", hint="close other programs")
    comparison = compare([r for n in (1, 2) for r in repeats(workers=n, doubts=(doubt,))])
    text = comparison_table(comparison, details=True)
    short = " ".join(comparison_table(comparison).split())

    assert "spread (6 of 6 runs): steps vary by 12 %. Do: close other programs" in short
    assert text.count("steps vary by 12 %") == 1
    assert "spread: 1 worker (3 of 3 runs)" in text
    assert "also 2 workers (3 of" in " ".join(text.split())
    assert "close other" in text


def test_nothing_recorded_is_said():
    assert comparison_table(compare([])) == "nothing recorded yet"


def test_report_has_question_answer_machine_environment_and_the_command():
    environment = {"name": "torch", "python": "3.11.7", "packages": {"torch": "2.13.0", "numpy": "2.0"}}
    text = report(
        study="quickstart",
        question="How well does it scale?",
        results=scaling(),
        machines=[MACHINE],
        environments=[environment],
        command="paceline run studies/quickstart.toml",
    )

    order = [
        "Answer: 4 workers",
        "Study quickstart: How well",
        "samples/s",
        "## Machine",
        "memory: 16 GiB",
        "## Environment",
        "packages: numpy 2.0, torch 2.13.0",
        "    paceline run studies/quickstart.toml",
    ]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
