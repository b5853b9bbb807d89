"""One PyTorch rank by itself: the model, its optimizer, its step. The other ways to share the work build upon it."""

import contextlib

import torch

from paceline_worker import clock
from paceline_worker.batches import micro_batches
from paceline_worker.frameworks.torch import phases as torch_phases
from paceline_worker.frameworks.torch.builder import (
    build_model,
    build_objective,
    build_optimizer,
    module_name,
    named_tensors,
)
from paceline_worker.frameworks.torch.input import own_batch


class Alone(object):
    """What a rank trains and how. Attributes of the class say what a way of sharing does otherwise."""

    wrapped = "none"
    """The fact of that name: what carries the exchange."""
    phases = torch_phases.PHASES
    """Phases of its step; without "communication" where an exchange has no boundary that a timer could see."""
    begins_with_last_gradient = True
    """Whether exposed communication is what follows the last gradient of the backward pass."""
    communication_in = ()
    """In which other phases it communicates."""
    communication_why = None
    """What it does there, in words."""
    channels_last_filters = True
    """Whether filters keep the layout of the images; off where an exchange lays out parameters anew."""
    loss_over = "worker"
    """Whose samples the reported loss is the mean of: this worker's, or all of the step's ("global")."""
    seeded_by = "rank"
    """Whose random numbers dropout draws: each rank's own, or those of all ranks together ("job")."""

    def __init__(self, job, device, memory_format):
        self.job = job
        self.device = device
        self.graph = self.of_graph()
        """What this rank has of the graph."""
        self.net = self.build(memory_format if self.channels_last_filters else torch.contiguous_format)
        self.layers = None
        if job.layers:
            names = [layer["name"] for layer in self.graph["layers"] if layer["kind"] != "input"]
            self.layers = torch_phases.LayerTimes({name: getattr(self.net, module_name(name)) for name in names})
        self.gradients = None
        if self.begins_with_last_gradient:
            # Before any wrapper, whose hooks then come after this one.
            self.gradients = torch_phases.LastGradient(
                self.net.named_parameters(), clock.wall if device.type == "cpu" else torch_phases.cuda_stamp
            )
        self.model = self.net
        """What is called: the net, or its wrapper."""
        self.optimizer = None
        self.share()

    @staticmethod
    def part(job):
        """Which samples of each step this rank reads; None: none."""
        return own_batch(job)

    def of_graph(self):
        """What this rank has of the graph: all of it."""
        return self.job.graph

    def build(self, memory_format):
        """The net of what this rank has of the graph."""
        part = self.graph is not self.job.graph
        return build_model(self.graph, self.job.weights, part).to(self.device, memory_format=memory_format)

    def share(self):
        """Make the model that is called, and the optimizer."""
        self.optimizer = build_optimizer(self.graph, self.net)

    def holding(self, last):  # noqa: ARG002  for those who have something to hold back
        """Around a micro-batch: whether it is the last one, after which gradients are exchanged."""
        return contextlib.nullcontext()

    def forward(self):
        """The function (inputs, targets) → loss."""
        model = self.model
        if self.job.knobs["compile"]:
            # Around DDP, as its documentation says, so that the compiler cuts the backward pass at the buckets.
            model = torch.compile(model)
        objective = build_objective(self.job.graph)
        if self.job.knobs["precision"] == "bf16":
            device = self.device.type

            def in_bf16(inputs, targets):
                with torch.autocast(device, dtype=torch.bfloat16):
                    return objective(model(inputs), targets)

            return in_bf16
        return lambda inputs, targets: objective(model(inputs), targets)

    def stepper(self, batch, steps):
        """The function that takes one step."""
        if self.micro_batches > 1:
            return torch_phases.accumulating_step(
                batch, self.forward(), self.optimizer, steps, self.gradients, self.micro_batches, self.holding
            )
        make = torch_phases.cpu_step if self.device.type == "cpu" else torch_phases.cuda_step
        return make(batch, self.forward(), self.optimizer, steps, self.gradients, self.layers)

    @property
    def micro_batches(self):
        """Into how many its batch is cut."""
        return micro_batches(self.job.batch, self.job.knobs["accumulate"])

    def before_first_update(self, act):
        """Call `act` once, when the gradients of the first step are what the optimizer is about to see."""

        def once(*_arguments):
            handle.remove()
            act()

        handle = self.optimizer.register_step_pre_hook(once)

    def parameters(self):
        """Number of trainable parameters of the whole model."""
        return sum(p.numel() for p in self.net.parameters() if p.requires_grad)

    def trainable(self, of=lambda parameter: parameter):
        """Pairs ("layer.tensor", whole array) of what this rank holds, or of what `of` makes of each parameter.

        All ranks must ask alike: tensors that are dealt out are gathered.
        """
        for name, tensor in named_tensors(self.net, self.graph):
            if tensor.requires_grad:
                yield name, array(of(tensor))

    def statistics(self):
        """Pairs of this rank's batch-norm statistics."""
        kept = dict(self.graph, layers=[layer for layer in self.graph["layers"] if layer["buffers"]])
        for name, tensor in named_tensors(self.net, kept):
            if not tensor.requires_grad:
                yield name, array(tensor)

    def facts(self):
        """What is in force, beyond what every rank says."""
        return {}

    def late_facts(self):
        """What is known only after the steps."""
        return {} if self.gradients is None else {"last_gradient": self.gradients.name}


def array(tensor):
    """A tensor as NumPy sees it, in the graph's layout; one that is dealt out over ranks is gathered."""
    tensor = tensor.detach()
    if hasattr(tensor, "full_tensor"):
        tensor = tensor.full_tensor()
    return tensor.cpu().contiguous().numpy()
