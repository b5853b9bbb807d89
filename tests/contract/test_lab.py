"""The lab with real namespaces, links and groups. Nothing here depends on how fast the machine is."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import psutil
import pytest

from paceline.errors import SiteError
from paceline.plan.process import Process
from paceline.plan.trial import ClusterChoice
from paceline.record import Record, Store, summarize
from paceline.report.numbers import step
from paceline.sites.lab import cgroups, namespaces
from paceline.sites.lab.site import KNOBS, LabSite
from paceline.spec.study import Network
from street import command_environment, paceline, run_study, study_of, to_toml

STATE = LabSite().state()
GROUPS = cgroups.find_bases()
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(STATE.state != "ready", reason=f"site lab: {STATE.reason}; {STATE.fix}"),
]
needs_groups = pytest.mark.skipif(GROUPS is None, reason="control groups cannot be written here")
needs_latency = pytest.mark.skipif("no latency" in STATE.reason, reason=STATE.reason)
PATIENCE_S = 300
"""Upper bound on waits for something that will happen; never a measure of speed."""
SLOW = Network(bandwidth_bytes_per_s=12.5e6)


def cluster(hosts: int = 2, network: Network | None = None, **options: Any) -> ClusterChoice:
    # Oversubscribed, so that it runs on a machine with one core as well.
    return ClusterChoice(
        site="lab",
        hosts=hosts,
        workers_per_host=1,
        threads_per_worker=1,
        device="cpu",
        network=network,
        oversubscribe=True,
        options={name: knob.default for name, knob in KNOBS.items()} | options,
    )


def lab_study(
    measure: dict[str, Any] | None = None, hosts: Any = 2, network: Any = "100Mbit", **options: Any
) -> dict[str, Any]:
    return study_of(
        {"time": "real"},
        cluster={"site": "lab", "hosts": hosts, "network": network, "oversubscribe": True, "lab": options},
        measure={"repeats": 1, "steps": 12, **(measure or {})},
    )


@pytest.fixture
def site() -> Iterator[LabSite]:
    site = LabSite()
    yield site
    site.stop()
    site.close()


def output_of(site: LabSite, folder: Path, host: int, program: str) -> str:
    """What a program prints on a host."""
    process = Process(role="worker", rank=host, host=host, argv=(), cores=())
    env = {"PATH": os.environ["PATH"], "PACELINE_JOB": str(folder / "job.json")}
    running = site.start(process, argv=[sys.executable, "-c", textwrap.dedent(program)], env=env, folder=folder)
    assert running.wait() == 0
    return (folder / f"worker{host}.log").read_text().strip()


def left_of(folder: Path) -> list[str]:
    """Processes that a lab for this folder's cache or store still has: inits, ranks, delay lines."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and str(folder) in "\n".join(
                [*process.environ().values(), *process.cmdline()]
            ):
                found.append(f"{process.pid} {process.cmdline()}")
        except (psutil.Error, OSError):
            continue
    return [one for one in found if not one.startswith(f"{os.getpid()} ")]


def groups_of(owner: int) -> list[Path]:
    """Control groups that a lab of this process has left."""
    bases = GROUPS.folders if GROUPS else []
    return [folder for base in bases for folder in base.glob(f"{cgroups.PREFIX}.{owner}.*")]


def assert_nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while left := left_of(folder):
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.02)


def test_hosts_have_names_addresses_and_process_tables_of_their_own(site: LabSite, tmp_path: Path) -> None:
    topology = site.open(cluster(), ports=2)
    program = "import os, socket; print(socket.gethostname(), os.getpid() < 100)"
    seen = [output_of(site, tmp_path, host, program) for host in (0, 1)]

    assert seen == ["lab1 True", "lab2 True"]
    assert [host.address for host in topology.hosts] == ["10.77.0.1", "10.77.0.2"]
    assert all(len(set(host.ports)) == 2 for host in topology.hosts)
    assert all(host.interface == "eth0" for host in topology.hosts)


def test_hosts_know_themselves_and_each_other_by_name(site: LabSite, tmp_path: Path) -> None:
    """JAX's gloo asks for the address of its own host's name, as on a real cluster."""
    site.open(cluster(), ports=1)
    program = "import socket; print(*map(socket.gethostbyname, (socket.gethostname(), 'lab1', 'lab2', 'localhost')))"
    seen = [output_of(site, tmp_path, host, program) for host in (0, 1)]

    assert seen == ["10.77.0.1 10.77.0.1 10.77.0.2 127.0.0.1", "10.77.0.2 10.77.0.1 10.77.0.2 127.0.0.1"]


def test_nothing_is_made_outside_and_nothing_is_left_after_close(tmp_path: Path) -> None:
    before = set(psutil.net_if_addrs())
    site = LabSite()
    site.open(cluster(3, SLOW), ports=1)
    inside, inits = set(psutil.net_if_addrs()), [host.init for host in site._opened().cluster.hosts]
    site.close()

    assert inside == before
    assert not any(psutil.pid_exists(init) for init in inits)
    if GROUPS:
        assert not [f for base in GROUPS.folders for f in base.glob(f"*{cgroups.owner_of_this_process()}")]


def test_two_hosts_train_over_a_slow_link_and_the_record_says_what_it_achieved(tmp_path: Path) -> None:
    (record,) = run_study(lab_study(), tmp_path)

    assert record.ok, record.outcome
    assert {rank.host for rank in record.ranks} == {"lab1", "lab2"}
    site = record.state["site"]
    assert [link["host"] for link in site["links"]] == ["lab1", "lab2"]
    assert all(link["asked_bytes_per_s"] == 12.5e6 for link in site["links"])
    # Never faster than asked, but for the bucket's burst in a short measurement.
    assert all(0 < link["sent_bytes_per_s"] < 1.1 * 12.5e6 for link in site["links"])
    assert all(link["round_trip_s"] > 0 for link in site["links"])
    assert site["own_cpu"]["wall_s"] > 0


@needs_groups
@pytest.mark.parametrize("time", ["real", "law"])
def test_trial_in_slow_motion_has_one_step_time_in_every_answer(tmp_path: Path, time: str) -> None:
    data = lab_study({"repeats": 3}, hosts=[1, 2], dilation=2)
    data["framework"]["null"]["time"] = time
    (tmp_path / "slow.toml").write_text(to_toml(data), encoding="utf-8")
    ended = paceline(tmp_path, "run", "slow.toml", "--json")
    assert ended.returncode == 0, ended.stderr
    runs = json.loads(ended.stdout)["runs"]
    rows = json.loads(paceline(tmp_path, "compare", "slow.toml", "--json").stdout)["rows"]
    explained = json.loads(paceline(tmp_path, "explain", "slow.toml", "--json").stdout)["explanations"]
    html = paceline(tmp_path, "report", "slow.toml", "--html", "slow.html")
    assert html.returncode == 0, html.stderr
    page = (tmp_path / "slow.html").read_text(encoding="utf-8")
    texts = [
        " ".join(paceline(tmp_path, name, "slow.toml").stdout.split()) for name in ("compare", "explain", "report")
    ]
    with Store.open(tmp_path / "store") as store:
        passed = {record.trial.id: summarize(record) for record in store.records()}

    assert len(rows) == 2
    for row, explanation in zip(rows, explained, strict=True):
        step_s = row["step_s"]["value"]
        own = [run["step_s"] for run in runs if run["trial"] == row["trial"]]
        assert explanation["step_s"] == pytest.approx(step_s)
        assert geometric_mean(own) == pytest.approx(step_s)
        assert f'data-value="{step_s!r}"' in page
        # What a law says is not slowed by any site; the rest is recorded as it passed.
        last = passed[row["trial"]]
        assert last is not None
        assert last.step_s / own[-1] == pytest.approx(2 if time == "real" else 1)
        for text in texts:
            assert step(step_s) in text
    said = [("as on the emulated cluster" in " ".join(text.split())) for text in (*texts, page)]
    assert said == [time == "real"] * 4


def test_traffic_of_a_run_is_that_of_its_hosts(tmp_path: Path) -> None:
    alone, both = sorted(run_study(lab_study(hosts=[1, 2]), tmp_path), key=lambda record: record.trial.workers)

    assert both.resources["network"]["scope"] == "hosts"
    steps = both.trial.measure.steps
    assert both.resources["network"]["sent_bytes"] > steps * both.inputs["gradient_bytes"]
    assert alone.resources["network"]["sent_bytes"] < both.inputs["gradient_bytes"]


@needs_latency
def test_latency_is_never_less_than_asked(site: LabSite) -> None:
    site.open(cluster(2, Network(latency_s=5e-3)), ports=1)
    links = site.facts()["links"]

    assert all(link["asked_round_trip_s"] == pytest.approx(10e-3) for link in links)
    assert all(link["round_trip_s"] > 9e-3 for link in links)


@needs_groups
def test_host_gets_no_more_than_its_share_of_a_core(site: LabSite, tmp_path: Path) -> None:
    site.open(cluster(1, core_share=0.25), ports=1)
    told = output_of(
        site,
        tmp_path,
        0,
        """
        import time
        start, cpu = time.monotonic(), time.process_time()
        while time.monotonic() < start + 1.5:
            pass
        print((time.process_time() - cpu) / (time.monotonic() - start))
        """,
    )

    assert float(told) < 0.28


def spinning() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if any("spin.py" in word for word in child.cmdline())]


def test_cores_stay_awake_while_processes_run_and_only_then(site: LabSite, tmp_path: Path) -> None:
    site.open(cluster(1), ports=1)
    before = spinning()
    output_of(site, tmp_path, 0, "print('done')")
    during = spinning()
    deadline = time.monotonic() + PATIENCE_S
    while {os.sched_getscheduler(one.pid) for one in during} != {os.SCHED_IDLE} or site.own_cpu_s() == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    site.stop()

    assert not before
    assert not any(one.is_running() for one in during)
    assert len(during) == len(site.facts()["awake"])


@needs_groups
def test_what_keeps_cores_awake_takes_nothing_from_a_host(site: LabSite, tmp_path: Path) -> None:
    topology = site.open(cluster(1), ports=1)
    # However busy the machine is: of two that want the same core, the host's process gets nearly all.
    output_of(site, tmp_path, 0, "import time\nwhile time.process_time() < 2: pass")
    (beside,) = [one for one in spinning() if one.cpu_affinity() == list(topology.hosts[0].cores)]

    assert sum(beside.cpu_times()[:2]) < 1.0


def test_cores_may_sleep_where_the_study_says_so(site: LabSite, tmp_path: Path) -> None:
    site.open(cluster(1, awake=False), ports=1)
    output_of(site, tmp_path, 0, "print('done')")

    assert not spinning()


def test_links_are_measured_once_for_a_configuration(site: LabSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.open(cluster(2), ports=1)
    first = site.facts()["links"]
    site.close()
    monkeypatch.setattr("paceline.sites.lab.cluster.Cluster.measure", lambda _self: pytest.fail("measured again"))
    site.open(cluster(2), ports=1)

    assert site.facts()["links"] == first


def test_link_above_the_measured_ceiling_is_refused_with_it(site: LabSite) -> None:
    impossible = cluster(2, Network(bandwidth_bytes_per_s=1e13))
    assert site.limits().refuses(impossible) is None  # nothing was measured yet
    with pytest.raises(SiteError, match="links of the lab are true up to"):
        site.open(impossible, ports=1)

    assert "links of the lab are true up to" in (site.limits().refuses(impossible) or "")


@pytest.mark.parametrize(
    "fault, outcome",
    [("kill-host:lab2@5", "failed"), ("cut-link:lab2@5", "timed_out"), ("slow-host:lab2@5:4", "ok")],
)
def test_fault_strikes_at_its_step_and_ends_as_a_record(tmp_path: Path, fault: str, outcome: str) -> None:
    if "slow" in fault and GROUPS is None:
        pytest.skip("control groups cannot be written here")
    limit = {"time_limit": "15s"} if outcome == "timed_out" else {}
    (record,) = run_study(lab_study(limit, fault=fault), tmp_path)

    assert record.outcome.kind.value == outcome, record.outcome
    struck = record.state["site"]["fault"]
    assert (struck["host"], struck["step"]) == ("lab2", 5)
    assert struck["kind"] == fault.split(":", maxsplit=1)[0]


def test_site_can_be_used_again_after_a_host_was_killed(tmp_path: Path) -> None:
    records: list[Record] = run_study(lab_study(fault=["kill-host:lab2@5", "none"]), tmp_path)

    assert sorted(record.outcome.kind.value for record in records) == ["failed", "ok"]


def victim_of(host: subprocess.Popen[bytes], folder: Path, dice: random.Random) -> str:
    """Kill the supervisor, a rank or the delay line at a random moment; which of them."""
    deadline = time.monotonic() + PATIENCE_S
    wanted = dice.choice(["supervisor", "rank", "delay line"])
    while host.poll() is None and time.monotonic() < deadline:
        found: dict[str, psutil.Process] = {"supervisor": psutil.Process(host.pid)}
        for process in psutil.Process(host.pid).children(recursive=True):
            try:
                line = process.cmdline()
            except psutil.Error:
                continue
            found |= {"delay line": process} if line and "delay-line-" in line[0] else {}
            found |= {"rank": process} if "paceline_worker" in line and "python" in line[0] else {}
        if wanted in found and (wanted != "supervisor" or dice.random() < 0.1):
            time.sleep(dice.uniform(0, 0.3))
            try:
                found[wanted].kill()
            except psutil.NoSuchProcess:
                continue
            return wanted
        time.sleep(0.01)
    return "over"


@needs_latency
def test_killed_twenty_times_nothing_is_left_and_a_resume_completes(tmp_path: Path) -> None:
    repeats, dice = 30, random.Random(20260101)
    network = {"bandwidth": "100Mbit", "latency": "1ms"}
    study = tmp_path / "study.toml"
    study.write_text(to_toml(lab_study({"repeats": repeats}, network=network)), encoding="utf-8")
    env = command_environment(tmp_path)
    kills: list[str] = []
    owners: list[int] = []
    while len(kills) < 20:
        host = subprocess.Popen(
            [sys.executable, "-m", "paceline", "run", str(study)],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        owners.append(host.pid)
        kills.append(victim_of(host, tmp_path, dice))
        if kills[-1] != "supervisor" and kills[-1] != "over":
            time.sleep(dice.uniform(0, 0.5))
            host.send_signal(signal.SIGKILL)
        host.wait()
        assert_nothing_is_left(tmp_path)
        assert kills[-1] != "over", kills
    assert set(kills) == {"supervisor", "rank", "delay line"}

    finished = paceline(tmp_path, "run", str(study))
    # 5: ranks that were killed are recorded as failed, which is the truth.
    assert finished.returncode in {0, 5}, finished.stderr
    with Store.open(tmp_path / "store") as store:
        runs = [(record.trial.id, record.repeat) for record in store.records()]
    assert len(runs) == len(set(runs)) == repeats
    assert_nothing_is_left(tmp_path)
    # Of ours only: another test may just have killed a lab of its own.
    assert not [folder for owner in owners for folder in groups_of(owner)]


HOLDING = """
import time
import test_lab as t
site = t.LabSite()
site.open(t.cluster(2), ports=1)
print(flush=True)
time.sleep(600)
"""


@needs_groups
def test_doctor_removes_the_groups_of_a_killed_owner_and_of_nobody_else(site: LabSite, tmp_path: Path) -> None:
    env = {**command_environment(tmp_path), "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    killed = subprocess.Popen([sys.executable, "-c", HOLDING], env=env, stdout=subprocess.PIPE)
    assert killed.stdout is not None
    killed.stdout.readline()
    killed.kill()
    killed.wait()
    killed.stdout.close()
    assert_nothing_is_left(tmp_path)
    folders = groups_of(killed.pid)
    site.open(cluster(1), ports=1)
    done = paceline(tmp_path, "doctor", "--fix")

    assert done.returncode == 0, done.stderr
    # A run of a lab sweeps too, and tests run beside this one: who came first may have removed them.
    assert not any(folder.exists() for folder in folders), done.stderr
    assert all(folder.is_dir() for group in site._opened().cluster.folders for folder in group)


def as_nobody(folder: str, program: str) -> subprocess.Popen[str]:
    """Run a program without any rights, by the first interpreter that nobody may start."""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    env = {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "PACELINE_CACHE": folder,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)]),
    }
    for python in (sys.executable, "/usr/bin/python3"):
        # By a shell, which has given up its rights already when it starts the interpreter.
        tried = [*become, "sh", "-c", f"{python} -c 'import psutil, pytest, paceline'"]
        if subprocess.run(tried, env=env, capture_output=True, check=False).returncode == 0:
            command = [*become, python, "-c", textwrap.dedent(program)]
            return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pytest.skip("nobody may read neither this checkout nor an interpreter for it")


WITHOUT_ROOT = """
import time
from paceline.sites.lab.site import LabSite
import test_lab as t
site = LabSite()
state = site.state()
if state.state == "ready":
    assert "without root" in state.reason, state
    site.open(t.cluster(2, t.SLOW), ports=1)
    assert len(site.facts()["links"]) == 2
    if t.cgroups.find_bases() is None:
        assert "run as root" in site.limits().refuses(t.cluster(2, core_share=0.5))
    print(*(host.init for host in site._opened().cluster.hosts), flush=True)
    time.sleep(600)
assert state.reason and state.fix
print("says what is needed", flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_without_root_it_works_in_a_user_namespace_and_dies_with_us_or_says_what_is_needed() -> None:
    # Where pytest keeps its folders nobody may look.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        host = as_nobody(folder, WITHOUT_ROOT)
        assert host.stdout is not None
        told = host.stdout.readline().strip()
        host.kill()
        _, errors = host.communicate()

        assert told, errors
        if told != "says what is needed":
            assert all(one.isdigit() for one in told.split())
            assert_nothing_is_left(Path(folder))


def test_a_host_whose_makers_death_went_unheard_ends_with_the_pipe_that_the_maker_held() -> None:
    user = namespaces.OWN_USER if namespaces.privilege() == namespaces.AS_USER else ()
    init = namespaces.INIT.format(name="orphan", names="")
    # Without --kill-child: as if `unshare` had died before it could ask for the signal.
    made = subprocess.Popen(
        ["unshare", *user, "--net", "--uts", "--pid", "--mount-proc", "--fork", "sh", "-c", init],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert made.stdin is not None
    assert made.stdout is not None
    with made.stdin, made.stdout:
        assert made.stdout.readline() == b"ready\n"
        host = psutil.Process(made.pid).children()[0]
        made.kill()
        made.wait()
        alone = host.status()
    deadline = time.monotonic() + PATIENCE_S
    while host.is_running() and host.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)

    assert alone != psutil.STATUS_ZOMBIE
