"""How one rank trains with Keras on TensorFlow: one `tf.function` a step, alone or in a `tf.distribute` strategy.

This is the loop of Keras's guide "Writing a training loop from scratch in TensorFlow". In a strategy Keras divides each
worker's loss by the number of workers, and its optimizer sums the gradients before it applies them. Peers, samples and
phases are those of the TensorFlow adapter.
"""

import keras
import tensorflow as tf

from paceline_worker import clock, protocol
from paceline_worker.frameworks.differences import derive, rounds_of
from paceline_worker.frameworks.keras.model import Trained
from paceline_worker.frameworks.tensorflow import phases as tensorflow_phases
from paceline_worker.frameworks.tensorflow.group import join
from paceline_worker.frameworks.tensorflow.input import open_source
from paceline_worker.frameworks.tensorflow.profile import phases_by_operators
from paceline_worker.frameworks.tensorflow.programs import BACKWARD, FORWARD, UPDATE, traced
from paceline_worker.frameworks.tensorflow.training import configure, flops_of
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    configure(job)
    group = join(job)
    source = open_source(job, group.batch)
    with group.scope():
        # Every rank drops other units.
        trained = Trained(job, job.seed * job.world_size + job.rank)
    programs = Programs(trained, group)

    def value(variable):
        return group.local(variable.value)[0].numpy()

    if job.evidence:
        held = trained.model.get_weights()
        gradients = programs.gradients(exchange=True)(*source(0))
        # Batch norms have seen a batch that is still to come.
        trained.model.set_weights(held)
        trained.show_gradients(events, [group.local(gradient)[0].numpy() for gradient in gradients])
    program, tracing = traced(programs.step(), *source(0))
    steps = Steps(tensorflow_phases.PHASES)
    step = tensorflow_phases.stepper(source, program, group.local, steps)
    events.write(
        "ready",
        framework_version=keras.__version__,
        parameters=trained.parameters,
        setup_s=clock.wall() - clock.started,
        facts=facts(trained, group, program, tracing),
    )
    take_steps(job, events, steps, step, group.synchronize)
    group.synchronize()
    learnt = {"weights_sha256": trained.digest(value), "peak_rss_steps_bytes": protocol.peak_rss_bytes()}
    events.write("facts", facts=learnt)
    if job.evidence:
        trained.show_end(events, value)
    elif job.knobs["derive_phases"]:
        derived = derive_phases(job, programs, program, source(0), group)
        events.write("facts", facts={"phases_derived": derived})
    group.leave()


class Programs(object):
    """Programs of (inputs, targets) on the model's variables."""

    def __init__(self, trained, group):
        self._trained = trained
        self._group = group
        self._workers = trained.job.workers
        self._jit = trained.job.knobs["jit_compile"]

    def forward(self):
        """→ loss."""
        return self._program(self._forward)

    def gradients(self, exchange=False):
        """→ gradients: each worker's own, or averaged."""

        def program(inputs, targets):
            _, gradients = self._backward(inputs, targets)
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
            if exchange and self._workers > 1:
                gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
            return gradients

        return self._program(program)

    def step(self):
        """→ loss."""
        trained = self._trained

        def program(inputs, targets):
            loss, gradients = self._backward(inputs, targets)
            with tf.name_scope(UPDATE):
                if self._workers > 1:
                    # An embedding's comes as rows; the graph wants every row exchanged.
                    gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
                if trained.decay:
                    # Each worker's part of it: the optimizer sums what the workers give.
                    decay = trained.decay / self._workers
                    gradients = [gradient + decay * v.value for gradient, v in zip(gradients, trained.variables)]
                trained.optimizer.apply(gradients, trained.variables)
            return loss * self._workers

        return self._program(program)

    def _program(self, program):
        def on_all(inputs, targets):
            return self._group.run(program, inputs, targets)

        return tf.function(on_all, autograph=False, jit_compile=self._jit or None)

    def _forward(self, inputs, targets):
        with tf.name_scope(FORWARD):
            return self._trained.objective(targets, self._trained.model(inputs, training=True))

    def _backward(self, inputs, targets):
        with tf.GradientTape() as tape:
            loss = self._forward(inputs, targets)
        with tf.name_scope(BACKWARD):
            return loss, tape.gradient(loss, [variable.value for variable in self._trained.variables])


def facts(trained, group, program, tracing):
    """What is in force."""
    job = trained.job
    compiled = "tf.function with XLA" if job.knobs["jit_compile"] else "tf.function"
    blas = "eigen+onednn" if job.knobs["onednn"] else "eigen"
    told = trained.facts(compiled, group.name, blas, "Keras's seed generator, seeded by rank")
    told.update(
        threads=tf.config.threading.get_intra_op_parallelism_threads(),
        interop_threads=tf.config.threading.get_inter_op_parallelism_threads(),
        backend_version="tensorflow {}".format(tf.__version__),
        # The only phase that computes contains the wait for peers: a core that is idle then was not taken away.
        waits=job.world_size > 1,
        framework_flops=flops_of(program, job),
    )
    told.update(tracing)
    return told


def derive_phases(job, programs, whole, given, group):
    """The fact `phases_derived`. Trains on, and what it trains is of no use afterwards."""
    if not job.knobs["jit_compile"] and job.world_size == 1:
        return phases_by_operators(job, lambda: whole(*given), rounds_of(job.steps))
    # XLA has no names to go by, and where peers talk over gRPC the profiler now and then ends the process.
    begun = clock.wall()
    made = [("forward", programs.forward()), ("backward", programs.gradients())]
    if job.world_size > 1:
        made.append(("communication", programs.gradients(exchange=True)))
    made.append(("update", whole))
    for _, program in made:
        program(*given)
    spent = clock.wall() - begun
    parts = [(phase, lambda program=program: program(*given)) for phase, program in made]
    return derive(parts, rounds_of(job.steps), group.synchronize, spent)
