"""How one rank trains with PyTorch: alone, or in DistributedDataParallel.

Ties together what others own: the model (`builders.torch`), the samples (`torch_input`), the peers (`torch_group`) and
the phases (`torch_phases`).
"""

import hashlib
import os

import torch

from paceline_worker import clock
from paceline_worker.builders.torch import build_model, build_objective, build_optimizer, module_name, named_tensors
from paceline_worker.frameworks import torch_group, torch_phases
from paceline_worker.frameworks.torch_input import open_source
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    training = Training(job)
    steps = Steps(torch_phases.PHASES)
    step = training.stepper(steps)
    events.write(
        "ready",
        framework_version=torch.__version__,
        parameters=sum(p.numel() for p in training.net.parameters() if p.requires_grad),
        setup_s=clock.wall() - clock.started,
        facts=training.facts(),
    )
    take_steps(job, events, steps, step, training.synchronize)
    if training.layers is not None:
        events.write("layers", first=job.warmup_steps, **training.layers.columns(job.steps))
    events.write("facts", facts=training.late_facts())
    training.close()


class Training(object):
    """All that a rank holds: device, input, model, optimizer, peers."""

    def __init__(self, job):
        self.job = job
        knobs = job.knobs
        # Of this run alone: by default compiled graphs of earlier runs, and of other programs, would be found again.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(job.folder, "inductor.{}".format(job.rank))
        torch.set_num_threads(job.threads)
        torch.set_num_interop_threads(knobs["interop_threads"])
        torch.backends.mkldnn.enabled = knobs["onednn"]
        # Every rank drops other units; the initial weights come from the file.
        torch.manual_seed(job.seed * job.world_size + job.rank)
        self.device = torch.device("cpu")
        if job.device == "cuda":
            self.device = torch.device("cuda", job.process["local_rank"])
            torch.cuda.set_device(self.device)
        self.channels_last = knobs["channels_last"] and job.graph["input"]["kind"] == "image"
        memory_format = torch.channels_last if self.channels_last else torch.contiguous_format
        # First of all that is large or has threads: loader workers are forked here.
        self.source = open_source(job, memory_format, self.device)
        self.net = build_model(job.graph, job.weights).to(self.device, memory_format=memory_format)
        self.optimizer = build_optimizer(job.graph, self.net)
        self.layers = None
        if job.layers:
            names = [layer["name"] for layer in job.graph["layers"] if layer["kind"] != "input"]
            self.layers = torch_phases.LayerTimes({name: getattr(self.net, module_name(name)) for name in names})
        self.gradients = torch_phases.LastGradient(
            self.net.named_parameters(), clock.wall if self.device.type == "cpu" else torch_phases.cuda_stamp
        )
        self.wrapped = None
        """The model in DDP; None for one rank, which nobody wraps."""
        if job.world_size > 1:
            torch_group.join(job)
            self.wrapped = torch_group.wrap(job, self.net, self.device)
        self.synchronize = torch_group.synchronizer(job, self.device)

    def stepper(self, steps):
        """The function that takes one step."""
        make = torch_phases.cpu_step if self.device.type == "cpu" else torch_phases.cuda_step
        return make(self.source, self._forward(), self.optimizer, steps, self.gradients, self.layers)

    def facts(self):
        """What is in force, as PyTorch sees it."""
        knobs = self.job.knobs
        facts = {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "blas": "mkl" if torch.backends.mkl.is_available() else "other",
            "onednn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
            "channels_last": self.channels_last,
            "precision": knobs["precision"],
            "compiled": knobs["compile"],
            "wrapped": "none" if self.wrapped is None else type(self.wrapped).__name__,
            "layer_hooks": self.layers is not None,
        }
        if self.layers is not None:
            facts["layer_hooks_s_per_step"] = torch_phases.hook_cost_s() * (len(self.job.graph["layers"]) - 1)
        if self.device.type == "cuda":
            facts["device"] = torch.cuda.get_device_name(self.device)
        return facts

    def late_facts(self):
        """What is known only after the steps."""
        facts = {"last_gradient": self.gradients.name, "weights_sha256": weights_digest(self.net, self.job.graph)}
        if self.wrapped is not None:
            facts.update(torch_group.exchange_facts(self.wrapped))
        if self.job.knobs["compile"]:
            facts["compile_s"] = compile_seconds()
        return facts

    def close(self):
        self.source.close()
        if self.wrapped is not None:
            torch_group.leave()

    def _forward(self):
        model = self.net if self.wrapped is None else self.wrapped
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


def weights_digest(net, graph):
    """SHA-256 of the trainable tensors in the graph's order and layout: equal on all ranks of an exact strategy."""
    digest = hashlib.sha256()
    for _, tensor in named_tensors(net, graph):
        if tensor.requires_grad:
            digest.update(tensor.detach().cpu().contiguous().numpy())
    return digest.hexdigest()


def compile_seconds():
    """Time that the compiler says it took, or None where it does not say."""
    try:
        from torch._dynamo.utils import calculate_time_spent

        return calculate_time_spent().get("total_wall_time")
    except (ImportError, AttributeError):  # not a public interface
        return None
