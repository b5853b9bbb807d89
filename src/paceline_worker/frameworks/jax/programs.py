"""The programs of a JAX worker: the whole training step, and the parts of it that are timed or shown apart.

Everything that a step changes is one tree, the carry: parameters, velocities, statistics of batch norms, and the key of
what is random (None where nothing is). The step's carry is donated, so that it is updated in place.
"""

import hashlib
import os
import pickle

import jax
import numpy as np
from jax.experimental import serialize_executable

from paceline_worker import clock
from paceline_worker.frameworks.jax.builder import build_objective, build_update
from paceline_worker.frameworks.jax.group import OWN, SAME
from paceline_worker.graph.stored import load_tensors

CARRY = {"parameters": SAME, "velocities": SAME, "statistics": OWN, "key": OWN}
"""Which parts of the carry are the same on all workers, and which every worker's own."""


def first_carry(job, layout, group):
    """The carry before the first step."""
    parameters, statistics = load_tensors(job.graph, job.weights, layout)
    # Every worker drops other units.
    first = job.seed * job.workers + job.rank * job.devices
    keys = [jax.random.PRNGKey(first + index) if drops_out(job.graph) else None for index in range(job.devices)]
    return {
        "parameters": group.put_same(parameters),
        "velocities": group.put_same(jax.tree.map(np.zeros_like, parameters)),
        "statistics": group.put_own([statistics] * job.devices),
        "key": group.put_own(keys),
    }


def drops_out(graph):
    """Whether anything of a step is random."""
    return any(layer["kind"] == "dropout" and layer["attributes"]["rate"] for layer in graph["layers"])


class Programs(object):
    """Makes programs of (carry, inputs, targets); what is returned must be compiled."""

    def __init__(self, job, layout, group):
        self._objective = build_objective(job.graph, layout, job.knobs["precision"])
        self._update = build_update(job.graph)
        self._group = group

    def forward(self):
        """→ (loss, statistics)."""

        def program(carry, inputs, targets):
            _, own = _next_key(carry["key"])
            loss, kept = self._objective(carry["parameters"], carry["statistics"], inputs, targets, own)
            return loss[None], kept

        return jax.jit(self._spread(program, (OWN, OWN)))

    def gradients(self, exchange=False):
        """→ (loss, statistics, gradients): each worker's own, or averaged as a step has them."""

        def program(carry, inputs, targets):
            _, loss, kept, gradients = self._backward(carry, inputs, targets)
            return loss[None], kept, self._group.average(gradients) if exchange else gradients

        # Without exchange not the same on all workers, whatever it says: so they keep their shapes; nobody reads them.
        return jax.jit(self._spread(program, (OWN, OWN, SAME)))

    def step(self, exchange=True):
        """→ (carry, loss): all of it, or without averaging over the workers."""

        def program(carry, inputs, targets):
            key, loss, kept, gradients = self._backward(carry, inputs, targets)
            if exchange:
                gradients = self._group.average(gradients)
            parameters, velocities = self._update(carry["parameters"], carry["velocities"], gradients)
            carry = {"parameters": parameters, "velocities": velocities, "statistics": kept, "key": key}
            return carry, loss[None]

        return jax.jit(self._spread(program, (CARRY, OWN)), donate_argnums=0)

    def _backward(self, carry, inputs, targets):
        key, own = _next_key(carry["key"])
        (loss, kept), gradients = jax.value_and_grad(self._objective, has_aux=True)(
            carry["parameters"], carry["statistics"], inputs, targets, own
        )
        return key, loss, kept, gradients

    def _spread(self, program, out_specs):
        return self._group.spread(program, (CARRY, OWN, OWN), out_specs)


def _next_key(key):
    return (None, None) if key is None else jax.random.split(key)


def compiled(program, *arguments):
    """(executable, {"trace_s", "compile_s"}): the former is a part of the latter."""
    return _timed(program, arguments, lambda lowered: lowered.compile())


def _timed(program, arguments, compile_lowered):
    begun = clock.wall()
    lowered = program.lower(*arguments)
    traced = clock.wall()
    executable = compile_lowered(lowered)
    return executable, {"trace_s": traced - begun, "compile_s": clock.wall() - begun}


class CompilationCache(object):
    """Compiled programs of earlier runs, if they are wanted, and whether programs were found.

    They are in JAX's own folder. On processors JAX takes every rank's programs for different ones and lets only rank 0
    write, so that all others would compile in every run: theirs are kept here, serialized by JAX.
    """

    def __init__(self, job):
        self._folder = self._own = None
        self._found = self._missed = 0
        if job.knobs["compilation_cache"]:
            # In the host's cache, where the weights are; programs of another kind of processor are not for this one.
            kept = os.path.dirname(os.path.dirname(os.path.abspath(job.weights["path"])))
            self._folder = os.path.join(kept, "jax", "{}-{}".format(jax.__version__, _processor()))
            jax.config.update("jax_compilation_cache_dir", self._folder)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
            jax.monitoring.register_event_listener(self._hear)
            if job.rank:
                self._own = os.path.join(self._folder, "rank{}of{}".format(job.rank, job.workers // job.devices))

    def compiled(self, program, *arguments):
        """As `compiled`."""
        return _timed(program, arguments, self._restored if self._own else lambda lowered: lowered.compile())

    def state(self):
        """off | cold (all was compiled here) | warm (all was found) | partly warm, up to now."""
        if self._folder is None:
            return "off"
        if not self._found:
            return "cold"
        return "partly warm" if self._missed else "warm"

    def _restored(self, lowered):
        text = "{}\n{}".format(os.environ.get("XLA_FLAGS", ""), lowered.as_text())
        path = os.path.join(self._own, hashlib.sha256(text.encode()).hexdigest())
        executable = _loaded(path)
        if executable is None:
            executable = lowered.compile()
            _write_whole(path, pickle.dumps(serialize_executable.serialize(executable)))
        else:
            self._found += 1
        return executable

    def _hear(self, event, **_details):
        if event == "/jax/compilation_cache/cache_hits":
            self._found += 1
        elif event == "/jax/compilation_cache/cache_misses":
            self._missed += 1


def _loaded(path):
    """A program that was kept; None where there is none, or a disk or another hand has damaged it."""
    try:
        with open(path, "rb") as file:
            return serialize_executable.deserialize_and_load(*pickle.loads(file.read()))
    except Exception:  # whatever unpickling and XLA make of damaged bytes; the program is compiled instead
        return None


def _write_whole(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = "{}.{}.part".format(path, os.getpid())
    with open(part, "wb") as file:
        file.write(content)
    os.replace(part, path)


def _processor():
    """Tells processors apart by the instructions they have; "any" where the system does not list them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = [line for line in file if line.startswith(("flags", "Features"))]
    except IOError:
        return "any"
    return hashlib.sha256(flags[0].encode()).hexdigest()[:8] if flags else "any"
