"""Predictions without a run, and steps as others draw them."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from paceline.errors import SpecError
from paceline.model.equations.ready import Buckets, Ready, buckets_of, ready_of
from paceline.model.forecast.catalogue import DEVICES, INTERCONNECTS, device
from paceline.model.forecast.guess import guess
from paceline.model.forecast.predict import conditions_for, predict
from paceline.model.foreign.traces import Span, chakra_trace, chrome_trace, predicted_spans, spans_of_kineto
from paceline.workloads import load_workload


def test_every_device_and_link_has_a_source():
    assert all(part.source for part in (*DEVICES.values(), *INTERCONNECTS.values()))


def test_what_is_not_in_the_catalogue_is_refused_with_the_nearest():
    with pytest.raises(SpecError) as error:
        device("V100")
    assert "V100" in error.value.hint


def test_a_guess_scales_worse_on_a_slower_network():
    calibration = guess(load_workload("resnet50", {}), device("V100-SXM2"))
    fast, slow = (
        predict(calibration, conditions_for(calibration, workers=16, batch=32, bandwidth=rate))
        for rate in (12.5e9, 1.25e8)
    )

    assert slow.efficiency.value < 0.5 < fast.efficiency.value <= 1
    assert fast.by == "guessed"


def test_parameters_of_a_guess_are_within_a_factor_of_two_nine_times_out_of_ten():
    forward = guess(load_workload("resnet20", {}), device("V100-SXM2")).parameters()["forward_s"]

    assert (forward.level, forward.by) == (0.9, "guessed")
    assert forward.low < forward.value / 2 < 2 * forward.value < forward.high


def test_gradients_of_the_last_layers_are_ready_first():
    ready = ready_of((), load_workload("alexnet", {}))

    assert not ready.measured
    assert list(ready.fractions) == sorted(ready.fractions)
    assert ready.fractions[-1] == pytest.approx(1.0)
    # The classifier holds most of AlexNet's weights, and its gradients come first.
    assert sum(ready.bytes[:3]) > 0.9 * sum(ready.bytes)


def test_messages_are_ready_when_their_last_gradient_is():
    ready = Ready(fractions=(0.2, 0.5, 1.0), bytes=(10.0, 10.0, 20.0), measured=True)

    assert ready.bucketed(Buckets(first_bytes=5, cap_bytes=25)) == (10.0, 30.0)
    assert ready.of_messages((10.0, 30.0)) == (0.2, 1.0)
    assert ready.of_messages((20.0, 20.0)) == (0.5, 1.0)


def test_a_given_bucket_size_holds_for_the_first_one_too():
    assert buckets_of(5e6).first_bytes == 5e6
    assert buckets_of(None).first_bytes < buckets_of(None).cap_bytes


def test_a_predicted_step_is_drawn_without_overlapping_itself():
    calibration = guess(load_workload("resnet50", {}), device("V100-SXM2"))
    asked = conditions_for(calibration, workers=8, batch=32, bandwidth=1.25e9)
    spans = predicted_spans(calibration, asked)

    for stream in ("compute", "communication"):
        of_stream = [span for span in spans if span.stream == stream]
        assert len(of_stream) > 1
        for span, following in pairwise(of_stream):
            assert following.start_s >= span.start_s + span.duration_s - 1e-12
    end = max(span.start_s + span.duration_s for span in spans)
    assert end == pytest.approx(predict(calibration, asked).step.value)


def test_a_chrome_trace_has_a_process_a_rank_and_a_thread_a_stream():
    spans = [
        Span(name="forward", rank=0, stream="compute", start_s=0.0, duration_s=1e-3),
        Span(name="all-reduce", rank=0, stream="communication", start_s=1e-3, duration_s=2e-3, bytes=100.0),
    ]
    data = json.loads(chrome_trace(spans, by="modelled"))
    drawn = [event for event in data["traceEvents"] if event["ph"] == "X"]

    assert [(event["ts"], event["dur"]) for event in drawn] == [(0.0, 1000.0), (1000.0, 2000.0)]
    assert drawn[0]["tid"] != drawn[1]["tid"]
    assert drawn[1]["args"] == {"bytes": 100.0}
    assert data["otherData"] == {"by": "modelled"}


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """An independent reader of protobuf: (field, value) of a message."""
    fields, at = [], 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            fields.append((key >> 3, varint()))
        else:
            assert key & 7 == 2
            size = varint()
            fields.append((key >> 3, message[at : at + size]))
            at += size
    return fields


def messages(data: bytes) -> list[bytes]:
    messages, at = [], 0
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        messages.append(data[at : at + size])
        at += size
    return messages


def test_a_chakra_trace_is_metadata_then_nodes_after_their_lengths():
    spans = [
        Span(name="backward", rank=0, stream="compute", start_s=0.0, duration_s=5e-3),
        Span(
            name="all-reduce 0", rank=0, stream="communication", start_s=2e-3, duration_s=1e-3, bytes=4096.0, after=(0,)
        ),
    ]
    first, *nodes = messages(chakra_trace(spans))

    assert fields(first)[0][0] == 1
    computing, carrying = (dict(fields(node)) for node in nodes)
    assert (computing[1], computing[2], computing[3], computing[7]) == (0, b"backward", 4, 5000)
    assert (carrying[1], carrying[3], carrying[5], carrying[6]) == (1, 7, 0, 2000)
    names = {dict(fields(value))[1] for number, value in fields(nodes[1]) if number == 10}
    assert names == {b"is_cpu_op", b"comm_type", b"comm_size"}


def test_complete_events_of_a_kineto_trace_become_spans():
    text = json.dumps(
        {
            "distributedInfo": {"rank": 3},
            "traceEvents": [
                {"ph": "X", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10.0, "dur": 5.0},
                {"ph": "i", "name": "mark", "pid": 1, "tid": 2, "ts": 10.0},
            ],
        }
    )
    (span,) = spans_of_kineto(text)

    assert (span.rank, span.name) == (3, "aten::mm")
    assert np.isclose(span.duration_s, 5e-6)
