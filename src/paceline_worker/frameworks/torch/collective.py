"""One rank of a collective by itself with PyTorch: torch.distributed over gloo, or NCCL (written, untested)."""

import os

import torch
import torch.distributed as dist

from paceline_worker import collectives
from paceline_worker.frameworks.torch import group as torch_group

ELEMENT_BYTES = 4


def train(job, events):
    """Meet the other ranks, take all rounds."""
    torch.set_num_threads(job.threads)
    device = torch.device("cpu")
    if job.device == "cuda":
        device = torch.device("cuda", job.process["local_rank"])
        torch.cuda.set_device(device)
    torch_group.join(job)
    exercise = EXERCISES[job.collective["operation"]]
    exercises = [exercise(job, size, device) for size in job.collective["sizes"]]
    collectives.ready(
        job,
        events,
        torch.__version__,
        torch_group.BACKENDS[job.device],
        interface=os.environ.get("GLOO_SOCKET_IFNAME"),
    )
    collectives.take_rounds(job, events, exercises, torch_group.synchronizer(job, device))
    torch_group.leave()


class OnDevice(collectives.Exercise):
    """A message of this rank's number plus one, in every element."""

    def __init__(self, job, size, device):
        self.size = size
        self.rank, self.ranks = job.rank, job.world_size
        self.device = device
        self.message = torch.empty(self.elements(), dtype=torch.float32, device=device)
        self.message.fill_(self.rank + 1)

    def elements(self):
        return self.size // ELEMENT_BYTES

    def run(self):
        self.exchange()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def exchange(self):
        raise NotImplementedError

    def result(self):
        return span(self.message), self.expected()

    def expected(self):
        raise NotImplementedError


class AllReduce(OnDevice):
    def reset(self):
        self.message.fill_(self.rank + 1)

    def exchange(self):
        dist.all_reduce(self.message)

    def expected(self):
        return (collectives.expected_sum(self.ranks),) * 2


class Broadcast(OnDevice):
    def reset(self):
        self.message.fill_(self.rank + 1)

    def exchange(self):
        dist.broadcast(self.message, 0)

    def expected(self):
        return (1.0, 1.0)


class AllGather(OnDevice):
    """Every rank gives its share of the message."""

    def __init__(self, job, size, device):
        super().__init__(job, size, device)
        self.whole = torch.zeros(size // ELEMENT_BYTES, dtype=torch.float32, device=device)

    def elements(self):
        return self.size // ELEMENT_BYTES // self.ranks

    def exchange(self):
        dist.all_gather_into_tensor(self.whole, self.message)

    def result(self):
        shares = self.whole.view(self.ranks, -1)
        return [span(share) for share in shares], [(rank + 1.0,) * 2 for rank in range(self.ranks)]


class ReduceScatter(OnDevice):
    """Every rank gets the sum of its share."""

    def __init__(self, job, size, device):
        super().__init__(job, size, device)
        self.share = torch.zeros(size // ELEMENT_BYTES // self.ranks, dtype=torch.float32, device=device)

    def exchange(self):
        dist.reduce_scatter_tensor(self.share, self.message)

    def result(self):
        return span(self.share), (collectives.expected_sum(self.ranks),) * 2


class SendRecv(OnDevice):
    """Rank 0's message goes to rank 1 and comes back."""

    trips = 2

    def __init__(self, job, size, device):
        super().__init__(job, size, device)
        self.received = torch.zeros_like(self.message)

    def exchange(self):
        if self.rank == 0:
            dist.send(self.message, 1)
            dist.recv(self.received, 1)
        else:
            dist.recv(self.received, 0)
            dist.send(self.received, 0)

    def result(self):
        return span(self.received), (1.0, 1.0)


def span(tensor):
    """(smallest, largest) element: both are right only if all are."""
    return float(tensor.min()), float(tensor.max())


EXERCISES = {
    "all_reduce": AllReduce,
    "all_gather": AllGather,
    "reduce_scatter": ReduceScatter,
    "broadcast": Broadcast,
    "send_recv": SendRecv,
}
