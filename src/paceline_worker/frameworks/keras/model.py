"""What a rank of Keras trains, on whatever backend: model, objective, optimizer; and what it says of itself.

Each backend's module takes steps in that backend's own way with what is made here.
"""

import hashlib
import math

import keras

from paceline_worker import evidence
from paceline_worker.frameworks.keras.builder import build_model, build_objective, build_optimizer, named_tensors

POLICIES = {"fp32": "float32", "bf16": "mixed_bfloat16"}
BATCH_NORM = "keras.layers.BatchNormalization: running variance is the biased one"


class Trained(object):
    """Model, objective, optimizer and decay of a job."""

    def __init__(self, job, seed):
        """Args: seed: of dropout; the initial weights come from the file."""
        self.job = job
        keras.utils.set_random_seed(seed)
        keras.config.set_dtype_policy(POLICIES[job.knobs["precision"]])
        self.layout = "nhwc" if job.knobs.get("channels_last", True) else "nchw"
        self.model = build_model(job.graph, job.weights, self.layout)
        self.variables = self.model.trainable_variables
        self.objective = build_objective(job.graph)
        self.optimizer, self.decay = build_optimizer(job.graph)
        self.optimizer.build(self.variables)

    @property
    def parameters(self):
        return sum(math.prod(variable.shape) for variable in self.variables)

    def facts(self, compiled, wrapped, blas, dropout):
        """The facts that every backend gives. Args: dropout: whose random numbers a graph with dropout draws."""
        graph = self.job.graph
        facts = {
            "layout": self.layout if graph["input"]["kind"] == "image" else None,
            "precision": self.job.knobs["precision"],
            "compiled": compiled,
            "wrapped": wrapped,
            "blas": blas,
            "dropout": dropout if self.job.drops_out else None,
        }
        if any(layer["kind"] == "batch_norm" for layer in graph["layers"]):
            facts["batch_norm"] = BATCH_NORM
        return facts

    def digest(self, value=keras.ops.convert_to_numpy):
        """SHA-256 of the trainable tensors in the graph's order and layout: equal on all ranks of an exact strategy."""
        digest = hashlib.sha256()
        for _, array in named_tensors(self.model, self.job.graph, value, trainable=True):
            digest.update(array)
        return digest.hexdigest()

    def show_gradients(self, events, gradients):
        """Write the evidence of step 0. Args: gradients: NumPy arrays in the order of `variables`."""
        of = {id(variable): gradient for variable, gradient in zip(self.variables, gradients)}
        pairs = named_tensors(self.model, self.job.graph, lambda variable: of[id(variable)], trainable=True)
        evidence.write(events, "gradients", pairs)

    def show_end(self, events, value=keras.ops.convert_to_numpy):
        """Write the evidence of the last step."""
        for what, trainable in (("weights", True), ("statistics", False)):
            evidence.write(events, what, named_tensors(self.model, self.job.graph, value, trainable))
