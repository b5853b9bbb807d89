"""PyTorch ranks that are stages of a pipeline: each has blocks of a transformer, and micro-batches flow through."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from paceline_worker import clock
from paceline_worker.frameworks.torch.alone import Alone
from paceline_worker.frameworks.torch.builder import build_objective, build_optimizer
from paceline_worker.frameworks.torch.input import global_batch
from paceline_worker.graph.blocks import stage_graph

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class Stages(Alone):
    """torch.distributed.pipelining. The step's samples, those of all workers together, enter at the first stage."""

    wrapped = "torch.distributed.pipelining"
    begins_with_last_gradient = False
    loss_over = "global"

    @staticmethod
    def part(job):
        # The first stage wants the inputs, the last one the targets.
        return global_batch(job) if job.rank in (0, job.world_size - 1) else None

    def of_graph(self):
        return stage_graph(self.job.graph, self.job.rank, self.job.world_size)

    def share(self):
        job = self.job
        self.optimizer = build_optimizer(self.graph, self.net)
        self.stage = TimedStage(self.net, job.rank, job.world_size, self.device)
        self.microbatches = microbatches(job)
        self.schedule = SCHEDULES[job.knobs["schedule"]](
            self.stage, n_microbatches=self.microbatches, loss_fn=self.stage.timed_loss(build_objective(job.graph))
        )

    def stepper(self, batch, steps):
        stage, schedule, optimizer = self.stage, self.schedule, self.optimizer
        first, last = stage.is_first, stage.is_last

        def step(number):
            inputs, targets = batch(number)
            steps.lap()
            stage.forward_s = stage.backward_s = 0.0
            losses = []
            begun = stage.now()
            schedule.step(
                *((inputs,) if first else ()),
                return_outputs=False,
                **({"target": targets, "losses": losses} if last else {}),
            )
            # Micro-batches take turns forward and backward: the phases are their sums, and what is left is exchange
            # and waiting, the pipeline's bubble with it.
            steps.lap_at(begun + stage.forward_s)
            steps.lap_at(begun + stage.forward_s + stage.backward_s)
            stage.now()
            steps.lap()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            stage.now()
            steps.lap()
            steps.end(LossOfLast(torch.stack(losses).detach().mean() if last else torch.zeros((), device=self.device)))

        return step

    def parameters(self):
        count = torch.tensor(super().parameters(), device=self.device)
        dist.all_reduce(count)
        return int(count)

    def facts(self):
        return {
            "stage_layers": [layer["name"] for layer in self.graph["layers"] if layer["kind"] != "input"],
            "pipeline_micro_batches": self.microbatches,
            "hand_over_bytes_per_sample": self.handed_over(),
            "parameters_held": super().parameters(),
        }

    def handed_over(self):
        """Bytes of what the first stage gives the second for one sample; all stages of a transformer give as much."""
        handed = stage_graph(self.job.graph, 0, self.job.world_size)["layers"][-1]
        elements = 1
        for extent in handed["shape"]:
            elements *= extent
        return elements * torch.finfo(next(self.net.parameters()).dtype).bits // 8


class TimedStage(PipelineStage):
    """Adds up the time that this stage computes."""

    forward_s = 0.0
    backward_s = 0.0

    def now(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return clock.wall()

    def forward_one_chunk(self, *arguments, **named):
        begun = self.now()
        try:
            return super().forward_one_chunk(*arguments, **named)
        finally:
            self.forward_s += self.now() - begun

    def backward_one_chunk(self, *arguments, **named):
        begun = self.now()
        try:
            return super().backward_one_chunk(*arguments, **named)
        finally:
            self.backward_s += self.now() - begun

    def timed_loss(self, objective):
        """The objective, as part of the forward time."""

        def loss(logits, targets):
            begun = self.now()
            value = objective(logits, targets)
            self.forward_s += self.now() - begun
            return value

        return loss


class LossOfLast(object):
    """The last stage's loss, sent to all when it is read, which all ranks do after a block of steps, in order."""

    def __init__(self, loss):
        self._loss = loss

    def __float__(self):
        dist.broadcast(self._loss, src=dist.get_world_size() - 1)
        return float(self._loss)


def microbatches(job):
    """As many as the knob says, or 4, 2 or 1 a stage: the most that the batch can be cut into.

    A proof's batch may be smaller than the one that was to be cut; what is computed is the same.
    """
    asked = job.knobs["microbatches"]
    if asked is not None and job.batch * job.workers % asked == 0:
        return asked
    return job.workers * next(count for count in (4, 2, 1) if job.batch % count == 0)
