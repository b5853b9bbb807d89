"""How one rank trains with MXNet: a hybridized Gluon block and a Trainer, on one device, several, or with peers.

Ties together what others own: the model (`builder`), the samples (`input`), who shares the gradients
(`group`) and the phases (`phases`).
"""

import hashlib
import os

import mxnet as mx

from paceline_worker import clock, evidence, protocol
from paceline_worker.frameworks.mxnet import phases as mxnet_phases
from paceline_worker.frameworks.mxnet.builder import build_objective, sgd_arguments
from paceline_worker.frameworks.mxnet.group import join
from paceline_worker.frameworks.mxnet.input import open_source
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    training = Training(job)
    steps = Steps(mxnet_phases.PHASES)
    shown = Shown(events, training) if job.evidence and training.group.averages else None
    step = mxnet_phases.stepper(training.source, training.step, steps, shown)
    events.write(
        "ready",
        framework_version=mx.__version__,
        parameters=training.num_parameters,
        setup_s=clock.wall() - clock.started,
        facts=training.facts(),
    )
    take_steps(job, events, steps, step, training.group.synchronize)
    events.write("facts", facts=training.late_facts())
    tensors = training.tensors
    if job.evidence:
        evidence.write(events, "weights", tensors.named(tensors.parameters))
        evidence.write(events, "statistics", tensors.named(tensors.statistics))
    elif job.knobs["derive_phases"]:
        batches = training.source(0)
        derived = mxnet_phases.derive_phases(job, training.step, batches, training.group, training.store_updates)
        events.write("facts", facts={"phases_derived": derived})
    # No one goes while a peer still needs it to take a step.
    training.group.synchronize()


class Training(object):
    """All that a rank holds: devices, input, model, optimizer, peers."""

    def __init__(self, job):
        self.job = job
        contexts = [mx.cpu(place) for place in range(job.devices)]
        # Every worker drops other units: MXNet adds a device's number to the seed.
        mx.random.seed(job.seed * job.workers + job.rank * job.devices)
        self.source = open_source(job, contexts)
        self.objective, self.tensors = build_objective(job.graph, job.weights, contexts, job.batch)
        static = job.knobs["static_alloc"]
        self.objective.hybridize(static_alloc=static, static_shape=static)
        self.group = join(job)
        parameters = list(self.tensors.parameters.values())
        self._trainer = self.group.trainer(
            parameters,
            self.group.optimizer(**sgd_arguments(job.graph)),
            kvstore=self.group.kvstore,
            update_on_kvstore=self.group.update_on_kvstore,
        )
        self.group.meet(self._trainer)
        self.step = mxnet_phases.Step(self.objective, self._trainer, self.group, job.batch * job.workers)

    @property
    def num_parameters(self):
        return sum(parameter.data().size for parameter in self.tensors.parameters.values())

    @property
    def store_updates(self):
        """Whether the key-value store applies the optimizer; decided by the Trainer in its first step."""
        return bool(self._trainer._update_on_kvstore)  # noqa: SLF001  there is no public door

    def facts(self):
        """What is in force."""
        job = self.job
        has = mx.runtime.Features()
        onednn = has.is_enabled("MKLDNN") and os.environ.get("MXNET_MKLDNN_ENABLED", "1") != "0"
        blas = next((title for name, title in BLAS.items() if has.is_enabled(name)), "other")
        return {
            "threads": int(os.environ["OMP_NUM_THREADS"]),
            "engine": os.environ.get("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice"),
            "layout": "nchw" if job.graph["input"]["kind"] == "image" else None,
            "blas": "onednn+" + blas if onednn else blas,
            "precision": "fp32",
            "compiled": "hybridized",
            "wrapped": self.group.name,
            # The only phase that computes contains the wait for peers: a core that is idle then was not taken away.
            "waits": job.workers > 1,
            "dropout": "MXNet's generator, seeded by worker" if job.drops_out else None,
            "framework_flops": None,
        }

    def late_facts(self):
        """What is known only after the steps."""
        facts = {
            "weights_sha256": weights_digest(self.tensors),
            "update_on_kvstore": self.store_updates,
            # Before phases are derived, which the run's own peak contains.
            "peak_rss_steps_bytes": protocol.peak_rss_bytes(),
        }
        if self.store_updates:
            facts["phases_mixed"] = {
                "phases": ["communication", "update"],
                "why": "the key-value store applies the optimizer",
            }
        facts.update(self.group.facts())
        return facts


BLAS = {"BLAS_MKL": "mkl", "BLAS_OPEN": "openblas", "BLAS_ATLAS": "atlas", "BLAS_APPLE": "accelerate"}
"""Feature of the build → what is linked."""


class Shown(object):
    """Writes the gradients of step 0 down, as the optimizer sees them: averaged over all workers.

    The same gradients as the Trainer is about to exchange, through the same kind of store: where the store applies the
    optimizer, what it averages never comes back.
    """

    def __init__(self, events, training):
        self._events = events
        self._training = training

    def __call__(self, number):
        if number:
            return
        training, parameters = self._training, self._training.tensors.parameters
        sums = training.group.exchanged([parameter.list_grad() for parameter in parameters.values()])
        samples = training.job.batch * training.job.workers
        pairs = ((name, total.asnumpy() / samples) for name, total in zip(parameters, sums))
        evidence.write(self._events, "gradients", pairs)


def weights_digest(tensors):
    """SHA-256 of the trainable tensors in the graph's order and layout: equal on all ranks of an exact strategy."""
    digest = hashlib.sha256()
    for _, array in tensors.named(tensors.parameters):
        digest.update(array)
    return digest.hexdigest()
