"""PyTorch ranks that hold the whole model and average gradients: DistributedDataParallel, and what is built on it."""

import inspect
import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from paceline_worker import evidence
from paceline_worker.frameworks.torch.alone import Alone
from paceline_worker.frameworks.torch.builder import build_optimizer, sgd_rule
from paceline_worker.frameworks.torch.ddp_log import exchange_facts

MIB = 2**20
"""PyTorch's `bucket_cap_mb` counts in these."""

POWERSGD_START = 2
"""First step that PowerSGD compresses: DDP makes its buckets again after the first, and the error that PowerSGD feeds
back would be that of other buckets; it refuses an earlier one."""


class Ddp(Alone):
    """Gradients averaged bucket by bucket during the backward pass, as they are or compressed."""

    wrapped = "DistributedDataParallel"

    def share(self):
        self.model = wrap(self.job, self.net, self.device)
        self.optimizer = build_optimizer(self.job.graph, self.net)
        self.compression = None
        if self.job.knobs["hook"] != "none":
            self.compression = Compression(self.job, self.model)

    def holding(self, last):
        return super().holding(last) if last else self.model.no_sync()

    def late_facts(self):
        facts = dict(super().late_facts(), **exchange_facts(self.model))
        return facts if self.compression is None else dict(facts, **self.compression.facts())


class Zero(Ddp):
    """Each rank keeps the optimizer's state of, and updates, its share of the parameters, and sends them to all."""

    wrapped = "DistributedDataParallel + ZeroRedundancyOptimizer"
    communication_in = ("update",)
    communication_why = "every rank sends the parameters that it has updated to all others"

    def share(self):
        super().share()
        self.optimizer = ZeroRedundancyOptimizer(
            [p for p in self.net.parameters() if p.requires_grad],
            torch.optim.SGD,
            fused=True,
            **sgd_rule(self.job.graph),
        )

    def facts(self):
        updated = [p for group in self.optimizer.optim.param_groups for p in group["params"]]
        return {"parameters_updated": sum(p.numel() for p in updated)}


class PostLocalSgd(Ddp):
    """Gradients are averaged in the first steps; then each rank goes by itself, and weights are, now and then."""

    wrapped = "DistributedDataParallel + PostLocalSGDOptimizer"
    communication_in = ("update",)
    communication_why = "weights are averaged in the update, once in a period"
    # The averager hands back every parameter as a piece of one flat tensor, in row-major order.
    channels_last_filters = False

    def share(self):
        super().share()
        start, period = self._start, self._period = self._when()
        # PyTorch goes on averaging gradients within a host. With one worker a host, or all on one, that is no local SGD
        # or nothing else; here a worker is by itself wherever it is.
        state = post_localSGD_hook.PostLocalSGDState(
            process_group=None, subgroup=None, start_localSGD_iter=start, post_local_gradient_allreduce=False
        )
        self.model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
        averager = PeriodicModelAverager(period=period, warmup_steps=start)
        self.optimizer = PostLocalSGDOptimizer(self.optimizer, averager)

    def before_first_update(self, act):
        def once(*_arguments):
            handle.remove()
            act()

        # The outer one is an Optimizer in name only.
        handle = self.optimizer.optim.register_step_pre_hook(once)

    def facts(self):
        facts = {"local_from_step": self._start, "weights_averaged_every": self._period}
        if (self._start, self._period) != self._asked():
            facts["shortened_for_proof"] = "local_sgd_start {}, local_sgd_period {}".format(*self._asked())
        return facts

    def _when(self):
        """(first local step, steps between two means of weights)."""
        return evidence.soon_enough(self.job.steps, *self._asked()) if self.job.evidence else self._asked()

    def _asked(self):
        return self.job.knobs["local_sgd_start"], self.job.knobs["local_sgd_period"]


class Compression(object):
    """A communication hook of DDP that sends less than the gradients; in a proof, also how wrong it is."""

    def __init__(self, job, model):
        self._norms = []
        self._compressed = []
        self._state = None
        hook = default_hooks.fp16_compress_hook
        self.first_step = 0
        if job.knobs["hook"] == "powersgd":
            self.first_step = POWERSGD_START
            self._state = powerSGD_hook.PowerSGDState(
                None, matrix_approximation_rank=job.knobs["powersgd_rank"], start_powerSGD_iter=POWERSGD_START
            )
            hook = powerSGD_hook.powerSGD_hook
            if dist.get_backend() == "gloo":
                hook = _bucket_after_bucket(hook)
        model.register_comm_hook(self._state, self._watched(hook) if job.evidence else hook)

    def facts(self):
        facts = {"compressed_from_step": self.first_step}
        if self._state is not None:
            _, before, after = self._state.compression_stats()
            facts["compression_rate"] = before / after if after else None
        if self._norms:
            # Of sums: a gradient that has become small would make any error look large beside it.
            errors, exact = (float(sum(norms)) for norms in zip(*self._norms))
            facts["compression_error"] = errors / exact
        if self._compressed:
            lost, asked = (float(sum(norms)) for norms in zip(*self._compressed))
            facts["exchange_error"] = lost / asked
        return facts

    def _watched(self, hook):
        """The hook, and beside it the true mean: how far they are apart, and how long the true one is, by bucket.

        Where it compresses, also from the mean of what is to be exchanged, to which PowerSGD adds what it left over.
        """

        def watched(state, bucket):
            exact = asked = self._mean(bucket.buffer())
            compresses = self._state is None or self._state.iter >= self.first_step
            if self._state is not None and bucket.index() in self._state.error_dict:
                asked = self._mean(bucket.buffer() + self._state.error_dict[bucket.index()])

            def compare(future):
                averaged = future.value()
                self._norms.append(((averaged - exact).norm(), exact.norm()))
                if compresses:
                    self._compressed.append(((averaged - asked).norm(), asked.norm()))
                return averaged

            return hook(state, bucket).then(compare)

        return watched

    @staticmethod
    def _mean(buffer):
        mean = buffer.clone()
        dist.all_reduce(mean)
        return mean / dist.get_world_size()


def _bucket_after_bucket(hook):
    """The hook, waited for: no bucket overtakes another.

    PowerSGD starts its later all-reduces from callbacks. Over gloo, which matches collectives by their order, those of
    two buckets under way may cross on one rank and not on the other, and the processes abort.
    """

    def waited(state, bucket):
        future = hook(state, bucket)
        future.wait()
        return future

    return waited


def wrap(job, net, device):
    """The model in DistributedDataParallel, as the knobs say."""
    knobs = job.knobs
    options = {}
    if not knobs["overlap"]:
        # One bucket is full, and its all-reduce starts, only when the last gradient is ready: nothing overlaps.
        options["bucket_cap_mb"] = sys.maxsize // MIB
    elif knobs["bucket_bytes"] is not None:
        options["bucket_cap_mb"] = knobs["bucket_bytes"] / MIB
    # Left out, `bucket_cap_mb` also makes a small first bucket, which 25 given explicitly does not.
    accepted = inspect.signature(DistributedDataParallel).parameters
    options["forward_sync_buffers" if "forward_sync_buffers" in accepted else "broadcast_buffers"] = knobs[
        "sync_buffers"
    ]
    return DistributedDataParallel(
        net,
        device_ids=[device.index] if device.type == "cuda" else None,
        gradient_as_bucket_view=knobs["gradient_as_bucket_view"],
        **options,
    )
