"""The two clocks of a step: wall time and this process's CPU time, both in seconds from an arbitrary zero.

Python 3.6 has no `perf_counter_ns`; the float of `perf_counter` still resolves below a microsecond after months of
uptime, which is enough for steps of a millisecond.
"""

import time

unix = time.time
wall = time.perf_counter
cpu = time.process_time

started = wall()
"""When this module was first imported, which `__main__` does before anything heavy: the start of the process."""
