"""A program that starts an agent on each of several Ray nodes, run by a Python that has Ray. A variable says how.

It ends when all agents have ended; when it is killed, Ray ends what it started. It imports nothing of ours, because
that Python has only Ray.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TypedDict

ASKED = "PACELINE_RAY"
"""The variable that holds an `Asked` as JSON."""
READY_S = 600.0
"""Time for the cluster to have the nodes free."""
JOIN_S = 30.0
"""Time for nodes that were just started to join the cluster."""


class Asked(TypedDict):
    """What the site asks of this program."""

    address: str
    """The running cluster as ray.init takes it, or "local"."""
    hosts: int
    cpus: int
    """CPUs of each host."""
    command: list[str]
    """What starts an agent."""
    variables: dict[str, str]
    """What the agents have to find in their environment."""


def run_agent(command: list[str], variables: dict[str, str]) -> int:
    return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


def main(asked: Asked) -> None:
    import ray  # noqa: PLC0415  of another Python
    from ray.util.placement_group import placement_group  # noqa: PLC0415
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: PLC0415

    local = asked["address"] == "local"
    ray.init(address=None if local else asked["address"], log_to_driver=True)
    print(f"Ray {ray.__version__}")
    deadline = time.monotonic() + JOIN_S
    while (count := sum(node["Alive"] for node in ray.nodes())) < asked["hosts"]:
        if time.monotonic() > deadline:
            sys.exit(f"the cluster has {count} node(s), and {asked['hosts']} are asked for")
        time.sleep(0.2)
    group = placement_group([{"CPU": asked["cpus"]}] * asked["hosts"], strategy="STRICT_SPREAD")
    if not group.wait(READY_S):
        sys.exit(f"no {asked['hosts']} nodes with {asked['cpus']} free CPU(s) within {READY_S:g} s")
    agents = [
        ray.remote(run_agent)
        .options(
            num_cpus=asked["cpus"],
            max_retries=0,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index),
        )
        .remote(asked["command"], asked["variables"])
        for index in range(asked["hosts"])
    ]
    ray.get(agents)


if __name__ == "__main__":
    main(json.loads(os.environ[ASKED]))
