"""What every framework is judged against: the graph trained in float64 by one process, as plainly as can be.

It stands for any number of workers: a step takes the batch of each in turn, with the same weights, averages their
gradients and updates once. Only fairness proofs run it, and its times mean nothing.
"""

import numpy as np
import torch

from paceline_worker import clock, evidence
from paceline_worker.batches import batch_indices
from paceline_worker.builders.torch import build_model, build_objective, build_optimizer, named_tensors
from paceline_worker.frameworks.samples import Samples
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps

PHASES = ("data", "step")


def train(job, events):
    """Take all steps; say the loss of each worker, the gradient of step 0 and the last weights."""
    torch.set_num_threads(job.threads)
    torch.backends.mkldnn.enabled = False
    workers = job.workers
    samples = Samples(job.input["index"])
    net = build_model(job.graph, job.weights).double()
    objective = build_objective(job.graph)
    optimizer = build_optimizer(job.graph, net)
    steps = Steps(PHASES)
    losses_of = [[] for _ in range(workers)]

    def step(number):
        batches = [batch(samples, number, worker, workers, job.batch) for worker in range(workers)]
        steps.lap()
        optimizer.zero_grad()
        for losses, (inputs, targets) in zip(losses_of, batches):
            loss = objective(net(inputs), targets)
            # Gradients add up over backward passes: those of equal parts of each loss, to their mean.
            (loss / workers).backward()
            losses.append(loss.item())
        if number == 0:
            evidence.write(events, "gradients", trainable(net, job.graph, lambda tensor: tensor.grad))
        optimizer.step()
        steps.lap()
        steps.end(sum(losses[-1] for losses in losses_of) / workers)

    events.write(
        "ready",
        framework_version=torch.__version__,
        parameters=sum(p.numel() for p in net.parameters() if p.requires_grad),
        setup_s=clock.wall() - clock.started,
        facts={
            "threads": torch.get_num_threads(), "layout": "nchw" if samples.kind == "image" else None, "blas": "mkl",
            "compiled": False, "precision": "fp64", "wrapped": "none", "dropout": None, "framework_flops": None,
        },
    )  # fmt: skip
    take_steps(job, events, steps, step, lambda: None)
    evidence.write(events, "weights", trainable(net, job.graph, lambda tensor: tensor))
    if workers == 1:
        # Of several workers the one model here has seen every batch: the statistics of none of them.
        evidence.write(events, "statistics", statistics(net, job.graph))
    events.write("facts", facts={"losses": losses_of})


def batch(samples, step, worker, workers, size):
    """The inputs and targets of one worker, straight from the file to float64."""
    places = batch_indices(step, worker, workers, size, samples.count)
    stored, targets = np.asarray(samples.inputs)[places], np.asarray(samples.targets)[places]
    rule = samples.normalisation
    inputs = stored.astype(np.int64 if rule is None else np.float64)
    if rule is not None:
        inputs = (inputs - rule["subtract"]) / rule["divide"]
    return torch.from_numpy(inputs), torch.from_numpy(targets.astype(np.int64))


def trainable(net, graph, of):
    for name, tensor in named_tensors(net, graph):
        if tensor.requires_grad:
            yield name, of(tensor).detach().numpy()


def statistics(net, graph):
    for name, tensor in named_tensors(net, graph):
        if not tensor.requires_grad:
            yield name, tensor.numpy()
