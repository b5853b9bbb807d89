"""Builders of studies and catalogues for tests of the planning stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.plan import Catalog
from paceline.plan.capabilities import Capabilities, Knob, SiteLimits, Strategy
from paceline.spec import Study, read_study
from paceline.units import BYTES
from paceline.workloads import load_workload

CAPABILITIES = Capabilities(
    strategies={
        "ddp": Strategy(),
        "single": Strategy(max_workers=1),
        "async": Strategy(strategy_class="asynchronous"),
    },
    data_parallel="ddp",
    knobs={
        "compile": Knob(default=False, doc="Compile."),
        "bucket_bytes": Knob(default=None, type=float, units=BYTES, minimum=1, doc="Bucket size."),
        "precision": Knob(default="fp32", choices=("fp32", "bf16"), doc="Numbers."),
    },
)


def catalog(cores: int = 2, capabilities: Capabilities = CAPABILITIES, **unavailable: str) -> Catalog:
    return Catalog(
        capabilities={"torch": capabilities},
        environments={"torch": ("torch-cpu", "abc")},
        unavailable=unavailable,
        site=SiteLimits(hosts=1, cores_per_host=cores),
        workload=load_workload,
    )


def study(cluster: Mapping[str, Any] | None = None, knobs: Mapping[str, Any] | None = None, **workload: Any) -> Study:
    return read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", **({} if "batch_global" in workload else {"batch_per_worker": 8}), **workload},
            "framework": {"name": "torch", **({"torch": knobs} if knobs else {})},
            "cluster": cluster or {},
        }
    )
