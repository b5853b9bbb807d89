"""How one rank trains with PyTorch: set up, take all steps, say what was learnt.

Ties together what others own: the samples (`input`), the peers (`group`), the phases (`phases`) and
the way in which ranks share the work, one module each: `alone`, `ddp`, `fsdp`, `pipeline`,
`tensor`.
"""

import hashlib
import importlib
import os

import torch

from paceline_worker import clock
from paceline_worker.frameworks.torch import evidence as torch_evidence
from paceline_worker.frameworks.torch import group as torch_group
from paceline_worker.frameworks.torch import phases as torch_phases
from paceline_worker.frameworks.torch.alone import Alone
from paceline_worker.frameworks.torch.compile import CompileTime
from paceline_worker.frameworks.torch.input import open_source
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps

WAYS = {
    "ddp": "ddp:Ddp",
    "zero": "ddp:Zero",
    "post_local_sgd": "ddp:PostLocalSgd",
    "fsdp": "fsdp:Fsdp",
    "pipeline": "pipeline:Stages",
    "tensor": "tensor:Tensor",
}
"""Strategy → how ranks share the work, in a module that is loaded when it is wanted: some take a second."""


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    training = Training(job)
    way = training.way
    steps = Steps(way.phases)
    step = way.stepper(training.source, steps)
    events.write(
        "ready",
        framework_version=torch.__version__,
        parameters=way.parameters(),
        setup_s=clock.wall() - clock.started,
        facts=training.facts(),
    )
    if job.evidence:
        torch_evidence.show_first_gradients(events, way)
    compiling = CompileTime(job, steps)
    take_steps(job, events, steps, step, training.synchronize, compiling.begin_block)
    if way.layers is not None:
        events.write("layers", first=job.warmup_steps, **way.layers.columns(job.steps))
    events.write("facts", facts=dict(training.late_facts(), **compiling.facts()))
    if job.evidence:
        torch_evidence.show_result(events, way)
    training.close()


class Training(object):
    """All that a rank holds: device, input, peers, and the way in which it trains with them."""

    def __init__(self, job):
        self.job = job
        knobs = job.knobs
        # Of this run alone: by default compiled graphs of earlier runs, and of other programs, would be found again.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(job.folder, "inductor.{}".format(job.rank))
        torch.set_num_threads(job.threads)
        torch.set_num_interop_threads(knobs["interop_threads"])
        torch.backends.mkldnn.enabled = knobs["onednn"]
        way = way_of(job)
        # Every rank drops other units, unless ranks hold the same ones; the initial weights come from the file.
        torch.manual_seed(job.seed * job.world_size + (job.rank if way.seeded_by == "rank" else 0))
        self.device = torch.device("cpu")
        if job.device == "cuda":
            self.device = torch.device("cuda", job.process["local_rank"])
            torch.cuda.set_device(self.device)
        self.channels_last = knobs["channels_last"] and job.graph["input"]["kind"] == "image"
        memory_format = torch.channels_last if self.channels_last else torch.contiguous_format
        # First of all that is large or has threads: loader workers are forked here.
        self.source = open_source(job, way.part(job), memory_format, self.device)
        if job.world_size > 1:
            torch_group.join(job)
        self.way = way(job, self.device, memory_format)
        self.synchronize = torch_group.synchronizer(job, self.device)

    def facts(self):
        """What is in force, as PyTorch sees it."""
        knobs, way = self.job.knobs, self.way
        onednn = torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled
        blas = "mkl" if torch.backends.mkl.is_available() else "other"
        layout = "nhwc" if self.channels_last else "nchw"
        facts = {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "layout": layout if self.job.graph["input"]["kind"] == "image" else None,
            "blas": "onednn+" + blas if onednn else blas,
            "onednn": onednn,
            "channels_last": self.channels_last,
            "precision": knobs["precision"],
            "compiled": knobs["compile"],
            "wrapped": way.wrapped,
            "loss_over": way.loss_over,
            "dropout": "PyTorch's own generator, seeded by {}".format(way.seeded_by) if self.job.drops_out else None,
            "layer_hooks": way.layers is not None,
            "framework_flops": torch_evidence.counted_flops(self.job) if self.job.evidence else None,
        }
        if knobs["accumulate"] > 1:
            # In a proof, whose batch is small, they may be fewer than asked for.
            facts["micro_batches"] = way.micro_batches
        if way.communication_in:
            facts["phases_mixed"] = {
                "phases": list(way.communication_in) + ["communication"],
                "why": way.communication_why,
            }
            # A core that is idle in such a phase waits for peers: it was not taken away.
            facts["waits"] = True
        if way.layers is not None:
            facts["layer_hooks_s_per_step"] = torch_phases.hook_cost_s() * (len(self.job.graph["layers"]) - 1)
        if self.device.type == "cuda":
            facts["device"] = torch.cuda.get_device_name(self.device)
        facts.update(way.facts())
        return facts

    def late_facts(self):
        """What is known only after the steps."""
        facts = {"weights_sha256": weights_digest(self.way)}
        facts.update(self.way.late_facts())
        return facts

    def close(self):
        self.source.close()
        if self.job.world_size > 1:
            torch_group.leave()


def way_of(job):
    """How this rank trains; one that has no peers is wrapped in nothing, whatever the strategy."""
    if job.world_size == 1:
        return Alone
    module, name = WAYS[job.strategy].split(":")
    return getattr(importlib.import_module("paceline_worker.frameworks.torch." + module), name)


def weights_digest(way):
    """SHA-256 of the trainable tensors in the graph's order and layout: equal on all ranks that hold the same ones."""
    digest = hashlib.sha256()
    for _, array in way.trainable():
        digest.update(array)
    return digest.hexdigest()
