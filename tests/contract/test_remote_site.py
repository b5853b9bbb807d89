"""What all engines have in common, with real agents in real processes on this machine, talking through pipes."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from paceline.errors import SiteError
from paceline.plan.process import Process
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import Running
from paceline.sites.remote.launch import Home, agent_command, natural_order, through_pipes
from paceline.sites.remote.link import EXIT_LOST
from paceline.sites.remote.requests import Agent
from paceline.sites.remote.site import RemoteSite

pytestmark = pytest.mark.processes
PATIENCE_S = 60
AWAY = "import pathlib; pathlib.Path('said').write_text('here'); print('printed')"


class Pipes(RemoteSite):
    """Agents that are children of ours: an engine that needs no network."""

    name = "pipes"

    def state(self):
        raise NotImplementedError

    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        return [through_pipes(agent_command(sys.executable), f"host {n}") for n in range(cluster.hosts)]

    def recall(self) -> None:
        pass


def cluster(hosts: int = 2, threads: int = 1, *, oversubscribe: bool = True) -> ClusterChoice:
    return ClusterChoice(
        site="pipes",
        hosts=hosts,
        workers_per_host=1,
        threads_per_worker=threads,
        device="cpu",
        network=None,
        oversubscribe=oversubscribe,
        options={"python": "python3", "interface": None},
    )


@pytest.fixture
def site() -> Iterator[Pipes]:
    site = Pipes()
    yield site
    site.stop()
    site.leave()


def start(site: Pipes, folder: Path, program: str, host: int = 0, **env: str) -> Running:
    process = Process(role="worker", rank=host, host=host, argv=(), cores=())
    variables = {"PATH": os.environ["PATH"], "PACELINE_JOB": str(folder / "job.json"), **env}
    return site.start(process, argv=[sys.executable, "-c", program], env=variables, folder=folder)


def wait_until(true) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_hosts_tell_addresses_cores_and_free_ports(site: Pipes) -> None:
    topology = site.open(cluster(), ports=3)

    name = socket.gethostname()
    assert [host.name for host in topology.hosts] == [f"{name}.0", f"{name}.1"]
    assert all(len(set(host.ports)) == 3 for host in topology.hosts)
    assert all(set(host.cores) == os.sched_getaffinity(0) for host in topology.hosts)


def test_processes_run_there_and_their_files_and_exit_codes_come_home(site: Pipes, tmp_path: Path) -> None:
    site.open(cluster(), ports=1)
    good = start(site, tmp_path, AWAY)
    bad = start(site, tmp_path, "import sys; sys.exit(7)", host=1)

    assert (good.wait(), bad.wait()) == (0, 7)
    site.fetch(tmp_path)
    assert (tmp_path / "worker0.log").read_text() == "printed\n"


def test_agents_are_kept_from_run_to_run_and_replaced_when_they_die(site: Pipes) -> None:
    site.open(cluster(), ports=1)
    first = [agent.about.pid for agent in site._agents]
    site.close()
    site.open(cluster(), ports=1)
    again = [agent.about.pid for agent in site._agents]
    os.kill(first[1], signal.SIGKILL)
    wait_until(site.lost_hosts)
    site.close()
    site.open(cluster(), ports=1)

    assert again == first
    assert not set(first) & {agent.about.pid for agent in site._agents}


def test_processes_of_a_host_that_dies_are_lost_and_gone(site: Pipes, tmp_path: Path) -> None:
    site.open(cluster(), ports=1)
    running = start(
        site, tmp_path, "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(1000)", host=1
    )
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    os.kill(site._agents[1].about.pid, signal.SIGKILL)

    assert running.wait() == EXIT_LOST
    assert len(site.lost_hosts()) == 1
    wait_until(lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())))
    assert site.stop() == []


def test_end_of_the_connection_ends_what_was_started(site: Pipes, tmp_path: Path) -> None:
    site.open(cluster(), ports=1)
    # Leaves its group and its parent: only what it inherited tells whose it is.
    start(
        site,
        tmp_path,
        "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(1000)",
    ).wait()
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    site.leave()

    wait_until(lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())))


def test_files_are_brought_only_where_they_are_missing_or_others(site: Pipes, tmp_path: Path) -> None:
    site.open(cluster(), ports=1)
    given = tmp_path / "deep" / "given"
    given.parent.mkdir()
    given.write_bytes(os.urandom(9_000_000))
    inode = given.stat().st_ino
    site.deliver([given.parent])

    # Hosts share our files here: nothing was missing, so nothing was written.
    assert given.stat().st_ino == inode


def test_file_goes_there_and_back(site: Pipes, tmp_path: Path) -> None:
    site.open(cluster(1), ports=1)
    (agent,) = site._agents
    given = tmp_path / "given"
    given.write_bytes(os.urandom(9_000_000))
    given.chmod(0o750)
    before = given.read_bytes()
    agent.put(given)
    agent.get(str(given), tmp_path / "back")

    assert given.read_bytes() == before == (tmp_path / "back").read_bytes()
    assert given.stat().st_mode & 0o777 == 0o750


def test_hosts_tell_what_they_and_their_processes_have_used(site: Pipes, tmp_path: Path) -> None:
    site.open(cluster(), ports=1)
    before = site.counters()
    running = start(site, tmp_path, "while True: pass")

    wait_until(lambda: (usage := running.usage()) and usage.cpu_s > 0.1)
    after = site.counters()
    for earlier, later in zip(before, after, strict=True):
        assert earlier is not None
        assert later is not None
        assert later.wall_s > earlier.wall_s
        assert later.busy_s > earlier.busy_s
        assert later.cores == os.cpu_count()
    assert site.traffic().keys() == {"sent_bytes", "received_bytes"}


def test_clock_offset_contains_the_truth(site: Pipes) -> None:
    site.open(cluster(), ports=1)

    for host in site.facts()["hosts"]:
        assert abs(host["clock_offset_s"]) <= host["clock_error_s"] + 1e-4


def test_more_threads_than_cores_are_refused_with_what_to_write(site: Pipes) -> None:
    with pytest.raises(SiteError, match="core") as caught:
        site.open(cluster(threads=1000, oversubscribe=False), ports=1)
    assert "oversubscribe" in (caught.value.hint or "")


def test_what_a_host_cannot_do_is_told_and_the_next_request_is_answered(site: Pipes) -> None:
    site.open(cluster(1), ports=1)
    (agent,) = site._agents

    with pytest.raises(SiteError, match="No such file"):
        agent.get("/there/is/no/such/file", Path("never"))
    with pytest.raises(SiteError):
        agent.put(Path("/proc/version"))
    assert agent.unix_time() > 0


def test_command_that_never_becomes_an_agent_is_told_with_its_last_words() -> None:
    with pytest.raises(SiteError, match="no such host"):
        through_pipes(["sh", "-c", "echo no such host >&2; exit 255"], "ssh nowhere")


def test_only_who_knows_the_key_is_let_in() -> None:
    home = Home()
    variables = home.variables()
    port = int(variables["PACELINE_HOME"].rpartition(":")[2])
    stranger = socket.create_connection(("127.0.0.1", port))
    stranger.sendall(b"\0\0\0\4spam")
    stranger.close()
    popen = psutil.Popen(
        agent_command(sys.executable), env={**os.environ, **variables, "PACELINE_HOME": f"127.0.0.1:{port}"}
    )
    (agent,) = home.welcome(1, within_s=PATIENCE_S, dead=lambda: None)
    home.close()

    assert agent.about.pid == popen.pid
    agent.close()
    assert popen.wait(PATIENCE_S) == 0


def test_agents_that_will_never_call_are_not_waited_for() -> None:
    home = Home()
    with pytest.raises(SiteError, match="0 of 2 hosts are there: mpirun said no"):
        home.welcome(2, within_s=PATIENCE_S, dead=lambda: "mpirun said no")
    home.close()


def test_hosts_are_counted_as_people_count_them() -> None:
    names = ["node10", "node2", "gpu1-node1", "node2b", "login"]

    assert sorted(names, key=natural_order) == ["gpu1-node1", "login", "node2", "node2b", "node10"]
