"""`python -m paceline_worker`: one rank of one run, as the job says. Has the last word even when it crashes."""

import faulthandler
import importlib
import os
import signal
import sys
import traceback

from paceline_worker import clock, protocol  # noqa: F401  clock, imported early, notes the start of the process

TRACEBACK_LINES = 30
"""Enough to see the framework's frames below ours."""


class Ended(BaseException):
    """The host asked this process to end (SIGTERM)."""


def _end(signum, _frame):
    raise Ended("signal {}".format(signum))


def main():
    faulthandler.enable()
    job = protocol.load_job(os.environ)
    events = protocol.Events(job.events_path, job.rank)
    signal.signal(signal.SIGTERM, _end)
    try:
        events.write("hello", **protocol.introduction())
        module = importlib.import_module(job.module)
        module.train(job, events)
        events.write("done", **protocol.farewell())
        return 0
    except MemoryError as error:
        events.write("crashed", error="MemoryError", message=str(error), traceback=_tail())
        return protocol.EXIT_MEMORY
    except Ended as error:
        events.write("ended", message=str(error))
        return protocol.EXIT_ENDED
    except BaseException as error:  # the last word: whatever it was, the host must learn of it
        events.write("crashed", error=type(error).__name__, message=str(error), traceback=_tail())
        traceback.print_exc()
        return protocol.EXIT_CRASHED
    finally:
        events.close()


def _tail():
    return traceback.format_exc().splitlines()[-TRACEBACK_LINES:]


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Frameworks keep threads and connections that can hang in interpreter shutdown when a peer is gone; the
    # last word is written, so nothing is lost by leaving at once.
    os._exit(code)
