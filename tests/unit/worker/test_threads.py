"""How long the threads of a process ran and waited for a core."""

from __future__ import annotations

import subprocess
import sys

from paceline_worker import clock
from paceline_worker.loop import threads_since

CROWDED = """
import hashlib, os, threading
from paceline_worker import clock
from paceline_worker.loop import threads_since

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def compute():  # lets go of the interpreter's lock, as a framework's kernels do
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 300_000)
workers = [threading.Thread(target=compute) for _ in range(COUNT)]
before = clock.threads()
for worker in workers:
    worker.start()
seen = clock.threads()
while any(worker.is_alive() for worker in workers):
    seen.update(clock.threads())
print(*threads_since(before, seen))
"""


def ran_and_waited(threads: int) -> tuple[float, float]:
    program = CROWDED.replace("COUNT", str(threads))
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    ran, waited = map(float, printed.split())
    return ran, waited


def test_threads_that_share_one_core_wait_longer_than_they_run():
    ran, waited = ran_and_waited(4)

    assert ran > 0
    assert waited > 1.5 * ran


def test_every_thread_of_this_process_is_told():
    assert clock.threads()


def test_a_thread_that_began_in_between_counts_from_its_beginning_and_one_that_ended_for_nothing():
    before = {"1": (10.0, 1.0), "2": (5.0, 5.0)}
    after = {"1": (12.0, 1.5), "3": (1.0, 0.25)}

    assert threads_since(before, after) == (3.0, 0.75)
