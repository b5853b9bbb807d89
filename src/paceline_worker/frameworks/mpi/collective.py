"""One rank of a collective by itself with MPI: MPICH through mpi4py, on buffers of NumPy."""

import mpi4py
import numpy as np

from paceline_worker import collectives, pmi

mpi4py.rc.initialize = False
"""Ranks find each other first."""
ELEMENT_BYTES = 4


def train(job, events):
    """Meet the other ranks, take all rounds."""
    hosts = {process["host"] for process in job.data["processes"]}
    rendezvous = (job.rendezvous["address"], job.rendezvous["ports"][0])
    pmi.join(job.rank, job.world_size, job.world_size // len(hosts), rendezvous)
    from mpi4py import MPI

    MPI.Init()
    world = MPI.COMM_WORLD
    exercise = EXERCISES[job.collective["operation"]]
    exercises = [exercise(world, size) for size in job.collective["sizes"]]
    version = MPI.Get_library_version().split("\n")[0].strip().rstrip("\0")
    collectives.ready(job, events, mpi4py.__version__, "mpi", mpi=version, ranks=world.Get_size())
    collectives.take_rounds(job, events, exercises, world.Barrier)
    MPI.Finalize()


class InMemory(collectives.Exercise):
    """A message of this rank's number plus one, in every element."""

    def __init__(self, world, size):
        self.size = size
        self.world = world
        self.rank, self.ranks = world.Get_rank(), world.Get_size()
        self.message = np.full(size // ELEMENT_BYTES, self.rank + 1, dtype=np.float32)

    def result(self):
        return span(self.message), self.expected()

    def expected(self):
        raise NotImplementedError


class AllReduce(InMemory):
    def reset(self):
        self.message.fill(self.rank + 1)

    def run(self):
        from mpi4py import MPI

        self.world.Allreduce(MPI.IN_PLACE, self.message)

    def expected(self):
        return (collectives.expected_sum(self.ranks),) * 2


class Broadcast(InMemory):
    def reset(self):
        self.message.fill(self.rank + 1)

    def run(self):
        self.world.Bcast(self.message, 0)

    def expected(self):
        return (1.0, 1.0)


class AllGather(InMemory):
    """Every rank gives its share of the message."""

    def __init__(self, world, size):
        super(AllGather, self).__init__(world, size)
        self.share = self.message[: len(self.message) // self.ranks].copy()
        self.whole = np.zeros_like(self.message)

    def run(self):
        self.world.Allgather(self.share, self.whole)

    def result(self):
        shares = self.whole.reshape(self.ranks, -1)
        return [span(share) for share in shares], [(rank + 1.0,) * 2 for rank in range(self.ranks)]


class ReduceScatter(InMemory):
    """Every rank gets the sum of its share."""

    def __init__(self, world, size):
        super(ReduceScatter, self).__init__(world, size)
        self.share = np.zeros(len(self.message) // self.ranks, dtype=np.float32)

    def run(self):
        self.world.Reduce_scatter_block(self.message, self.share)

    def result(self):
        return span(self.share), (collectives.expected_sum(self.ranks),) * 2


class SendRecv(InMemory):
    """Rank 0's message goes to rank 1 and comes back."""

    trips = 2

    def __init__(self, world, size):
        super(SendRecv, self).__init__(world, size)
        self.received = np.zeros_like(self.message)

    def run(self):
        if self.rank == 0:
            self.world.Send(self.message, 1)
            self.world.Recv(self.received, 1)
        else:
            self.world.Recv(self.received, 0)
            self.world.Send(self.received, 0)

    def result(self):
        return span(self.received), (1.0, 1.0)


def span(array):
    """(smallest, largest) element: both are right only if all are."""
    return float(array.min()), float(array.max())


EXERCISES = {
    "all_reduce": AllReduce,
    "all_gather": AllGather,
    "reduce_scatter": ReduceScatter,
    "broadcast": Broadcast,
    "send_recv": SendRecv,
}
