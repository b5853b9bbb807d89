"""How one rank trains with Keras on PyTorch: the loop of Keras's guide, alone or in DistributedDataParallel.

Keras's layers, loss and optimizer run eagerly; autograd and the exchange are PyTorch's own, so peers, samples and
phases are those of the PyTorch adapter.
"""

import os

import keras
import torch

from paceline_worker import clock
from paceline_worker.frameworks.keras.model import Trained
from paceline_worker.frameworks.torch import ddp as torch_ddp
from paceline_worker.frameworks.torch import ddp_log
from paceline_worker.frameworks.torch import group as torch_group
from paceline_worker.frameworks.torch import phases as torch_phases
from paceline_worker.frameworks.torch.compile import CompileTime
from paceline_worker.frameworks.torch.input import open_source, own_batch
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    training = Training(job)
    steps = Steps(torch_phases.PHASES)
    source, update = training.source, training.update
    if job.evidence:
        update = ShowFirst(update, events)
    step = torch_phases.cpu_step(source, training.forward, update, steps, training.gradients)
    events.write(
        "ready",
        framework_version=keras.__version__,
        parameters=training.trained.parameters,
        setup_s=clock.wall() - clock.started,
        facts=training.facts(),
    )
    compiling = CompileTime(job, steps)
    take_steps(job, events, steps, step, training.synchronize, compiling.begin_block)
    events.write("facts", facts=dict(training.late_facts(), **compiling.facts()))
    if job.evidence:
        training.trained.show_end(events)
    training.close()


class Training(object):
    """All that a rank holds: input, model, optimizer, peers."""

    def __init__(self, job):
        self.job = job
        # Of this run alone: by default compiled graphs of earlier runs, and of other programs, would be found again.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(job.folder, "inductor.{}".format(job.rank))
        torch.set_num_threads(job.threads)
        torch.set_num_interop_threads(1)
        device = torch.device("cpu")
        # First of all that is large or has threads: loader workers are forked here.
        self.source = Source(job, device)
        # Every rank drops other units.
        self.trained = Trained(job, job.seed * job.world_size + job.rank)
        model = self.trained.model
        self.update = Update(self.trained)
        self.gradients = torch_phases.LastGradient(model.named_parameters(), clock.wall)
        self.wrapped = None
        """The model in DDP; None for one rank, which nobody wraps."""
        if job.world_size > 1:
            torch_group.join(job)
            self.wrapped = torch_ddp.wrap(job, model, device)
        self.synchronize = torch_group.synchronizer(job, device)
        self._call = model if self.wrapped is None else self.wrapped
        if job.knobs["jit_compile"]:
            self._call = torch.compile(self._call)

    def forward(self, inputs, targets):
        return self.trained.objective(targets, self._call(inputs, training=True))

    def facts(self):
        """What is in force."""
        wrapped = "none" if self.wrapped is None else type(self.wrapped).__name__
        blas = "onednn+mkl" if torch.backends.mkl.is_available() else "onednn"
        compiled = "torch.compile" if self.job.knobs["jit_compile"] else False
        told = self.trained.facts(compiled, wrapped, blas, "PyTorch's generator through Keras, seeded by rank")
        told.update(
            threads=torch.get_num_threads(),
            backend_version="torch {}".format(torch.__version__),
            cpu_capability=torch.backends.cpu.get_cpu_capability(),
            framework_flops=None,
        )
        return told

    def late_facts(self):
        """What is known only after the steps."""
        told = {"last_gradient": self.gradients.name, "weights_sha256": self.trained.digest()}
        if self.wrapped is not None:
            told.update(ddp_log.exchange_facts(self.wrapped))
        return told

    def close(self):
        self.source.close()
        if self.wrapped is not None:
            torch_group.leave()


class Source(object):
    """PyTorch's source, with images in the shape that Keras's data format wants; no byte is moved."""

    def __init__(self, job, device):
        self._turn = job.knobs["channels_last"] and job.graph["input"]["kind"] == "image"
        memory_format = torch.channels_last if self._turn else torch.contiguous_format
        self._source = open_source(job, own_batch(job), memory_format, device)

    def __call__(self, step):
        inputs, targets = self._source(step)
        return (inputs.permute(0, 2, 3, 1) if self._turn else inputs), targets

    def close(self):
        self._source.close()


class Update(object):
    """Keras's optimizer in the words of PyTorch's."""

    def __init__(self, trained):
        self.trained = trained

    def gradients(self):
        return [variable.value.grad for variable in self.trained.variables]

    @torch.no_grad()
    def step(self):
        trained, gradients = self.trained, self.gradients()
        if trained.decay:
            # Without a public name; Keras's own optimizer uses its like.
            torch._foreach_add_(gradients, [v.value for v in trained.variables], alpha=trained.decay)
        trained.optimizer.apply(gradients, trained.variables)

    def zero_grad(self, set_to_none=True):
        self.trained.model.zero_grad(set_to_none=set_to_none)


class ShowFirst(object):
    """An update that writes the first gradients down before it applies them."""

    def __init__(self, update, events):
        self._update = update
        self._events = events
        self.zero_grad = update.zero_grad

    def step(self):
        if self._events is not None:
            gradients = [gradient.detach().numpy() for gradient in self._update.gradients()]
            self._update.trained.show_gradients(self._events, gradients)
            self._events = None
        self._update.step()
