"""Findings, ladder and loss of trials whose truth is known, since the model's own law made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paceline.explain.changes import Case, change_for
from paceline.explain.explanation import Share
from paceline.explain.finding import CAUSES, COPY, Finding, Number, promised
from paceline.explain.findings import findings_of
from paceline.explain.shares import loss_between, seconds_by_cause, shares_of
from paceline.explain.spent import EXCHANGE, Spent
from paceline.explain.trials import cores_of
from paceline.explain.without import REMOVABLE, ModelledTrial, ladder
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.parameters import as_vector
from paceline.model.equations.stragglers import ALIKE, Straggling
from paceline.model.equations.terms import BANDWIDTH, COMPUTE, CONTENTION, INPUT, LATENCY, OVERHEAD, STRAGGLER
from paceline.model.fitting.calibration import Calibration, Hull
from paceline.model.fitting.fit import family_of
from paceline.spec.networks import NETWORKS
from paceline.stats.known_by import MEASURED, MODELLED
from records import make_record, make_trial

LAW = {
    "forward_s": 10e-3,
    "backward_s": 20e-3,
    "update_s": 2e-3,
    "overhead_s": 4e-3,
    "input_s": 5e-3,
    "alpha_s": 1e-4,
    "byte_s": 5e-9,
    "wire": 1.0,
    "start": 1.0,
}


def setting(workers=4, *, starved=0.0, straggling=ALIKE, messages=(2e6,), trial=None, **law):
    vector = as_vector({**LAW, **law})
    calibration = Calibration(
        family=family_of(trial or make_trial(workers=workers), "here"),
        by=MODELLED,
        vector=vector,
        low=vector,
        high=vector,
        draws=np.array([vector * 0.99, vector * 1.01]),
        straggling=straggling,
        hull=Hull(workers=(1, workers), hosts=(1, 1), batch=(1, 8), bandwidth=None),
        residual=0.02,
        held_out=3,
        noise=0.01,
    )
    asked = Conditions(workers=workers, hosts=1, batch=8.0, messages=messages)
    return ModelledTrial(calibration=calibration, conditions=asked, starved=starved)


def spent(**seconds):
    whole = {
        INPUT: 5e-3,
        COPY: 0.0,
        COMPUTE: 30e-3,
        EXCHANGE: 10e-3,
        CONTENTION: 0.0,
        OVERHEAD: 4e-3,
        STRAGGLER: 0.0,
        **seconds,
    }
    return Spent(seconds=whole, spread=dict.fromkeys(whole, 0.01), by=MEASURED, slowest=None, runs=("run-1", "run-2"))


def findings_among(shares, case=None, **fields):
    case = case or Case(trial=make_trial(), setting=setting(), cores=2)
    return findings_of(shares, spent(), case, lambda _question, _axes: "a study", ["run-1"], **fields)


def shares(**parts):
    left = 1 - sum(parts.values())
    words = {name.replace("_", " "): part for name, part in parts.items()}
    return [
        Share(cause=cause, measured=left if cause == COMPUTE else words.get(cause, 0.0), modelled=0.0)
        for cause in CAUSES
    ]


def test_largest_finding_comes_first_and_computing_last():
    findings = findings_among(shares(input=0.2, straggler_wait=0.3, framework_overhead=0.02))

    assert [finding.cause for finding in findings] == [STRAGGLER, INPUT, COMPUTE]


def test_where_nothing_holds_it_back_computing_is_named():
    (only,) = findings_among(shares(input=0.01))

    assert only.cause == COMPUTE
    assert only.sentence.startswith("Compute-bound: computation is")


def test_every_cause_has_a_sentence_and_evidence():
    for cause in CAUSES:
        whole = [Share(cause=other, measured=1.0 if other == cause else 0.0, modelled=0.9) for other in CAUSES]
        first = findings_among(whole)[0]

        assert first.cause == cause
        assert "100%" in first.sentence
        assert first.numbers
        assert first.records == ("run-1", "run-2")


def test_finding_without_evidence_is_refused():
    with pytest.raises(ValueError, match="without evidence"):
        Finding(cause=INPUT, sentence="", share=0.5, gain=None, by=MEASURED, sure="", numbers=(), records=("run",))


def test_disagreement_with_the_model_is_said():
    whole = [Share(cause=cause, measured=0.5 if cause in {INPUT, COMPUTE} else 0.0, modelled=0.1) for cause in CAUSES]

    assert "treat this share with caution" in findings_among(whole)[0].sure


def test_small_buckets_are_named_where_there_are_many_messages():
    many = Case(trial=make_trial(knobs={"bucket_bytes": 1e4}), setting=setting(messages=(1e4,) * 50), cores=2)
    finding = findings_among(shares(communication_latency=0.4), many)[0]

    assert finding.sentence.startswith("Buckets are too small: the latency of 50 messages")
    assert finding.change.axes == {"framework.torch.bucket_bytes": 500000}
    assert finding.change.gain.value > 1
    assert finding.experiment == "a study"


def test_too_many_threads_are_counted():
    crowded = Case(
        trial=make_trial(workers=2, threads=2, oversubscribe=True),
        setting=setting(),
        cores=2,
        measured={CONTENTION: 0.4},
    )
    finding = findings_among(shares(contention_for_cores=0.4), crowded)[0]

    assert "4 of them compete for 2 cores" in finding.sentence
    assert finding.change.axes == {"cluster.threads_per_worker": 1}
    assert finding.change.gain == promised(pytest.approx(1 / 0.6), 1.0, pytest.approx(2 / 0.6))


def test_hosts_that_are_parts_of_one_machine_share_its_cores():
    def two_hosts(**state):
        record = make_record(workers=2, hosts=2, threads=2, state=state)
        return replace(record, ranks=tuple(replace(rank, cores=(0, 1)) for rank in record.ranks))

    assert cores_of([two_hosts()]) == 2
    assert cores_of([two_hosts(site={"core_share": 1.0})]) == 1
    assert cores_of([]) is None


def test_slow_host_is_named():
    slow = Case(trial=make_trial(), setting=setting(), cores=2, slow_host="lab-2")

    assert findings_among(shares(straggler_wait=0.4), slow)[0].sentence.startswith(
        "Host lab-2 is slower than the others"
    )


def test_faster_link_is_one_that_has_a_name():
    slow = make_trial(hosts=2, network=NETWORKS["100Mbit"], site="lab")
    slower = setting()
    case = Case(
        trial=slow,
        cores=1,
        setting=replace(slower, conditions=slower.conditions.change(hosts=4, bandwidth=100e6 / 8)),
    )
    change = change_for(BANDWIDTH, case)

    assert change.axes == {"cluster.network": "300Mbit"}
    assert change.gain.low < change.gain.value < change.gain.high
    assert change.gain.value > 1.5


def test_input_that_starves_a_worker_is_loaded_by_others_where_there_are_cores_for_them():
    slow = make_trial(workers=1, input="pipeline", loader_workers=0)
    case = Case(trial=slow, setting=setting(1, trial=slow, input_s=30e-3), cores=2)
    change = change_for(INPUT, case)

    assert change.axes == {"workload.loader_workers": 1}
    assert change.what_if == "loaders=1"
    # What was waited for is all hidden behind the rest of the step.
    assert change.gain.value == pytest.approx((30 + 36) / 36, rel=0.02)


def test_input_that_starves_a_worker_is_kept_in_memory_where_there_are_no_cores():
    slow = make_trial(workers=2, input="pipeline", loader_workers=1)
    case = Case(trial=slow, setting=setting(2, trial=slow, input_s=30e-3), cores=2)

    assert change_for(INPUT, case).axes == {"workload.input": "resident", "workload.loader_workers": 0}


def test_what_timers_tell_of_input_counts_more_than_the_model():
    slow = make_trial(workers=2, input="pipeline", loader_workers=1)
    setting_of = setting(2, trial=slow, input_s=30e-3)
    modelled, timed = (
        change_for(INPUT, Case(trial=slow, setting=setting_of, cores=2, measured=measured)).gain
        for measured in ({}, {INPUT: 0.75, CONTENTION: 0.05})
    )

    assert modelled.value == pytest.approx(setting_of.gain([INPUT]).value)
    assert timed.value == pytest.approx(4.0)
    assert timed.high == pytest.approx(np.exp(0.02) / 0.2)
    assert timed.low == modelled.low


def test_every_cause_that_can_be_removed_shortens_the_step():
    whole = setting(
        starved=0.2, straggling=Straggling(spread=0.1, persistence=0.0, slowest=1.3), contention=0.1, start=0.2
    )
    for cause in REMOVABLE:
        gain = whole.gain([cause])
        assert gain.low <= gain.value <= gain.high
        assert gain.value > 1, cause


def test_a_draw_that_explains_nothing_gains_nothing():
    whole = setting(input_s=30e-3)
    draws = np.vstack([whole.calibration.draws, np.zeros_like(whole.calibration.draws)])
    gain = replace(whole, calibration=replace(whole.calibration, draws=draws)).gain([INPUT])

    assert 0 < gain.low < gain.value <= gain.high < np.inf


def test_ladder_falls_rung_by_rung_and_begins_with_what_helps_most():
    rungs = ladder(setting(overhead_s=30e-3), measured_s=1.0)

    assert rungs[0].cause == OVERHEAD
    assert [rung.step_s for rung in rungs] == sorted((rung.step_s for rung in rungs), reverse=True)
    assert all(rung.faster == pytest.approx(1 / rung.step_s) for rung in rungs)
    assert len({rung.cause for rung in rungs}) == len(rungs)


def test_shares_sum_up_to_one_measured_and_modelled():
    assert sum(share.measured for share in shares_of(spent(), setting())) == pytest.approx(1.0)
    assert sum(share.modelled for share in shares_of(None, setting(starved=0.3))) == pytest.approx(1.0)


def test_exchange_is_split_as_the_model_splits_it():
    seconds = seconds_by_cause(spent(), setting(alpha_s=1e-3, byte_s=1e-9, messages=(1e6,)))
    # A ring of 4: 6 messages of 1 ms each, 1.5 MB of bytes at 1 ns.
    assert seconds[LATENCY] == pytest.approx(10e-3 * 6 / 7.5)
    assert seconds[BANDWIDTH] == pytest.approx(10e-3 * 1.5 / 7.5)


def test_loss_splits_into_parts_that_sum_up_to_one():
    alone = (spent(**{EXCHANGE: 0.0}), setting(1), 1, 8.0)
    many = (spent(**{STRAGGLER: 5e-3}), setting(4), 4, 8.0)
    loss = loss_between(alone, many)

    assert sum(loss.parts.values()) == pytest.approx(1.0)
    assert loss.efficiency == pytest.approx(39 / 54)
    assert loss.parts[STRAGGLER] == pytest.approx(5 / 15)


def test_strong_scaling_counts_what_a_sample_costs():
    # Half the batch and the same fixed cost: that is lost, though the step is no longer.
    loss = loss_between((spent(**{EXCHANGE: 0.0}), setting(1), 1, 8.0), (spent(**{EXCHANGE: 0.0}), setting(1), 2, 4.0))

    assert loss.efficiency == pytest.approx(0.5)


def test_nothing_is_lost_where_more_workers_are_as_fast():
    assert loss_between((spent(), setting(), 1, 8.0), (spent(), setting(), 2, 8.0)) is None


def test_numbers_say_where_they_come_from():
    assert Number(name="step", value=1.0, unit="s", by=MEASURED).to_json()["by"] == "measured"


@pytest.mark.parametrize("cause", [INPUT, BANDWIDTH, LATENCY, OVERHEAD, COMPUTE])
def test_gain_of_a_change_is_finite_when_a_draw_explains_nothing(cause):
    """Runs that differ a lot make draws of the fit whose parameters are all zero, and so is their step."""
    usual = setting(messages=(2e6,))
    draws = np.array([usual.calibration.vector, np.zeros_like(usual.calibration.vector)])
    unsure = replace(usual, calibration=replace(usual.calibration, draws=draws))
    change = change_for(cause, Case(trial=make_trial(workers=4), setting=unsure, cores=8))

    assert change is not None
    assert change.gain is not None
    assert np.isfinite([change.gain.low, change.gain.value, change.gain.high]).all()
