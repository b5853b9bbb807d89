"""What a PyTorch rank shows in a fairness proof: the tensors it trains, and the FLOPs that PyTorch counts."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from paceline_worker import evidence
from paceline_worker.frameworks.torch.builder import build_model, build_objective


def show_first_gradients(events, way):
    """Write the gradients of the first step when the optimizer is about to see them."""

    def show():
        evidence.write(events, "gradients", way.trainable(lambda parameter: parameter.grad))

    way.before_first_update(show)


def show_result(events, way):
    """Write what the steps have made of the weights and of this rank's statistics."""
    evidence.write(events, "weights", way.trainable())
    evidence.write(events, "statistics", way.statistics())


def counted_flops(job):
    """What PyTorch counts for the forward and backward pass of one worker's batch, on a model of its own.

    It counts products of matrices and convolutions; of attention on a CPU only the projections, of an LSTM whatever
    its kernel does not hide.
    """
    given = job.graph["input"]
    shape = [job.batch] + given["shape"]
    inputs = torch.zeros(shape, dtype=torch.long if given["kind"] == "tokens" else torch.float32)
    targets = torch.zeros(shape if given["target"] == "next-token" else shape[:1], dtype=torch.long)
    model, objective = build_model(job.graph, job.weights), build_objective(job.graph)
    with FlopCounterMode(display=False) as counter:
        objective(model(inputs), targets).backward()
    return counter.get_total_flops()
