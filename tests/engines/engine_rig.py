"""A cluster for the engines: lab hosts that stay up, the daemons that an engine needs on them, and Paceline inside.

The supervisor runs on a host too, and nothing of it leaves the namespaces: on the first one that trains, or on a login
node that does nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from paceline.plan.trial import ClusterChoice
from paceline.sites.lab import cgroups
from paceline.sites.lab.cluster import NO_DELAY, Cluster
from paceline.sites.lab.layout import layout_of
from paceline.sites.lab.namespaces import privilege
from paceline.sites.lab.site import KNOBS
from paceline.sites.processes import tethered
from paceline.sites.remote.agent.cores import usable_cores
from paceline.spec.study import Network

PATIENCE_S = 120.0
"""Upper bound on waits for something that will happen; never a measure of speed."""
SSH_PORT = 2222
TRAINING = 2
"""Hosts that train."""


class Hosts:
    """Lab hosts and what was started on them."""

    def __init__(
        self, folder: Path, network: Network | None = None, *, login_node: bool = False, **options: object
    ) -> None:
        """Args:
        login_node: one more host for the user and for what controls the engine; else that is the first one's job.
        options: settings of the lab that are not its defaults.
        """
        self.folder = folder
        choice = ClusterChoice(
            site="lab",
            hosts=TRAINING + login_node,
            workers_per_host=1,
            threads_per_worker=1,
            device="cpu",
            network=network,
            oversubscribe=True,
            options={**{name: knob.default for name, knob in KNOBS.items()}, **options},
        )
        how, bases = privilege(), cgroups.find_bases()
        assert how is not None
        groups = cgroups.Groups(bases, cgroups.owner_of_this_process()) if bases else None
        self.layout = layout_of(choice, usable_cores())
        self.cluster = Cluster(self.layout, privilege=how, delay_by=NO_DELAY, groups=groups)
        self.cluster.make()
        self.training = self.layout.hosts[:TRAINING]
        self.addresses = [host.address for host in self.training]
        self.login = TRAINING if login_node else 0
        self._started: list[subprocess.Popen[bytes]] = []
        self._short: list[str] = []

    def command(self, host: int, argv: Sequence[str]) -> list[str]:
        """The command line that runs these words on a host, held to its cores, and dies with us."""
        inside = [*self.cluster.hosts[host].enter("net", "uts", "pid", "mount"), "--", *argv]
        return tethered(inside, cores=self.layout.hosts[host].cores, groups=self.cluster.folders[host])

    def start(self, host: int, name: str, argv: Sequence[str], **env: str) -> subprocess.Popen[bytes]:
        """A daemon on a host, its output in `<name>.log`."""
        with (self.folder / f"{name}.log").open("wb") as log:
            popen = subprocess.Popen(
                self.command(host, argv),
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(popen)
        return popen

    def run(self, host: int, argv: Sequence[str], **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(host, argv),
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=600,
        )

    def wait_for(self, what: str, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            told = "\n".join(
                f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in self.folder.glob("*.log")
            )
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s\n{told}"
            time.sleep(0.1)

    def listens(self, host: int, port: int) -> bool:
        address = self.layout.hosts[host].address
        program = f"import socket; socket.create_connection(('{address}', {port}), 1)"
        return self.run(host, [sys.executable, "-c", program]).returncode == 0

    def short_folder(self) -> str:
        """A folder whose name leaves room for a socket's: 107 bytes in all."""
        self._short.append(tempfile.mkdtemp(prefix="lab"))
        return self._short[-1]

    def close(self) -> None:
        for popen in self._started:
            popen.kill()
        self.cluster.close()
        for popen in self._started:
            popen.wait()
        for folder in self._short:
            shutil.rmtree(folder, ignore_errors=True)


def start_ssh(hosts: Hosts) -> str:
    """sshd on every host; the options with which ssh reaches them."""
    folder = hosts.folder
    key, host_key = folder / "id_ed25519", folder / "host_key"
    for path in (key, host_key):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    (folder / "authorized_keys").write_bytes((folder / "id_ed25519.pub").read_bytes())
    Path("/run/sshd").mkdir(exist_ok=True)
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert sshd is not None
    for number, address in enumerate(hosts.addresses):
        config = folder / f"sshd{number}.conf"
        config.write_text(
            f"Port {SSH_PORT}\nListenAddress {address}\nHostKey {host_key}\nAuthorizedKeysFile {folder}/authorized_keys\n"
            "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
        )
        hosts.start(number, f"sshd{number}", [sshd, "-D", "-e", "-f", str(config)])
    for number in range(len(hosts.addresses)):
        hosts.wait_for("sshd", lambda number=number: hosts.listens(number, SSH_PORT))
    return f"-p {SSH_PORT} -i {key} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def start_slurm(hosts: Hosts) -> dict[str, str]:
    """munged, slurmctld and a slurmd on every host; the variables with which its programs find them."""
    run = hosts.folder / "slurm"
    for name in ("state", "spool", "munge"):
        (run / name).mkdir(parents=True)
    key = run / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    sock = run / "munge" / "sock"
    munged = ["munged", "-F", "--force", "--key-file", str(key), "--socket", str(sock), "--num-threads", "2"]
    munged += ["--pid-file", str(run / "munge" / "pid"), "--log-file", str(run / "munge" / "log")]
    munged += ["--seed-file", str(run / "munge" / "seed")]
    hosts.start(hosts.login, "munged", [shutil.which("munged", path="/usr/sbin") or "munged", *munged[1:]])
    hosts.wait_for("munged", sock.exists)
    nodes = "\n".join(
        f"NodeName={host.name} NodeAddr={host.address} CPUs=4 RealMemory=2000 State=UNKNOWN" for host in hosts.training
    )
    controller = hosts.layout.hosts[hosts.login]
    conf = run / "slurm.conf"
    conf.write_text(f"""\
ClusterName=lab
SlurmctldHost={controller.name}({controller.address})
AuthType=auth/munge
AuthInfo=socket={sock}
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort=26817
SlurmdPort=26818
StateSaveLocation={run}/state
SlurmdSpoolDir={run}/spool-%n
SlurmctldPidFile={run}/slurmctld.pid
SlurmdPidFile={run}/slurmd-%n.pid
SlurmctldLogFile={hosts.folder}/slurmctld.log
SlurmdLogFile={hosts.folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_min_interval=0
PropagateResourceLimits=NONE
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
""")
    env = {"SLURM_CONF": str(conf)}
    hosts.start(hosts.login, "ctld", ["/usr/sbin/slurmctld", "-D"], **env)
    for number, host in enumerate(hosts.training):
        hosts.start(number, f"node{number}", ["/usr/sbin/slurmd", "-D", "-N", host.name], **env)

    def idle() -> bool:
        told = hosts.run(hosts.login, ["sinfo", "--noheader", "--format", "%T %D"], **env).stdout.split()
        return told == ["idle", str(len(hosts.addresses))]

    hosts.wait_for("slurm", idle)
    return env


def start_ray(hosts: Hosts, ray: str) -> str:
    """A head where the user is, a node on each other host; the address of the cluster."""
    own = hosts.layout.hosts[hosts.login].address
    address = f"{own}:6379"
    common = ["--block", "--disable-usage-stats"]
    # A head that is not asked to train has no cores to give.
    cores = f"--num-cpus={2 if own in hosts.addresses else 0}"
    head = ["--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={hosts.short_folder()}"]
    hosts.start(hosts.login, "ray-head", [ray, "start", *head, f"--node-ip-address={own}", cores, *common])
    hosts.wait_for("ray's head", lambda: hosts.listens(hosts.login, 6379))
    for number, node in enumerate(hosts.addresses):
        if node != own:
            joins = [f"--address={address}", f"--node-ip-address={node}", "--num-cpus=2"]
            hosts.start(number, f"ray{number}", [ray, "start", *joins, *common])
            # One after the other: hosts share the disk here, and two that start at once take the same socket's name.
            log = hosts.folder / f"ray{number}.log"
            hosts.wait_for("a node of ray", lambda log=log: "Ray runtime started" in log.read_text(errors="replace"))
    return address
