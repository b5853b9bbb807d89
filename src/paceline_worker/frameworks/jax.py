"""How one rank trains with JAX: one compiled step, alone or with peers over gloo.

Ties together what others own: the model (`builders.jax`), its programs (`jax_programs`), the samples (`jax_input`), the
peers (`jax_group`) and the phases (`jax_phases`).
"""

import hashlib
import os

import jax

from paceline_worker import clock, protocol
from paceline_worker.builders.jax import named_tensors
from paceline_worker.frameworks import jax_phases
from paceline_worker.frameworks.jax_group import join
from paceline_worker.frameworks.jax_input import Resident
from paceline_worker.frameworks.jax_programs import CompilationCache, Programs, compiled, first_carry
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    training = Training(job)
    steps = Steps(jax_phases.PHASES)
    step, carry = jax_phases.stepper(training.source, training.program, training.carry, steps)
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
    take_steps(job, events, steps, step, training.group.synchronize)
    events.write(
        "facts",
        facts={
            "weights_sha256": weights_digest(carry()["parameters"], job.graph, training.layout),
            # Before further programs are compiled, which the run's own peak contains.
            "peak_rss_steps_bytes": protocol.peak_rss_bytes(),
        },
    )
    if job.knobs["derive_phases"]:
        derived = jax_phases.derive_phases(
            job, training.programs, training.program, carry(), training.source, training.group
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
        self.source = Resident(job, self.layout, self.group.batch)
        self.carry = first_carry(job, self.layout, self.group)
        self.programs = Programs(job, self.layout, self.group)
        self.program, self.compiling = compiled(self.programs.step(), self.carry, *self.source(0))
        self.compilation_cache = self.cache.state()

    def facts(self):
        """What is in force."""
        facts = {
            "threads": int(os.environ.get("NPROC") or len(os.sched_getaffinity(0))),
            "layout": self.layout if self.job.graph["input"]["kind"] == "image" else None,
            "precision": self.job.knobs["precision"],
            "compiled": True,
            "compilation_cache": self.compilation_cache,
            "wrapped": self.group.name,
            # The only phase that computes contains the wait for peers: a core that is idle then was not taken away.
            "waits": self.job.world_size > 1,
            "xla_flags": os.environ.get("XLA_FLAGS", ""),
            "xla_flops": _flops(self.program),
        }
        facts.update(self.compiling)
        return facts


def _flops(program):
    """What the compiler counts for one step; a loop's body once. None where it does not say."""
    try:
        return program.cost_analysis().get("flops")
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def weights_digest(parameters, graph, layout):
    """SHA-256 of the trainable tensors in the graph's order and layout: equal on all ranks of an exact strategy."""
    local = {name: array.addressable_data(0) for name, array in parameters.items()}
    digest = hashlib.sha256()
    for _, array in named_tensors(graph, local, layout):
        digest.update(array)
    return digest.hexdigest()
