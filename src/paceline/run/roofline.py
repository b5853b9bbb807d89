"""Measures what one core of this machine can do at best: arithmetic and memory traffic, each the best of several tries.

A process of its own does this, on one core and with one thread, so that no thread pool of ours takes part.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from paceline.errors import PacelineError
from paceline.record.peak import Peak
from paceline.run.host_state import machine

PROGRAM = """
import json, os, time
import numpy as np
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
def best(work, tries):
    times = []
    for _ in range(tries):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)
n = 1024
a, b, c = (np.ones((n, n), np.float32) for _ in range(3))
flops = 2 * n**3 / best(lambda: np.matmul(a, b, out=c), 12)
source, target = (np.ones(2**25, np.float32) for _ in range(2))
moved = 2 * source.nbytes / best(lambda: np.copyto(target, source), 8)
print(json.dumps({"flops_per_s": flops, "bytes_per_s": moved}))
"""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LIMIT_S = 120.0


def measure_peak() -> Peak:
    """Measure it now, in about two seconds.

    Raises:
        PacelineError: the program did not end well.
    """
    variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
        rates: dict[str, float] = json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        raise PacelineError(
            f"the machine could not be measured: {error}", hint="try again on a quiet machine"
        ) from None
    return Peak(
        flops_per_s=rates["flops_per_s"],
        bytes_per_s=rates["bytes_per_s"],
        machine=machine()["id"],
        measured=time.time(),
    )
