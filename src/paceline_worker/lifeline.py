"""A process tied to its parent: when the parent dies, by whatever signal, so does it.

The host ties each rank to itself; adapters tie their own children (loader workers) with this. Linux only; elsewhere
the host's sweep at the end of the run, and before the next one, does the same later.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tied_to_this_process():
    """A function for children of this process: asks the kernel to kill them when it ends. Takes any arguments, to
    serve as an init hook."""
    parent = os.getpid()

    def tie(*_ignored):
        if not sys.platform.startswith("linux"):
            return
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died between fork and prctl.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return tie
