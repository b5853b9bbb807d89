"""A process tied to its parent: when the parent dies, by whatever signal, so does it.

The host ties each rank to itself; adapters tie their own children (loader workers) with this. Linux only; elsewhere
the host's sweep at the end of the run, and before the next one, does the same later.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(*_ignored):
    """Ask the kernel to kill this process when its parent ends. Takes any arguments, to serve as an init hook."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died between fork and prctl.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
