"""What every framework is judged against: the graph trained in float64 by one process, as plainly as can be.

It stands for any number of workers: a step takes the batch of each in turn, with the same weights, averages their
gradients and updates once. Then the same in float32, several times, each rounded in another way: how far these come
away from float64 is what rounding does to this workload; and the first gradient in formats of fewer bits (`coarse`).
Only fairness proofs run it, and its times mean nothing.
"""

import numpy as np
import torch

from paceline_worker import clock, evidence
from paceline_worker.batches import batch_indices
from paceline_worker.frameworks.reference import coarse
from paceline_worker.frameworks.samples import Samples
from paceline_worker.frameworks.torch.builder import build_model, build_objective, build_optimizer, named_tensors
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps

PHASES = ("data", "step")
ROUNDINGS = 8
"""Float32 trainings. What is allowed follows from the largest of their errors; of one or two it would be luck."""
SPACING = 2.0**-23
"""Of float32 numbers, relative."""


def train(job, events):
    """Take all steps; say the loss of each worker, the gradient of step 0 and the last weights. Then the roundings."""
    torch.set_num_threads(job.threads)
    torch.backends.mkldnn.enabled = False
    samples = Samples(job.input["index"])
    exact = InTurn(job, samples, build_model(job.graph, job.weights).double())
    steps = Steps(PHASES)

    def step(number):
        batches = exact.batches(number)
        steps.lap()
        exact.backward(batches)
        if number == 0:
            evidence.write(events, "gradients", exact.gradients())
        exact.optimizer.step()
        steps.lap()
        steps.end(exact.loss())

    events.write(
        "ready",
        framework_version=torch.__version__,
        parameters=sum(p.numel() for p in exact.net.parameters() if p.requires_grad),
        setup_s=clock.wall() - clock.started,
        facts={
            "threads": torch.get_num_threads(),
            "layout": "nchw" if samples.kind == "image" else None,
            "blas": "mkl",
            "compiled": False,
            "precision": "fp64",
            "wrapped": "none",
            "dropout": None,
            "framework_flops": None,
        },
    )
    take_steps(job, events, steps, step, lambda: None)
    evidence.write(events, "weights", exact.weights())
    evidence.write(events, "statistics", exact.statistics())
    events.write("facts", facts={"losses": exact.losses, "coarse_gradients": coarse_gradients(job, samples)})
    for number in range(ROUNDINGS):
        events.write("rounding", number=number, **rounding(job, samples, number))


def coarse_gradients(job, samples):
    """Format → the evidence of the gradient of step 0 when every layer rounds to it."""
    shown = {}
    for name, kept in coarse.FORMATS.items():
        trained = InTurn(job, samples, coarse.rounded(build_model(job.graph, job.weights).double(), kept))
        trained.backward(trained.batches(0))
        shown[name] = evidence.described(trained.gradients())
    return shown


def rounding(job, samples, number):
    """What a float32 training shows, as the reference shows it.

    The kernels change with the number, and so do the last digits of the initial weights, but for the first: a kernel
    that sums in another order rounds in another way, and so does one that is given neighbouring numbers.
    """
    torch.backends.mkldnn.enabled = number % 2 == 0
    net = build_model(job.graph, job.weights)
    if number:
        nudge(net, number)
    if samples.kind == "image" and number % 4 < 2:
        net = net.to(memory_format=torch.channels_last)
    rounded = InTurn(job, samples, net)
    shown = {}
    for step in range(job.warmup_steps + job.steps):
        rounded.backward(rounded.batches(step))
        if step == 0:
            shown["gradients"] = evidence.described(rounded.gradients())
        rounded.optimizer.step()
    shown["weights"] = evidence.described(rounded.weights())
    shown["statistics"] = evidence.described(rounded.statistics())
    return dict(shown, losses=rounded.losses)


def nudge(net, seed):
    """Move every trainable number up or down by about the distance to the next one."""
    signs = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in net.parameters():
            up_or_down = torch.randint(0, 2, tensor.shape, generator=signs, dtype=torch.float64) * 2 - 1
            tensor.copy_(tensor.double() * (1 + SPACING * up_or_down))


class InTurn(object):
    """One model that is trained on the batches of all workers, one after the other."""

    def __init__(self, job, samples, net):
        self.net = net
        self.optimizer = build_optimizer(job.graph, net)
        self.losses = [[] for _ in range(job.workers)]
        """Of each worker at each step."""
        self._job = job
        self._samples = samples
        self._objective = build_objective(job.graph)
        self._dtype = next(net.parameters()).dtype

    def batches(self, step):
        workers = len(self.losses)
        return [batch(self._samples, step, worker, workers, self._job.batch, self._dtype) for worker in range(workers)]

    def backward(self, batches):
        """The mean of all workers' gradients."""
        self.optimizer.zero_grad()
        for losses, (inputs, targets) in zip(self.losses, batches):
            loss = self._objective(self.net(inputs), targets)
            # Gradients add up over backward passes: those of equal parts of each loss, to their mean.
            (loss / len(self.losses)).backward()
            losses.append(loss.item())

    def loss(self):
        """The mean over workers at the last step."""
        return sum(losses[-1] for losses in self.losses) / len(self.losses)

    def gradients(self):
        return self._trainable(lambda tensor: tensor.grad)

    def weights(self):
        return self._trainable(lambda tensor: tensor)

    def statistics(self):
        """Of batch norm; of several workers the one model here has seen every batch, and these are those of none."""
        if len(self.losses) > 1:
            return
        for name, tensor in named_tensors(self.net, self._job.graph):
            if not tensor.requires_grad:
                yield name, tensor.numpy()

    def _trainable(self, of):
        for name, tensor in named_tensors(self.net, self._job.graph):
            if tensor.requires_grad:
                yield name, of(tensor).detach().numpy()


def batch(samples, step, worker, workers, size, dtype):
    """The inputs and targets of one worker, straight from the file."""
    places = batch_indices(step, worker, workers, size, samples.count)
    stored, targets = np.asarray(samples.inputs)[places], np.asarray(samples.targets)[places]
    rule = samples.normalisation
    inputs = torch.from_numpy(stored.astype(np.int64))
    if rule is not None:
        inputs = (inputs.to(dtype) - rule["subtract"]) / rule["divide"]
    return inputs, torch.from_numpy(targets.astype(np.int64))
