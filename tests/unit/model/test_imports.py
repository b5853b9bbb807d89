"""What other tools wrote is read as they write it."""

from __future__ import annotations

import json

import pytest

from paceline.errors import PacelineError
from paceline.model.foreign.readers import nccl_tests, osu, ready_of_layer_trace, step_of_kineto

NCCL = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 1048576
# Using devices
#  Rank  0 Group  0 Pid   1 on node1 device  0 [0x0f] Tesla V100
#  Rank  1 Group  0 Pid   1 on node1 device  1 [0x10] Tesla V100
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    12.34    0.00    0.00      0    12.10    0.00    0.00      0
     1048576        262144     float     sum      -1    95.20   11.01   11.01      0    94.00   11.15   11.15      0
# Out of bounds values : 0 OK
# all_reduce_perf
"""
OSU = """\
# OSU MPI Allreduce Latency Test v5.8
# Size       Avg Latency(us)
4                       2.51
1024                    6.75
1048576              1034.20
"""


def test_nccl_tests_table():
    table = nccl_tests(NCCL)

    assert (table.operation, table.ranks) == ("all_reduce", 2)
    assert table.sizes.tolist() == [8, 1048576]
    # Root -1 is no time.
    assert table.seconds == pytest.approx([12.34e-6, 95.2e-6])


def test_osu_table():
    table = osu(OSU)

    assert table.operation == "all_reduce"
    assert table.seconds == pytest.approx([2.51e-6, 6.75e-6, 1034.2e-6])


@pytest.mark.parametrize("read", [nccl_tests, osu])
def test_text_without_a_table_is_refused(read):
    with pytest.raises(PacelineError, match="no table"):
        read("nothing here\n1 2\n")


def test_a_layer_trace_tells_when_gradients_are_ready():
    rows = [
        {"Id": "0", "Name": "conv", "Forward": "1", "Backward": "30", "Comm": "5", "Size": "400"},
        {"Id": "1", "Name": "relu", "Forward": "1", "Backward": "10", "Comm": "0", "Size": "0"},
        {"Id": "2", "Name": "fc", "Forward": "1", "Backward": "60", "Comm": "9", "Size": "4000"},
    ]
    ready = ready_of_layer_trace(rows)

    assert ready.fractions == pytest.approx((0.6, 1.0))
    assert ready.bytes == (4000.0, 400.0)


def test_a_trace_without_its_columns_is_refused():
    with pytest.raises(PacelineError, match="not a layer trace"):
        ready_of_layer_trace([{"Id": "0"}])


def test_a_profile_tells_what_of_the_exchange_shows():
    events = [
        {"ph": "X", "name": "ProfilerStep#1", "pid": 0, "tid": 0, "ts": 0, "dur": 100},
        {"ph": "X", "name": "aten::conv", "pid": 0, "tid": 0, "ts": 0, "dur": 60},
        {"ph": "X", "name": "ncclKernel_AllReduce", "pid": 0, "tid": 7, "ts": 40, "dur": 50},
    ]
    times = step_of_kineto(json.dumps({"traceEvents": events}))

    assert times.step == pytest.approx(100e-6)
    assert times.communication == pytest.approx(50e-6)
    assert times.exposed == pytest.approx(30e-6)


def test_a_profile_without_steps_is_refused():
    with pytest.raises(PacelineError, match="no steps"):
        step_of_kineto('{"traceEvents": []}')
