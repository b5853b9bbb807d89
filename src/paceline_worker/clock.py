"""The clocks of a step: wall time, this process's CPU time, and how long its main thread waited for a core; between
blocks of steps also how long all threads of the process ran and waited. All in seconds from an arbitrary zero.

Python 3.6 has no `perf_counter_ns`; the float of `perf_counter` still resolves below a microsecond after months of
uptime, which is enough for steps of a millisecond.
"""

import os
import time

unix = time.time
wall = time.perf_counter
cpu = time.process_time


def _waiting_for_a_core():
    """Reads how long the thread that imports this could have run while no core was free, as Linux counts it; a reader
    of None elsewhere. One system call on an open file, about 1 µs.
    """
    try:
        counters = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return lambda: None
    return lambda: int(os.pread(counters, 64, 0).split()[1]) * 1e-9


starved = _waiting_for_a_core()


def threads():
    """Thread of this process → (seconds that it ran, seconds that it was runnable without a core); empty where the
    system does not tell. About 50 µs per thread, so not for use inside a step.

    Where a step is one program the main thread sleeps while others compute: only all of them together tell whether
    computing had the cores that it wanted.
    """
    times = {}
    try:
        running = os.listdir("/proc/self/task")
    except OSError:
        return times
    for thread in running:
        try:
            with open("/proc/self/task/{}/schedstat".format(thread)) as file:
                ran, waited = file.read().split()[:2]
            times[thread] = int(ran) * 1e-9, int(waited) * 1e-9
        except (OSError, ValueError):  # it has just ended, or the kernel keeps no such numbers
            continue
    return times


started = wall()
"""When this module was first imported, which `__main__` does before anything heavy: the start of the process."""
