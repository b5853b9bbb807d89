"""What a calibration asks to be measured besides the study."""

from __future__ import annotations

import pytest

from paceline.model.fitting.companions import message_sizes
from paceline.spec import read_study


@pytest.mark.parametrize(
    ("network", "sizes"),
    [(None, "4KiB..64MiB"), ("10GbE", "4KiB..64MiB"), ("1GbE", "4KiB..32MiB"), (["1GbE", "100Mbit"], "4KiB..4MiB")],
)
def test_messages_of_a_calibration_are_no_larger_than_the_slowest_link_carries_in_half_a_second(network, sizes):
    cluster = {"site": "lab", "hosts": 2, **({"network": network} if network else {})}
    study = read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_per_worker": 8},
            "framework": {"name": "null"},
            "cluster": cluster,
        }
    )

    assert message_sizes(study) == sizes
