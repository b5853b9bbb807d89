"""Processes that record runs as fast as they can, for test_store to kill.

    writer.py FOLDER once RUNS     one writer of so many runs
    writer.py FOLDER lives N       N writers one after the other, each ended by SIGKILL at another moment

Prints the id of every run that `Store.add` said is recorded. Lives are forked, so that imports are paid once.
"""

import os
import signal
import sys
import time
from itertools import count
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))

from paceline.errors import StoreError
from paceline.record import Store
from records import make_record, make_trial

LONGEST_ADD_S = 0.05
"""What one run takes to record on a slow disk; kills come within twice this after the last word."""


def write(folder, runs, batch=1, out=1):
    trial = make_trial(model="mlp", batch=batch, steps=10)
    with Store.open(folder, create=True) as store:
        for repeat in runs:
            try:
                store.add(make_record(trial=trial, repeat=repeat))
            except StoreError as error:
                # Another life or writer was here before; only that is forgiven.
                if "recorded already" not in error.message:
                    raise
            else:
                os.write(out, f"{trial.id}.r{repeat}.a0\n".encode())


def live(folder, number, random):
    """A writer that is killed a random moment after it has recorded 0, 1 or 2 runs more."""
    heard, said = os.pipe()
    child = os.fork()
    if child == 0:
        # Four lives share a trial: each goes over what the ones before it recorded, then on.
        write(folder, count(), batch=1 + number // 4, out=said)
    os.close(said)
    with os.fdopen(heard) as lines:
        recorded = [lines.readline() for _ in range(number % 3)]
        time.sleep(random.uniform(0, 2 * LONGEST_ADD_S))
        os.kill(child, signal.SIGKILL)
        print("".join([*recorded, *lines]), end="", flush=True)
    _, status = os.waitpid(child, 0)
    if os.WTERMSIG(status) != signal.SIGKILL:
        sys.exit(f"life {number} ended by itself: {status}")


if __name__ == "__main__":
    folder, mode, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if mode == "once":
        write(folder, range(number))
    moments = Random(number)
    for life in range(number if mode == "lives" else 0):
        live(folder, life, moments)
