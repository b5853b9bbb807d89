from __future__ import annotations

from dataclasses import replace

import pytest

from advice import candidate, known, known_from, records_of, trial_of
from paceline.explain.finding import COMPUTE, Finding, Number, promised
from paceline.plan import expand
from paceline.recommend.advise import advise
from paceline.recommend.candidates import measured
from paceline.recommend.objective import Prices, Wish, wish_for
from paceline.recommend.tried import outcomes
from paceline.report.advice import advice_text
from paceline.spec import parse_study
from paceline.stats.known_by import MEASURED
from records import make_record

FINDING = Finding(
    cause=COMPUTE,
    sentence="Nine tenths of the step compute.",
    share=0.9,
    gain=None,
    by=MEASURED,
    sure="timed",
    numbers=(Number(name="share", value=0.9, unit="1", by=MEASURED),),
    records=("r",),
)


def asked(within: str = "", goal: str = "throughput", **fields) -> Wish:
    return replace(wish_for(goal, Prices(epoch=1e4, price=2.0), within), **fields)


def test_the_sentence_names_choice_value_interval_origin_and_gain():
    sentence = advise(known(), asked()).sentence

    assert sentence.startswith("Choose torch ddp · mlp · 8 workers · batch 16: ")
    assert "samples/s (modelled, extrapolated × 4 beyond the workers" in sentence
    assert "times as fast as torch ddp · mlp · 1 worker · batch 8" in sentence


def test_the_best_that_is_in_use_already_is_kept():
    sentence = advise(known(), asked("workers<=2", present=trial_of(workers=2, batch=16).id)).sentence

    assert sentence.startswith("Stay with torch ddp · mlp · 2 workers · batch 16: ")
    assert "(measured; 90 % intervals)" in sentence


def test_what_cannot_be_told_apart_is_said_in_the_sentence():
    there = known(knobs=({}, {"overlap": False}))

    assert "The first 2 cannot be told apart." in advise(there, asked("workers=2,batch=16")).sentence


def test_nothing_within_the_limits_is_said_and_has_no_study():
    found = advise(known(), asked("budget<=0.000001"))

    assert "meets the limits" in found.sentence
    assert (found.ranked, found.front, found.settling) == ((), (), "")
    assert "meets the limits" in advice_text(found, 80)


def test_a_deadline_that_only_part_of_the_interval_keeps_is_doubted():
    first = advise(known(), asked(goal="epoch-time")).ranked[0]
    limit = (first.value.value + first.value.high) / 2

    assert "extends beyond deadline" in advise(known(), asked(f"deadline<={limit}s")).sentence


def test_each_choice_has_its_value_gain_and_cost_of_switching():
    found = advise(known(), asked(goal="cost"))
    present = next(one for one in found.ranked if one.choice.label.endswith("1 worker · batch 8"))

    assert present.switching == ""
    assert (present.gain.value, present.gain.ends) == (1.0, (1.0, 1.0))
    assert {one.unit for one in found.ranked} == {"currency"}
    for one in found.ranked:
        assert one.value.low <= one.value.value <= one.value.high
        assert one.gain.value == pytest.approx(present.value.value / one.value.value, rel=0.01)
        assert (one.trial is None) == (one.by == "modelled") == bool(one.experiment)
    assert found.front == (0,)


def test_every_experiment_runs_the_choice_that_it_is_of():
    there = known()
    for one in advise(there, asked()).ranked:
        if one.experiment:
            (planned,) = expand(parse_study(one.experiment, source="s"), there.catalog)
            assert planned.trial.workers == one.choice.workers
            assert planned.trial.workload.batch_per_worker == one.choice.batch


def test_what_would_settle_it_runs_the_best():
    there = known()
    found = advise(there, asked())
    planned = expand(parse_study(found.settling, source="s"), there.catalog)

    assert 1 <= len(planned) <= 3
    assert (8, 16) in {(one.trial.workers, one.trial.workload.batch_per_worker) for one in planned}


def test_findings_of_the_nearest_trial_are_the_reason():
    near = trial_of(workers=2, batch=16)
    found = advise(known(), asked(), {near.id: [FINDING]})

    assert found.ranked[0].because == (FINDING,)
    assert next(one for one in found.ranked if one.choice.workers == 1).because == ()


def test_choices_are_told_apart_by_the_knobs_in_which_they_differ():
    found = advise(known(knobs=({}, {"overlap": False})), asked("workers=2,batch=16"))

    assert {one.choice.label for one in found.ranked} == {
        "torch ddp · mlp · 2 workers · batch 16",
        "torch ddp · mlp · 2 workers · batch 16 · overlap=off",
    }


def test_failed_runs_of_the_first_are_said():
    from records import failed_record

    trial = trial_of()
    records = [*records_of([trial], runs=3), failed_record(trial=trial, repeat=3)]

    assert "1 of its 4 runs failed." in advise(known_from(records), asked()).sentence


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("goal", ["throughput", "cost"])
def test_text_has_everything_and_is_no_wider_than_asked(width, goal):
    found = advise(known(), asked(goal=goal), {trial_of(workers=2, batch=16).id: [FINDING]})
    text = advice_text(found, width)

    everything = (
        "Choose",
        "[1]",
        "modelled",
        "measured",
        "(in brackets: 90 % intervals)",
        "To switch",
        "Because",
        "Not considered",
        "settle",
        "[study]",
    )
    for words in everything:
        assert words in text
    outside = [line for line in text.splitlines() if len(line) > width and not line.startswith("    ")]
    assert outside == []
    assert "Nine tenths" in text


def test_text_of_a_long_list_says_how_many_more_there_are():
    text = advice_text(advise(known(), asked("workers<=64")), 80)

    assert "[10]" in text
    assert "[11]" not in text
    assert "more choices" in text


def test_predictions_that_were_tried_are_held_against_what_came_out():
    trial = trial_of(workers=8)
    records = [make_record(trial=trial, step_s=0.05, repeat=repeat) for repeat in range(3)]
    rows, _ = measured(known_from(records))
    value = rows[0].throughput.value
    said = {rows[0].identity: ("a", promised(value, 0.9 * value, 1.1 * value))}
    inside, lost = outcomes({**said, "gone": ("b", promised(1.0, 0.9, 1.1))}, rows)
    (outside,) = outcomes({rows[0].identity: ("a", promised(2 * value, 1.9 * value, 3 * value))}, rows)

    assert (inside.trial, inside.inside) == (trial.id, True)
    assert outside.inside is False
    assert (lost.measured, lost.inside) == (None, None)
    text = " ".join(advice_text(advise(known(), asked()), 80, [inside, outside, lost]).split())
    assert "inside the interval" in text
    assert "its runs failed" in text


def test_advice_is_plain_json():
    import json

    found = advise(known(), asked(), {trial_of(workers=2, batch=16).id: [FINDING]})

    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["ranked"][0]["strategy_class"] == "exact"
    assert candidate(1.0).strategy_class == "exact"


def test_the_sentence_says_the_level_of_its_intervals_where_it_has_any():
    there = known()
    found = advise(there, asked())

    assert found.ranked[0].value.ends is not None
    assert "; 90 % intervals)" in found.sentence
