"""Tables of others: read, split, fitted and judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paceline.errors import SpecError
from paceline.model.foreign.tables import (
    COLLECTIVES,
    STEP_TIMES,
    THROUGHPUT,
    MeasuredPoint,
    matching,
    points_of,
    read_table,
)
from paceline.model.validation.baselines import BASELINES, Ernest, LastValue, Pollux, Usl, times
from paceline.model.validation.figures import binomial_interval, figures
from paceline.model.validation.replay import LayerTrace, layer_traces, replay
from paceline.model.validation.structural import Form, Structural
from paceline.model.validation.validate import noise_floor, validate_table

HEADER = "model,cluster,num_nodes,num_replicas,local_bsz,step_time_s,sync_time_s,placement"


def truth(workers: float, hosts: float, batch: float) -> float:
    computing = 0.02 + 1e-3 * batch
    exchange = 2 * (hosts - 1) / hosts * 0.03 + 2 * (workers / hosts - 1) / (workers / hosts) * 0.004
    return float((computing**2 + exchange**2) ** 0.5)


def table(noise: float = 0.0) -> list[str]:
    generator = np.random.default_rng(0)
    rows = [HEADER]
    for hosts in (1, 2, 3, 4, 8, 16):
        for group in (1, 2, 4):
            for batch in (8, 16, 32, 64):
                step = truth(hosts * group, hosts, batch) * np.exp(noise * generator.normal())
                rows.append(f"net,aws,{hosts},{hosts * group},{batch},{step},,x")
    return rows


def points(rows: list[str], tmp_path) -> list[MeasuredPoint]:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows))
    return points_of(*read_table(path))


def test_schemas_are_known_by_their_columns(tmp_path):
    for schema in (STEP_TIMES, THROUGHPUT, COLLECTIVES):
        path = tmp_path / "t.csv"
        path.write_text(",".join([*sorted(schema.columns), "anything else"]) + "\n")

        assert read_table(path)[0] is schema


def test_unknown_columns_are_refused_with_those_of_the_nearest_schema(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("model,cluster,num_nodes\n")

    with pytest.raises(SpecError, match="the nearest is step times by placement, which also needs"):
        read_table(path)


def test_a_missing_table_is_refused(tmp_path):
    with pytest.raises(SpecError, match="cannot be read"):
        read_table(tmp_path / "none.csv")


def test_collectives_have_no_steps():
    with pytest.raises(SpecError, match="no step times to predict"):
        points_of(COLLECTIVES, [])


def test_throughputs_become_steps():
    row = {
        "framework": "f",
        "model": "m",
        "hardware": "h",
        "workers": "4",
        "nodes": "2",
        "batch_per_worker": "32",
        "metric": "throughput",
        "value": "64",
    }
    (point,) = points_of(THROUGHPUT, [row, {**row, "metric": "accuracy"}, {**row, "value": "near-linear"}])

    assert (point.step_s, point.workers, point.hosts) == (2.0, 4, 2)


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("num_nodes<=2", {1, 2}),
        ("num_nodes > 2", {3, 10}),
        ("num_nodes<=10 and cluster=aws", {1, 3}),
        ("num_nodes!=3", {1, 2, 10}),
    ],
)
def test_rows_match_a_condition(condition, kept):
    rows = [{"num_nodes": str(n), "cluster": "aws" if n in {1, 3} else "rtx"} for n in (1, 2, 3, 10)]
    matches = matching(condition, ["num_nodes", "cluster"])

    assert {int(row["num_nodes"]) for row in rows if matches(row)} == kept


@pytest.mark.parametrize("condition", ["num_nodes", "nodes<=4", "<=4", ""])
def test_a_condition_that_cannot_be_read_is_refused(condition):
    with pytest.raises(SpecError):
        matching(condition, ["num_nodes", "cluster"])


def test_our_model_predicts_its_own_kind_of_truth_beyond_what_it_was_fitted_on(tmp_path):
    overall = judged(points(table(), tmp_path))

    assert overall["paceline"]["mape"] < 0.01
    assert overall["paceline"]["mape"] < min(overall[name]["mape"] for name in overall if name != "paceline")


def test_what_noise_hides_is_in_the_interval(tmp_path):
    """With little noise already, four hosts do not tell a ring from a growth with each doubling."""
    overall = judged(points(table(0.01), tmp_path))

    assert overall["paceline"]["mape"] < min(overall[name]["mape"] for name in ("ernest", "pollux", "usl"))
    assert overall["paceline"]["coverage"] >= 0.75
    assert set(overall) == {"paceline", "ernest", "pollux", "usl", "sum", "max", "last value"}


def test_a_batch_that_is_off_the_curve_on_few_hosts_is_so_on_many(tmp_path):
    """As where a library has a poor kernel for one size."""
    measured = [replace(p, step_s=p.step_s * (1.2 if p.batch == 16 else 1.0)) for p in points(table(), tmp_path)]
    model = Structural()
    model.fit([p for p in measured if p.hosts <= 4])

    def off(some: list[MeasuredPoint]) -> float:
        return float(np.mean(np.log(model.predict(some) / times(some))))

    odd, others = ([p for p in measured if p.hosts > 4 and (p.batch == 16) is odd] for odd in (True, False))
    assert off(odd) == pytest.approx(off(others), abs=0.07)  # 0.15 where every batch is on one curve


def test_a_short_exchange_grows_more_with_hosts_than_a_long_one(tmp_path):
    """The same curve in milliseconds and in seconds: of the first more is latency."""
    measured = points(table(0.01), tmp_path)
    few, ask = [p for p in measured if p.hosts <= 4], [p for p in measured if p.hosts == 16]

    def predicted(scale: float) -> np.ndarray:
        form = Form(0.5)
        form.fit([replace(p, step_s=p.step_s * scale) for p in few])
        return form.predict(ask) / scale

    assert np.all(predicted(0.01) > predicted(1.0))
    assert np.all(predicted(1.0) > predicted(100.0))


def judged(measured: list[MeasuredPoint]) -> dict[str, dict[str, float | None]]:
    validation = validate_table(measured, lambda point: point.hosts <= 4)
    return {model: validation.overall(model) for model in validation.models}


def test_every_point_is_in_the_result(tmp_path):
    measured = points(table(), tmp_path)
    data = validate_table(measured, lambda point: point.hosts <= 4).to_json()

    assert len(data["groups"][0]["points"]) == sum(point.hosts > 4 for point in measured)
    assert {"mape", "median", "p95", "max", "bias", "spearman", "coverage", "groups", "name"} <= set(data["models"][0])


def test_groups_with_nothing_to_predict_are_listed(tmp_path):
    validation = validate_table(points(table(), tmp_path), lambda _point: True)

    assert not validation.groups
    assert "nothing to predict" in validation.without_rows[0]


def test_small_groups_are_shown_and_do_not_count(tmp_path):
    rows = [row for row in table() if not row.startswith("net,aws,16")] + [
        "tiny,aws,1,1,8,1,,",
        "tiny,aws,2,2,8,1,,",
    ] * 3
    validation = validate_table(points(rows, tmp_path), lambda point: point.hosts <= 1)

    assert {group.group: group.counts for group in validation.groups} == {"net · aws": True, "tiny · aws": False}


def test_rows_that_repeat_each_other_are_the_noise_floor(tmp_path):
    measured = points([HEADER, "m,c,1,1,8,1.0,,", "m,c,1,1,8,1.2,,", "m,c,2,2,8,5,,"], tmp_path)

    assert noise_floor(measured) == pytest.approx(0.1 / 1.1)
    assert noise_floor(measured[2:]) is None


def test_ernest_usl_and_pollux_find_their_own_truth_again(tmp_path):
    base = points(table(), tmp_path)

    def with_steps(form) -> list[MeasuredPoint]:
        return [
            MeasuredPoint(group="g", workers=p.workers, hosts=p.hosts, batch=p.batch, step_s=form(p), row={})
            for p in base
        ]

    truths = {
        Ernest: lambda p: 0.01 + 1e-3 * p.batch + 2e-4 * p.workers + 3e-3 * np.log(p.workers),
        Usl: lambda p: (0.02 + 1e-3 * p.batch) * (1 + 0.05 * (p.workers - 1) + 1e-3 * p.workers * (p.workers - 1)),
        Pollux: lambda p: (
            0.02 + 1e-3 * p.batch + ((0.01 if p.hosts == 1 else 0.03) + 1e-3 * max(p.workers - 2, 0)) * (p.workers > 1)
        ),
    }
    for make, form in truths.items():
        measured = with_steps(form)
        model = make()
        model.fit(measured)

        assert model.predict(measured) == pytest.approx(times(measured), rel=0.02), make


def test_the_last_value_is_that_of_the_largest_with_the_nearest_batch():
    measured = [
        MeasuredPoint(group="g", workers=w, hosts=1, batch=b, step_s=w * b, row={}) for w in (1, 2) for b in (8, 16)
    ]
    model = LastValue()
    model.fit(measured)

    assert model.predict([MeasuredPoint(group="g", workers=9, hosts=9, batch=15, step_s=1, row={})]) == [32]


def test_all_baselines_have_names_of_their_own():
    names = [make.name for make in BASELINES]

    assert len({*names, Structural.name}) == len(names) + 1


def test_figures_of_known_errors():
    errors = figures(
        np.array([1.1, 1.8, 3.0]), np.array([1.0, 2.0, 3.0]), (np.array([1, 1.9, 2]), np.array([2, 2, 2.5]))
    )

    assert errors.mape == pytest.approx(0.2 / 3)
    assert errors.bias == pytest.approx(0.0)
    assert errors.max == pytest.approx(0.1)
    assert errors.spearman == pytest.approx(1.0)
    assert errors.coverage == pytest.approx(2 / 3)


def test_the_interval_of_a_proportion_holds_it():
    low, high = binomial_interval(9, 10)

    assert 0.5 < low < 0.9 < high < 1.0
    assert binomial_interval(0, 5)[0] == 0.0
    assert binomial_interval(5, 5)[1] == 1.0


def test_a_trace_is_replayed_without_prediction():
    trace = LayerTrace(name="t", nodes=2, backward_s=np.array([1.0, 1.0]), comm_s=np.array([0.5, 2.0]))

    assert trace.step_s(1.0) == pytest.approx(1.0 + 2.0 + 2.0)
    (replayed,) = replay([trace], {1: 64 / 3.0, 2: 2 * 64 / 5.0}, batch=64)
    assert replayed.replayed == pytest.approx(replayed.measured)


def test_a_layers_time_beside_two_tensors_is_spent_once():
    rows = [
        {"trace": "t", "nodes": "2", "tensor_id": str(index), "backward_compute_us": time, "comm_us": "1"}
        for index, time in enumerate(["30", "30", "10", "10"])
    ]
    (trace,) = layer_traces(rows)

    assert trace.backward_total_s == pytest.approx(40e-6)
    assert trace.backward_s.tolist() == pytest.approx([10e-6, 0, 30e-6, 0])


def test_a_tensor_that_travels_with_another_takes_no_time_and_a_block_without_times_does_not_count():
    def block(number: str, comm: list[str]) -> list[dict[str, str]]:
        return [
            {
                "trace": "t",
                "nodes": "8",
                "tensor_id": str(index),
                "backward_compute_us": "30" if any(map(int, comm)) else "0",
                "comm_us": time,
                "iteration_block": number,
            }
            for index, time in enumerate(comm)
        ]

    (trace,) = layer_traces([*block("0", ["5", "0"]), *block("1", ["0", "0"])])

    assert trace.comm_s.tolist() == pytest.approx([0, 5e-6])


def test_a_replay_without_one_node_is_refused():
    with pytest.raises(SpecError, match="one node"):
        replay([], {2: 1.0}, batch=1)
