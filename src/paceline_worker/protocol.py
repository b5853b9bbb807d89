"""The job that comes in and the event lines that go out. Versioned JSON, no code, no pickles.

Events, one JSON object a line in `events.<rank>.jsonl`, each with `v` (version), `t` (Unix time), `rank`, `event`:

    hello    pid, python, platform, executable          the process is there
    ready    framework_version, parameters, setup_s, facts        about to take the first step
    steps    kind (first | warmup | measured), first (step number), start_s, wall_s, cpu_s, starved_s, phases, loss,
             origin_unix_s (time of day at which start_s is zero); of a collective bytes, the message's
    layers   forward_s, gradient_ready_s (layer -> list of one number a step)
    evidence  what, tensors (see `evidence`)            in runs of a fairness proof
    rounding  number, losses, gradients, weights, statistics        a float32 training of a proof's reference
    facts    facts                                      what the adapter learnt of itself on the way; adds to ready's
    note     message                                    something the user should know
    done     peak_rss_bytes, cpu_s, facts               all steps were taken
    crashed  error, message, traceback                  the last word
    ended    message                                    ended on the host's request
"""

import json
import os
import platform
import resource
import sys
import time

VERSION = 1

EXIT_CRASHED = 81
EXIT_MEMORY = 82
EXIT_ENDED = 83


class Job(object):
    """One rank's view of the run's job file."""

    def __init__(self, data, rank, folder):
        if data["version"] != VERSION:
            raise ValueError("job version {} but this worker speaks {}".format(data["version"], VERSION))
        self.data = data
        self.rank = rank
        self.folder = folder
        self.world_size = data["world_size"]
        """Processes that train."""
        self.devices = data.get("devices", 1)
        """Workers that are devices of this one process; worker i of it is number rank * devices + i of all."""
        self.workers = self.world_size * self.devices
        """Copies of the model, each with a batch of its own."""
        self.process = data["processes"][rank]
        """This rank's own entry: host, address, cores, local_rank."""
        self.module = data["framework"]["module"]
        self.strategy = data["framework"]["strategy"]
        self.knobs = data["framework"]["knobs"]
        self.rendezvous = data["rendezvous"]
        """{"address": rank 0's address, "ports": [...]}"""
        self.threads = data["threads"]
        self.device = data["device"]
        self.graph = data["graph"]
        """What to train; None where a program of the user's brings its own model."""
        self.drops_out = data.get("drops_out", False)
        """Whether the graph that was asked for has dropout; a proof's `graph` comes without."""
        self.program = data.get("program")
        """{"folder", "script", "arguments", "files", "working_directory"} of a user's training program; else None."""
        self.collective = data.get("collective")
        """{"operation", "sizes" in bytes} where a collective is measured by itself; else None."""
        self.weights = data["weights"]
        """{"path", "index"}: the flat file of initial weights and its JSON index; None where none are needed."""
        self.input = data["input"]
        """{"kind": resident | pipeline, "index": path of the data's JSON index, "loader_workers"}"""
        self.batch = data["batch_per_worker"]
        self.seed = data["seed"]
        self.repeat = data["repeat"]
        self.warmup_steps = data["measure"]["warmup_steps"]
        self.steps = data["measure"]["steps"]
        self.layers = data["measure"]["layers"]
        self.evidence = data["measure"].get("evidence", False)
        """Whether this run is part of a fairness proof: see `paceline_worker.evidence`."""
        self.tell_at_step = data.get("tell_at_step")
        """The step before which the host wants to find a file `reached.STEP`, because something is to happen then."""
        self.events_path = os.path.join(folder, "events.{}.jsonl".format(rank))


def load_job(environ):
    """The job this process was started for: PACELINE_JOB names the file, PACELINE_RANK the rank."""
    path = environ["PACELINE_JOB"]
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    return Job(data, int(environ["PACELINE_RANK"]), os.path.dirname(os.path.abspath(path)))


class Events(object):
    """Event lines of one rank. Written between blocks of steps, never inside one."""

    def __init__(self, path, rank):
        self._file = open(path, "a", encoding="utf-8")
        self._rank = rank

    def write(self, event, **fields):
        line = dict(fields, v=VERSION, t=time.time(), rank=self._rank, event=event)
        self._file.write(json.dumps(line) + "\n")
        # Flushed to the kernel, not to the disk: it survives the death of this process, and costs no disk wait.
        self._file.flush()

    def close(self):
        self._file.close()


def introduction():
    return {
        "pid": os.getpid(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
    }


def farewell():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"peak_rss_bytes": peak_rss_bytes(), "cpu_s": usage.ru_utime + usage.ru_stime}


def peak_rss_bytes():
    """The most memory this program has held resident.

    On Linux not from getrusage: its maximum survives exec, so it would tell the size of the host that forked us.
    """
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except IOError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
