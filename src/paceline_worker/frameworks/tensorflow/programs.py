"""The programs of a TensorFlow rank: the whole training step, and the parts of it that are timed apart.

What a step changes are variables: parameters, velocities and statistics of batch norms. Name scopes say to which phase
an operator belongs; `profile` reads them back.
"""

import tensorflow as tf

from paceline_worker import clock
from paceline_worker.frameworks.tensorflow.builder import build_objective, build_update
from paceline_worker.graph.stored import load_tensors

FORWARD, BACKWARD, EXCHANGE, UPDATE = "forward", "backward", "exchange", "update"
"""Name scopes."""


class Programs(object):
    """Variables, and programs of (inputs, targets) on them."""

    def __init__(self, job, group):
        parameters, statistics = load_tensors(job.graph, job.weights)
        self.group = group
        self.parameters = {name: group.variable(array) for name, array in parameters.items()}
        self.statistics = {name: group.variable(array, trainable=False) for name, array in statistics.items()}
        self._velocities = [group.variable(array * 0, trainable=False) for array in parameters.values()]
        self._objective = build_objective(job.graph, job.knobs["precision"], job.knobs["unroll"])
        self._update = build_update(job.graph)
        self._eager = job.knobs["eager"]
        self._jit = job.knobs["jit_compile"]
        # XLA on a CPU has no collectives: with peers, what lies before and after the exchange is compiled.
        self._jit_whole = self._jit and group.name == "none"
        if self._jit and not self._jit_whole:
            self._gradients = tf.function(self._gradients, autograph=False, jit_compile=True)
            self._apply = tf.function(self._apply, autograph=False, jit_compile=True)

    def forward(self):
        """→ loss."""

        def program(inputs, targets):
            return self._forward(inputs, targets)[0]

        return self._program(program)

    def gradients(self, exchange=False):
        """→ (loss, gradients): each worker's own, or averaged; nothing is changed."""

        def program(inputs, targets):
            loss, _, gradients = self._gradients(inputs, targets)
            return loss, self._exchanged(gradients) if exchange else gradients

        return self._program(program)

    def step(self, exchange=True):
        """→ loss: all of it, or without averaging over the workers."""

        def program(inputs, targets):
            loss, kept, gradients = self._gradients(inputs, targets)
            if exchange:
                gradients = self._exchanged(gradients)
            self._apply(kept, gradients)
            return loss

        return self._program(program)

    def _program(self, program):
        def on_all(inputs, targets):
            return self.group.run(program, inputs, targets)

        return on_all if self._eager else tf.function(on_all, autograph=False, jit_compile=self._jit_whole or None)

    def _forward(self, inputs, targets):
        with tf.name_scope(FORWARD):
            return self._objective(self.parameters, self.statistics, inputs, targets)

    def _gradients(self, inputs, targets):
        with tf.GradientTape() as tape:
            loss, kept = self._forward(inputs, targets)
        with tf.name_scope(BACKWARD):
            gradients = tape.gradient(loss, list(self.parameters.values()))
            # An embedding's comes as rows; the graph wants every row exchanged.
            return loss, kept, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def _exchanged(self, gradients):
        with tf.name_scope(EXCHANGE):
            return self.group.average(gradients)

    def _apply(self, kept, gradients):
        with tf.name_scope(FORWARD):
            for name, value in kept.items():
                self.statistics[name].assign(value)
        with tf.name_scope(UPDATE):
            for variable, velocity, gradient in zip(self.parameters.values(), self._velocities, gradients):
                self._update(variable, velocity, gradient)


def traced(program, *arguments):
    """(what to call, {"compile_s"}): a function ready for these arguments; eager ones are as they are."""
    if not hasattr(program, "get_concrete_function"):
        return program, {}
    begun = clock.wall()
    concrete = program.get_concrete_function(*arguments)
    return concrete, {"compile_s": clock.wall() - begun}
