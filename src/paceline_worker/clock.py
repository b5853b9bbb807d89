"""The clocks of a step: wall time, this process's CPU time, and how long its main thread waited for a core. All in
seconds from an arbitrary zero.

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

started = wall()
"""When this module was first imported, which `__main__` does before anything heavy: the start of the process."""
