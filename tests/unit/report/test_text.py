from __future__ import annotations

import pytest

from paceline.compare import Factor, compare
from paceline.record.record import Doubt
from paceline.report.answer import answer, answer_sentences
from paceline.report.glyphs import for_encoding
from paceline.report.sentences import factor_text
from paceline.report.text import comparison_table, report
from records import MACHINE, failed_record, make_record, make_trial


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


def test_table_shows_each_number_with_its_interval():
    text = comparison_table(scaling())

    line = next(line for line in text.splitlines() if line.startswith("2 workers"))
    assert "torch ddp · resnet20" in text
    assert line.split()[2] == "3"
    assert "(" in line
    assert " %" in line
    assert "95 % interval" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_is_lost_and_no_line_is_wider_than_asked(width):
    text = comparison_table(scaling(), width)

    assert max(map(len, text.splitlines())) <= width
    for header in ("runs", "samples/s", "step", "efficiency", "CPU", "memory"):
        assert header in text
    assert "…" not in text


def test_long_names_become_numbers_with_a_legend():
    values = ("a rather long value of a knob", "another rather long value of it")
    text = comparison_table(compare([r for v in values for r in repeats(knobs={"first_knob": v})]))

    assert "[1] first_knob=a rather long value of a knob" in text
    assert max(map(len, text.splitlines())) <= 80


def test_ascii_terminal_gets_the_same_table_with_the_same_columns():
    text = comparison_table(scaling())
    plain = for_encoding(text, "ascii")

    assert plain.isascii()
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in text.splitlines()]
    assert for_encoding(text, "utf-8") == text


def test_phase_bar_is_cut_in_proportion():
    text = comparison_table(compare(repeats(workers=1, step_s=0.05)))

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
        (0.35, "the largest part of it, 35 %, in update: 10 ms a step"),
        (0.5, "the largest part of it, 50 %, in update: 10 ms a step"),
        (0.8, "most of it, 80 %, in update: 10 ms a step"),
        (1.001, "all of it in update: 10 ms a step"),
        (1.3, "more than all of it, 130 %, in update: 10 ms a step"),
    ],
)
def test_how_much_of_a_difference_a_part_makes_is_said(share, words):
    assert factor_text(factor(share)) == words


def test_many_pairs_are_told_only_about_the_fastest():
    text = comparison_table(knobs(*(0.05 + 0.01 * k for k in range(7))))

    assert text.count("× as fast as") == 6
    assert "(15 more pairs" in text


def test_failures_are_told_with_their_reason():
    text = comparison_table(compare([*repeats(workers=1), failed_record("out_of_memory", workers=2)]))

    assert "  - 2 workers: out_of_memory: 1 of 1 runs: it broke (during setup)" in text


def test_warning_is_told_once_with_its_rows_and_what_to_do():
    doubt = Doubt(code="spread", message="steps vary by 12 %", hint="close other programs")
    text = comparison_table(compare([r for n in (1, 2) for r in repeats(workers=n, doubts=(doubt,))]))

    assert text.count("steps vary by 12 %") == 1
    assert "spread: 1 worker (3 of 3 runs)" in text
    assert "also 2 workers (3 of" in " ".join(text.split())
    assert "close other" in text


def test_nothing_recorded_is_said():
    assert comparison_table(compare([])) == "nothing recorded yet"


def test_answer_about_scaling_has_factor_efficiency_and_interval():
    text = answer(scaling())

    assert text.startswith("4 workers train 1.999 × as fast as 1 worker")
    assert "(efficiency 49.98 %, 49.95–50.01 %, 95 %, n=3)" in text


def test_answer_about_scaling_says_once_what_both_sizes_have_in_common():
    both = [
        make_record(workers=n, step_s=0.05 * n, repeat=r, batch=batch)
        for batch in (8, 16)
        for n in (1, 2)
        for r in range(3)
    ]
    first, second, *_ = answer_sentences(compare(both))

    assert first.startswith("batch 8 a worker: 2 workers train")
    assert "as fast as 1 worker (efficiency" in first
    assert second.startswith("batch 16 a worker: 2 workers train")


def test_answer_names_the_fastest_and_the_next():
    text = answer(knobs(0.06, 0.05, 0.08))

    assert text.startswith("k=1 is the fastest of 3: 1.2")
    assert "as fast as k=0" in text


def test_answer_names_no_winner_where_none_is_proven():
    assert answer(knobs(0.05, 0.0501, 0.08)) == "k=0 and k=1: equal within 2 %, ahead of k=2."


def test_answer_does_not_rank_frameworks_without_proof():
    jax = make_trial(framework="jax", strategy="flat", environment="jax")

    text = answer(compare([*repeats(), *repeats(trial=jax)]))

    assert text.startswith("1 pair not ranked: nothing can show that torch and jax")
    assert "fastest" not in text


def test_answer_of_one_run_does_not_claim_to_be_sure():
    assert "one run: how sure is unknown" in answer(compare([make_record()]))


def test_answer_says_when_nothing_ended_well():
    assert answer(compare([])) == "No answer yet: nothing was run."
    assert "no trial has a good run (2 workers: failed" in answer(compare([failed_record()]))


def test_answer_says_when_time_is_simulated():
    assert "simulated" in answer(compare(repeats(simulated=True)))


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
        "# quickstart",
        "How well",
        "Answer: 4 workers",
        "samples/s",
        "## Machine",
        "memory: 16 GiB",
        "## Environment",
        "packages: numpy 2.0, torch 2.13.0",
        "    paceline run studies/quickstart.toml",
    ]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)


def test_answer_begins_with_the_contest_of_most_workers():
    records = [
        r
        for k, s in enumerate((0.06, 0.05))
        for n in (1, 2, 4, 8)
        for r in repeats(knobs={"k": k}, workers=n, step_s=s)
    ]
    first, second, third, rest, *_ = answer_sentences(compare(records))

    assert [part.split(" ·")[0] for part in (first, second, third)] == ["8 workers", "4 workers", "2 workers"]
    assert rest == "(1 more contest in the table.)"
