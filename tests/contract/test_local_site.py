"""The local site with real processes: pinned, ended for sure, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from paceline.plan.process import Process
from paceline.plan.trial import ClusterChoice
from paceline.sites import processes
from paceline.sites.local import LocalSite
from paceline.sites.processes import sweep_folder
from paceline.sites.remote.agent.cores import usable_cores

CLUSTER = ClusterChoice(
    site="local",
    hosts=1,
    workers_per_host=1,
    threads_per_worker=1,
    device="cpu",
    network=None,
    oversubscribe=False,
)
PATIENCE_S = 300
"""Upper bound on waits for something that will happen; never a measure of speed."""


def start(site: LocalSite, folder: Path, program: str, cores: tuple[int, ...] = ()) -> int:
    process = Process(role="worker", rank=0, host=0, argv=(), cores=cores)
    env = {"PATH": os.environ["PATH"], "PACELINE_JOB": str(folder / "job.json")}
    running = site.start(process, argv=[sys.executable, "-c", textwrap.dedent(program)], env=env, folder=folder)
    return running.pid


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.01)
    pytest.fail(f"{path.name} was never written")


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.01)
    pytest.fail(f"process {pid} is still there")


def test_rank_runs_on_its_cores_and_no_others(tmp_path: Path) -> None:
    site = LocalSite()
    site.open(CLUSTER, ports=1)
    core = usable_cores()[-1]
    start(site, tmp_path, "import os; open('cores','w').write(repr(sorted(os.sched_getaffinity(0))))", (core,))
    seen = wait_for(tmp_path / "cores")
    site.stop()

    assert seen == repr([core])


def test_process_that_ignores_sigterm_and_its_escaped_child_are_ended(tmp_path: Path) -> None:
    site = LocalSite()
    site.open(CLUSTER, ports=1)
    pid = start(
        site,
        tmp_path,
        """
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"],
            start_new_session=True,
        )
        open("child", "w").write(str(child.pid))
        time.sleep(600)
        """,
    )
    child = int(wait_for(tmp_path / "child"))
    site.stop()

    wait_until_gone(pid)
    wait_until_gone(child)


def test_children_are_metered_and_an_old_process_is_asked_for_them_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = LocalSite()
    site.open(CLUSTER, ports=1)
    program = """
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; held = b'x' * 2**28; open('child', 'w').write('up'); time.sleep(600)"])
    time.sleep(600)
    """
    process = Process(role="worker", rank=0, host=0, argv=(), cores=())
    env = {"PATH": os.environ["PATH"], "PACELINE_JOB": str(tmp_path / "job.json")}
    running = site.start(process, argv=[sys.executable, "-c", textwrap.dedent(program)], env=env, folder=tmp_path)
    try:
        before = running.usage()
        wait_for(tmp_path / "child")
        looks, asked = [], processes.descendants
        monkeypatch.setattr(processes, "descendants", lambda pid: looks.append(pid) or asked(pid))
        deadline = time.monotonic() + PATIENCE_S
        while (seen := running.usage()) is None or seen.rss_bytes < 2**28:
            assert time.monotonic() < deadline, (before, seen)
            time.sleep(0.01)
        # So old, and asked so seldom, that no pause of the machine makes a second look due.
        monkeypatch.setattr(processes, "CHILDREN_EVERY_S", 1e9)
        running._started -= 4e9
        running._next_look = 0.0
        looks.clear()
        assert all(running.usage() for _ in range(5))
    finally:
        site.stop()

    assert looks.count(running.pid) == 1


def test_rank_dies_with_a_host_that_is_killed(tmp_path: Path) -> None:
    host = f"""
    import sys, time
    from pathlib import Path
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import test_local_site as t
    site = t.LocalSite()
    site.open(t.CLUSTER, ports=1)
    folder = Path({str(tmp_path)!r})
    t.start(site, folder, "import os,time; open('pid','w').write(str(os.getpid())); time.sleep(600)")
    time.sleep(600)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(host)])
    rank = int(wait_for(tmp_path / "pid"))
    process.send_signal(signal.SIGKILL)
    process.wait()

    wait_until_gone(rank)


def test_sweep_finds_what_a_killed_host_left_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours = subprocess.Popen(sleeper, env={**os.environ, "PACELINE_JOB": str(tmp_path / "a" / "job.json")})
    other = subprocess.Popen(sleeper, env={**os.environ, "PACELINE_JOB": str(tmp_path / "b" / "job.json")})
    try:
        # The variable is readable once the child has become its program.
        assert wait_for(Path(f"/proc/{ours.pid}/environ"))
        swept = []
        deadline = time.monotonic() + PATIENCE_S
        while not swept and time.monotonic() < deadline:
            swept = sweep_folder(tmp_path / "a")

        assert swept == [ours.pid]
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_output_of_a_rank_is_kept_in_its_log(tmp_path: Path) -> None:
    site = LocalSite()
    site.open(CLUSTER, ports=1)
    start(site, tmp_path, "import sys; print('out'); print('err', file=sys.stderr)")
    site._processes.started[0].wait()
    site.stop()

    assert sorted((tmp_path / "worker0.log").read_text().split()) == ["err", "out"]
