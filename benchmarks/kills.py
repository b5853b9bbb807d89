"""`kill -9` at random moments of a lab run: supervisor, rank or delay line. Nothing may be left, and nothing lost.

Each round starts the same study in the same store, kills one process of it after a random while, and looks: processes,
namespaces and links of the lab must be gone, every run that was recorded must still be there. After the last round the study
is run to its end. Needs rights to make namespaces. The moments are from a fixed seed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from claims import Claim, parser, publish, say
from paceline.workbench import open_store

ROUNDS = 20
LATEST_S = 12.0
CLEAN_WITHIN_S = 20.0
STUDY = """\
[study]
name = "kills"
question = "What is left of a lab that is killed?"
[workload]
model = "lenet5"
batch_per_worker = 8
[framework]
name = "null"
[cluster]
site = "lab"
hosts = 3
network = { bandwidth = "100Mbit", latency = "2ms" }
[measure]
warmup_steps = 2
steps = 20
repeats = 40
"""


def lab_processes(store: Path) -> list[psutil.Process]:
    """All processes of runs under this store, and of the lab that they run in."""
    found = []
    for process in psutil.process_iter():
        try:
            job = process.environ().get("PACELINE_JOB", "")
            words = " ".join(process.cmdline())
        except (psutil.Error, OSError):
            continue
        if job.startswith(str(store)) or ("paceline" in words and str(store) in words):
            found.append(process)
    return found


def namespaces() -> set[str]:
    """Network namespaces that any process is in."""
    found = set()
    for process in psutil.process_iter():
        try:
            found.add(os.readlink(f"/proc/{process.pid}/ns/net"))
        except OSError:
            continue
    return found


def links() -> set[str]:
    return set(os.listdir("/sys/class/net"))


def victim(kind: str, supervisor: subprocess.Popen[bytes], store: Path) -> int | None:
    """The process to kill, if there is one just now."""
    if kind == "supervisor":
        return supervisor.pid
    family = psutil.Process(supervisor.pid).children(recursive=True)
    wanted = "delay_line" if kind == "delay line" else "paceline_worker"
    for process in family:
        try:
            if wanted in " ".join(process.cmdline()):
                return process.pid
        except psutil.Error:
            continue
    return None


def recorded(store: Path) -> set[str]:
    try:
        with open_store(store) as opened:
            return {f"{record.run_id}" for record in opened.records(with_samples=False)}
    except Exception:  # noqa: BLE001  nothing is recorded before the first run
        return set()


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    generator = random.Random(4)
    before, devices = namespaces(), links()
    left, lost, hit = [], [], {"supervisor": 0, "rank": 0, "delay line": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study, store = folder / "study.toml", folder / "store"
        study.write_text(STUDY)
        command = [sys.executable, "-m", "paceline", "run", str(study), "--store", str(store)]
        env = {**os.environ, "PACELINE_LOCK": str(folder / "lock")}
        for turn in range(ROUNDS):
            kind = list(hit)[turn % 3]
            known = recorded(store)
            running = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(generator.uniform(0.5, LATEST_S))
            target = victim(kind, running, store) if running.poll() is None else None
            if target is not None:
                os.kill(target, signal.SIGKILL)
                hit[kind] += 1
            if kind != "supervisor":
                # The run becomes a record, and the study goes on: give it a moment, then end it too.
                time.sleep(2.0)
                running.kill()
            running.wait()
            deadline = time.monotonic() + CLEAN_WITHIN_S
            while time.monotonic() < deadline and (lab_processes(store) or namespaces() - before or links() - devices):
                time.sleep(0.2)
            remains = [p.pid for p in lab_processes(store)], namespaces() - before, links() - devices
            if any(remains):
                left.append((kind, remains))
            if missing := known - recorded(store):
                lost.append(missing)
            say(f"round {turn + 1}: {kind} killed: {len(recorded(store))} runs recorded, left behind: {any(remains)}")
        done = subprocess.run(command, env=env, check=False, capture_output=True)
        finished = len(recorded(store))
    claims = [
        Claim(name="rounds after which something was left", ratio={"value": float(len(left)), "low": None, "high": None},
              claim="none", holds=not left, n=ROUNDS, facts={"hit": hit, "left": [str(one) for one in left]}),
        Claim(name="rounds after which a recorded run was gone", ratio={"value": float(len(lost)), "low": None, "high": None},
              claim="none", holds=not lost, n=ROUNDS),
        Claim(name="the study resumes to its end", ratio={"value": float(finished), "low": None, "high": None},
              claim="exit code 0", holds=done.returncode in {0, 1} and finished >= 40, n=1, facts={"exit": done.returncode}),
    ]  # fmt: skip
    return publish(claims, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
