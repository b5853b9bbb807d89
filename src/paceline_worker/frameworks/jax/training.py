"""How one rank trains with JAX: one compiled step, on one device or several, alone or with peers over gloo.

Ties together what others own: the model (`builder`), its programs (`programs`), the samples (`input`), the
peers (`group`) and the phases (`phases`).
"""

import hashlib
import os

import jax

from paceline_worker import clock, evidence, protocol
from paceline_worker.frameworks.jax import phases as jax_phases
from paceline_worker.frameworks.jax.group import join
from paceline_worker.frameworks.jax.input import open_source
from paceline_worker.frameworks.jax.programs import (
    CompilationCache,
    Programs,
    first_carry,
)
from paceline_worker.graph.stored import named_tensors
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps

KERNELS = (
    ("onednn", ("__onednn",)),
    ("xnnpack", ("__xnn",)),
    ("ynnpack", ("__ynn",)),
    ("eigen", (" convolution(", " dot(")),
)
"""Library → what a compiled program that calls it has in its text, one of these."""


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    training = Training(job)
    steps = Steps(jax_phases.PHASES)
    step, carry = jax_phases.stepper(job, training.source, training.program, training.carry, steps)
    # From here on the steps hold it: the first one takes its memory.
    training.carry = None
    events.write(
        "ready",
        framework_version=jax.__version__,
        parameters=sum(array.size for array in carry()["parameters"].values()),
        setup_s=clock.wall() - clock.started,
        facts=training.facts(),
    )
    training.group.meet()
    if job.evidence:
        evidence.write(events, "gradients", training.first_gradients(carry()))
    take_steps(job, events, steps, step, training.group.synchronize)
    if job.evidence:
        for what, part in (("weights", "parameters"), ("statistics", "statistics")):
            evidence.write(events, what, training.as_in_graph(carry()[part]))
    events.write("facts", facts=training.facts_after(carry()))
    if job.knobs["derive_phases"] and not job.evidence:
        derived = jax_phases.derive_phases(
            job, training.programs, training.program, carry(), training.source, training.group, training.cache
        )
        events.write("facts", facts={"phases_derived": derived})
    training.group.leave()


class Training(object):
    """All that a rank holds: peers, input, what it trains, and the compiled step."""

    def __init__(self, job):
        self.job = job
        # Before anything asks for devices: a rank's peers are made known first.
        self.cache = CompilationCache(job)
        self.group = join(job)
        self.layout = "nhwc" if job.knobs["channels_last"] else "nchw"
        self.source = open_source(job, self.layout, self.group.batch)
        self.carry = first_carry(job, self.layout, self.group)
        self.programs = Programs(job, self.layout, self.group)
        self.program, self.compiling = self.cache.compiled(self.programs.step(), self.carry, *self.source(0))
        self.compilation_cache = self.cache.state()

    def facts(self):
        """What is in force."""
        graph = self.job.graph
        facts = {
            # Devices of one process share its pool.
            "threads": max(1, int(os.environ.get("NPROC") or len(os.sched_getaffinity(0))) // self.job.devices),
            "devices": self.job.devices,
            "layout": self.layout if graph["input"]["kind"] == "image" else None,
            "precision": self.job.knobs["precision"],
            "compiled": "jit",
            "compilation_cache": self.compilation_cache,
            "wrapped": self.group.name,
            "blas": kernels_of(self.program),
            "dropout": "own key a worker, seeded by its number" if self.job.drops_out else None,
            # The only phase that computes contains the wait for peers: a core that is idle then was not taken away.
            "waits": self.job.workers > 1,
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
            "framework_flops": flops_of(self.program),
        }
        facts.update(self.compiling)
        return facts

    def facts_after(self, carry):
        """What is known once all steps are taken, before further programs are compiled."""
        digests = [self.digest(carry["parameters"], index) for index in range(self.job.devices)]
        return {
            "weights_sha256": digests[0],
            "weights_equal_on_devices": len(set(digests)) == 1,
            "peak_rss_steps_bytes": protocol.peak_rss_bytes(),
        }

    def first_gradients(self, carry):
        """Gradients of step 0 as the update will see them, by a program of their own that changes nothing."""
        program, _ = self.cache.compiled(self.programs.gradients(exchange=True), carry, *self.source(0))
        self.group.meet()
        return self.as_in_graph(program(carry, *self.source(0))[2])

    def as_in_graph(self, tensors, device=0):
        """("layer.tensor", array) in the graph's order and layout, as one of this rank's workers has them."""
        local = {name: array.addressable_data(device) for name, array in tensors.items()}
        return named_tensors(self.job.graph, local, self.layout)

    def digest(self, parameters, device=0):
        """SHA-256 of the trainable tensors: equal on all workers of an exact strategy."""
        digest = hashlib.sha256()
        for _, array in self.as_in_graph(parameters, device):
            digest.update(array)
        return digest.hexdigest()


def flops_of(program):
    """What the compiler counts for one step of one worker; a loop's body once. None where it does not say."""
    try:
        return program.cost_analysis().get("flops")
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def kernels_of(program):
    """The libraries whose kernels the compiled step calls, besides what XLA makes itself."""
    text = program.as_text()
    called = [name for name, marks in KERNELS if any(mark in text for mark in marks)]
    return "+".join(["xla"] + called)
