"""The same study by every engine, on real daemons over lab hosts: only [cluster] changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.engine_rig import PATIENCE_S, Hosts, start_ray, start_slurm, start_ssh
from paceline.record import OutcomeKind, Record
from paceline.record.meter import meter_looks
from paceline.record.reading import open_store
from paceline.sites.lab.site import LabSite
from street import command_environment, study_of, to_toml

STATE = LabSite().state()
pytestmark = [
    pytest.mark.engines,
    pytest.mark.processes,
    pytest.mark.skipif(STATE.state != "ready", reason=f"site lab: {STATE.reason}; {STATE.fix}"),
    # One after the other: daemons take memory and seconds to start.
    pytest.mark.xdist_group("engines"),
]
RAY = os.environ.get("PACELINE_TEST_RAY", "")
"""The program `ray` of a Python that has it; `make test-engines` sets it."""


class Engine:
    """An engine that is up: what a study must say to use it."""

    def __init__(self, hosts: Hosts, site: str, options: dict[str, Any], **env: str) -> None:
        self.hosts, self.site, self.options, self.env = hosts, site, options, env
        self.inside: list[str] = []
        """Words before the command: an allocation …"""

    def study(self, **measure: Any) -> dict[str, Any]:
        return study_of(
            {"time": "real"},
            cluster={"site": self.site, "hosts": 2, "oversubscribe": True, self.site: self.options},
            measure={"repeats": 1, "steps": 12, **measure},
        )

    def command(self, folder: Path, study: dict[str, Any]) -> list[str]:
        (folder / "study.toml").write_text(to_toml(study))
        return [*self.inside, sys.executable, "-m", "paceline", "--traceback", "run", str(folder / "study.toml")]

    def run(self, folder: Path, study: dict[str, Any]) -> list[Record]:
        """Run a study from where the user is; its records."""
        env = {**command_environment(folder), **self.env, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            self.hosts.command(self.hosts.login, self.command(folder, study)),
            env=env,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode in {0, 1}, done.stdout + done.stderr
        with open_store(folder / "store") as store:
            return store.records()


def needs(*programs: str) -> None:
    search = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if missing := [name for name in programs if shutil.which(name, path=search) is None]:
        pytest.skip(f"no program {', '.join(missing)}: make test-engines installs it")


def by_ssh(hosts: Hosts) -> Engine:
    needs("ssh", "sshd")
    return Engine(hosts, "ssh", {"hosts": ",".join(hosts.addresses), "options": start_ssh(hosts)})


def by_mpi(hosts: Hosts) -> Engine:
    needs("ssh", "sshd", "mpirun")
    shell = hosts.folder / "rsh"
    shell.write_text(f'#!/bin/sh\nexec ssh {start_ssh(hosts)} "$@"\n')
    shell.chmod(0o755)
    options = f"--mca plm_rsh_agent {shell} --mca oob_tcp_if_include eth0"
    return Engine(hosts, "mpi", {"hosts": ",".join(hosts.addresses), "options": options})


def by_sbatch(hosts: Hosts) -> Engine:
    needs("slurmctld", "slurmd", "munged", "sbatch")
    return Engine(hosts, "slurm", {"partition": "main", "time_limit": "10"}, **start_slurm(hosts))


def by_srun(hosts: Hosts) -> Engine:
    engine = by_sbatch(hosts)
    engine.options = {}
    engine.inside = ["salloc", "--quiet", "--nodes=2", "--ntasks-per-node=1"]
    return engine


def by_ray(hosts: Hosts) -> Engine:
    if not RAY:
        pytest.skip("no Ray: make test-engines installs it")
    address = start_ray(hosts, RAY)
    return Engine(hosts, "ray", {"address": address, "ray_python": str(Path(RAY).parent / "python")})


ENGINES: dict[str, Callable[[Hosts], Engine]] = {
    "ssh": by_ssh,
    "mpi": by_mpi,
    "sbatch": by_sbatch,
    "srun": by_srun,
    "ray": by_ray,
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    hosts = Hosts(tmp_path)
    try:
        yield ENGINES[request.param](hosts)
    finally:
        hosts.close()


def test_one_study_runs_by_every_engine_and_all_comes_home(engine: Engine, tmp_path: Path) -> None:
    (record,) = engine.run(tmp_path, engine.study())

    assert record.ok, record.outcome
    assert [rank.host for rank in record.ranks] == ["lab1", "lab2"]
    assert [host["address"] for host in record.hosts] == engine.hosts.addresses
    steps = record.samples.select(["rank", "kind"]).to_pylist()
    assert [steps.count({"rank": rank, "kind": "measured"}) for rank in (0, 1)] == [12, 12]
    # A first look may see no process yet.
    assert {name for look in meter_looks(record.meter) for name in look["processes"]} == {"worker0", "worker1"}
    assert record.resources["network"]["scope"] == "hosts"
    site = record.state["site"]
    assert len(record.state["hosts"]) == 2
    # One machine has one clock: what is estimated must contain the truth.
    assert all(abs(host["clock_offset_s"]) <= host["clock_error_s"] + 1e-3 for host in site["hosts"])
    assert site["engine"]
    assert not site["lost"]


def test_host_that_dies_ends_its_run_as_a_record_and_the_study_goes_on(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    try:
        engine = by_ssh(hosts)
        study = engine.study(steps=100_000, repeats=2)
        env = {**command_environment(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = hosts.command(0, engine.command(tmp_path, study))
        with subprocess.Popen(
            command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            hosts.wait_for("the second rank", lambda: any(tmp_path.glob("store/scratch/*/*/events.1.jsonl")))
            hosts.cluster.kill(1)
            run.wait(PATIENCE_S)
        with open_store(tmp_path / "store") as store:
            first, second = sorted(store.records(), key=lambda record: record.repeat)
    finally:
        hosts.close()

    assert first.outcome.kind is OutcomeKind.FAILED
    assert "lab2 is gone" in (first.outcome.reason or "")
    assert second.outcome.kind is OutcomeKind.UNAVAILABLE
    assert "ssh" in (second.outcome.reason or "")


def test_nothing_is_left_on_hosts_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    try:
        engine = by_ssh(hosts)
        env = {**command_environment(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = hosts.command(0, engine.command(tmp_path, engine.study(steps=100_000)))
        with subprocess.Popen(
            command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            hosts.wait_for("the second rank", lambda: any(tmp_path.glob("store/scratch/*/*/events.1.jsonl")))
            # The supervisor itself, not what brought it onto its host.
            assert hosts.run(0, ["pkill", "-KILL", "-f", "paceline --traceback run"]).returncode == 0
            run.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while left := hosts.run(1, ["pgrep", "-fa", "paceline_worker"]).stdout:
            assert time.monotonic() < deadline, left
            time.sleep(0.1)
    finally:
        hosts.close()
