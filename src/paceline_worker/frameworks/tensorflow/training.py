"""How one rank trains with TensorFlow: one `tf.function` a step, alone or in a `tf.distribute` strategy.

Ties together what others own: the model (`builder`), its programs (`programs`), the samples
(`input`), the peers (`group`) and the phases (`phases`).
"""

import hashlib
import os

import tensorflow as tf

from paceline_worker import clock, evidence, protocol
from paceline_worker.frameworks.differences import rounds_of
from paceline_worker.frameworks.tensorflow import phases as tensorflow_phases
from paceline_worker.frameworks.tensorflow.group import join
from paceline_worker.frameworks.tensorflow.input import open_source
from paceline_worker.frameworks.tensorflow.parameter_server import Worker
from paceline_worker.frameworks.tensorflow.programs import Programs, traced
from paceline_worker.graph.stored import named_tensors
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    configure(job)
    training = (Serving if job.strategy == "parameter_server" else Training)(job)
    steps = Steps(tensorflow_phases.PHASES)
    step = tensorflow_phases.stepper(training.source, training.program, training.losses, steps)
    events.write(
        "ready",
        framework_version=tf.__version__,
        parameters=training.num_parameters,
        setup_s=clock.wall() - clock.started,
        facts=dict(common_facts(job), **training.facts()),
    )
    first = training.first_gradients() if job.evidence else None
    if first is not None:
        evidence.write(events, "gradients", first)
    take_steps(job, events, steps, step, training.synchronize)
    training.synchronize()
    facts = {"weights_sha256": weights_digest(training.weights()), "peak_rss_steps_bytes": protocol.peak_rss_bytes()}
    events.write("facts", facts=dict(facts, **training.late_facts()))
    if job.evidence:
        evidence.write(events, "weights", training.weights())
        evidence.write(events, "statistics", training.statistics())
    if job.knobs["derive_phases"] and not job.evidence:
        # Nobody trains on before all have read their weights.
        training.synchronize()
        events.write("facts", facts={"phases_derived": training.derive_phases()})
    training.leave()


class Training(object):
    """All that a rank holds: peers, input, what it trains, and the traced step."""

    def __init__(self, job):
        self.job = job
        self.group = join(job)
        self.synchronize = self.group.synchronize
        self.leave = self.group.leave
        self.losses = self.group.local
        self.source = open_source(job, self.group.batch)
        self.programs = Programs(job, self.group)
        self.program, self._tracing = traced(self.programs.step(), *self.source(0))
        self.num_parameters = sum(variable.shape.num_elements() for variable in self.programs.parameters.values())

    def facts(self):
        """What is in force."""
        return dict(
            self._tracing,
            wrapped=self.group.name,
            # The only phase that computes contains the wait for peers: a core that is idle then was not taken away.
            waits=self.job.world_size > 1,
            framework_flops=flops_of(self.program, self.job),
        )

    def late_facts(self):
        return {}

    def derive_phases(self):
        return tensorflow_phases.derive_phases(self.job, self)

    def first_gradients(self):
        """Pairs ("layer.tensor", array): the gradients of step 0 after the exchange, before anything is changed."""
        program, _ = traced(self.programs.gradients(exchange=True), *self.source(0))
        _, gradients = program(*self.source(0))
        first = [self.losses(gradient)[0] for gradient in gradients]
        return named_tensors(self.job.graph, dict(zip(self.programs.parameters, first)))

    def weights(self):
        return self._named(self.programs.parameters)

    def statistics(self):
        """Of the first worker of this process."""
        return self._named(self.programs.statistics)

    def _named(self, variables):
        local = {name: self.group.local(variable)[0].read_value() for name, variable in variables.items()}
        return named_tensors(self.job.graph, local)


class Serving(object):
    """As `Training`, with parameter servers."""

    def __init__(self, job):
        self.job = job
        self._worker = Worker(job)
        self.synchronize = self.leave = self._worker.synchronize
        self.weights, self.statistics = self._worker.weights, self._worker.statistics
        self.source = lambda step: (self._worker.batch(step),)
        self.program = self._worker.step
        self.losses = lambda loss: (loss,)
        self.num_parameters = self._worker.num_parameters

    def facts(self):
        return {
            "compiled": "graph of a session",
            "wrapped": "parameter servers",
            "waits": True,
            "framework_flops": None,
            "phases_mixed": {"phases": ["communication", "update"], "why": "the servers apply the optimizer"},
        }

    def late_facts(self):
        seen = self._worker.staleness[self.job.warmup_steps :]
        return {"staleness": {"mean": sum(seen) / len(seen), "max": max(seen)}}

    def derive_phases(self):
        return self._worker.derive_phases(rounds_of(self.job.steps))

    def first_gradients(self):
        """None: of an asynchronous strategy there is no gradient that all workers share."""


def configure(job):
    """Threads, devices and the seed: before TensorFlow makes its first tensor."""
    # Operators of several devices share the threads inside operators; a lone thread is the caller's own.
    tf.config.threading.set_intra_op_parallelism_threads(1 if job.threads == 1 else job.threads * job.devices)
    tf.config.threading.set_inter_op_parallelism_threads(max(job.knobs["interop_threads"], job.devices))
    if job.devices > 1:
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * job.devices)
    # Of deprecations inside TensorFlow itself.
    tf.get_logger().setLevel("ERROR")
    # Every rank drops other units; the initial weights come from the file.
    tf.random.set_seed(job.seed * job.world_size + job.rank)


def common_facts(job):
    """What is in force whatever the strategy."""
    onednn = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1") != "0"
    return {
        "threads": tf.config.threading.get_intra_op_parallelism_threads(),
        "interop_threads": tf.config.threading.get_inter_op_parallelism_threads(),
        "layout": "nhwc" if job.graph["input"]["kind"] == "image" else None,
        "blas": "eigen+onednn" if onednn else "eigen",
        "onednn": onednn,
        "precision": job.knobs["precision"],
        "compiled": "no (eager)" if job.knobs["eager"] else "tf.function" + " with XLA" * job.knobs["jit_compile"],
        "dropout": "TensorFlow's stateful generator, seeded by rank" if job.drops_out else None,
    }


def weights_digest(named):
    """SHA-256 of the trainable tensors in the graph's order and layout: equal on all ranks of an exact strategy."""
    digest = hashlib.sha256()
    for _, array in named:
        digest.update(array)
    return digest.hexdigest()


def flops_of(program, job):
    """What TensorFlow's profiler counts for one worker's step as traced; None where there is no graph to count."""
    graph = getattr(program, "graph", None)
    if graph is None:
        return None
    options = tf.compat.v1.profiler.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    with graph.as_default():
        counted = tf.compat.v1.profiler.profile(graph, options=options).total_float_ops
    # The graph has all workers of this process.
    return counted / job.devices or None
