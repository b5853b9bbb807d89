"""One rank of a collective by itself with JAX: one compiled program a size, over gloo between processes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from paceline_worker import collectives
from paceline_worker.frameworks.jax.group import OWN, SAME, WORKERS, join

ELEMENT_BYTES = 4


def train(job, events):
    """Meet the other ranks, compile, take all rounds."""
    group = join(job)
    exercises = [Exchange(job, group, size) for size in job.collective["sizes"]]
    # A rank that compiled faster waits here, and not in a collective that would give up.
    group.meet()
    collectives.ready(job, events, jax.__version__, "gloo by XLA")
    collectives.take_rounds(job, events, exercises, group.synchronize)
    group.leave()


class Exchange(collectives.Exercise):
    """A message of this rank's number plus one, in every element; programs never write over it."""

    def __init__(self, job, group, size):
        self.size = size
        self._operation, self._ranks, self._rank = job.collective["operation"], job.world_size, job.rank
        program, share, out = PROGRAMS[self._operation]
        elements = size // ELEMENT_BYTES // (job.world_size if share else 1)
        self.trips = 2 if self._operation == "send_recv" else 1
        self._message = group.put_own([jnp.full((elements,), job.rank + 1, jnp.float32)])
        self._program = group.spread(program, (OWN,), out).lower(self._message).compile()
        self._out = None

    def reset(self):
        # What came out before is given back outside of the timed part.
        self._out = None

    def run(self):
        self._out = self._program(self._message)
        self._out.block_until_ready()

    def result(self):
        local = np.asarray(self._out.addressable_data(0))
        if self._operation == "all_gather":
            shares = local.reshape(self._ranks, -1)
            return [span(share) for share in shares], [(rank + 1.0,) * 2 for rank in range(self._ranks)]
        if self._operation == "send_recv":
            # What is back on rank 0 has been on rank 1, where nothing is left.
            return span(local), ((0.0, 0.0) if self._rank else (1.0, 1.0))
        return span(local), (collectives.expected_sum(self._ranks),) * 2


def span(array):
    """(smallest, largest) element: both are right only if all are."""
    return float(array.min()), float(array.max())


def there_and_back(message):
    """Rank 0's message to rank 1, and from there back."""
    return lax.ppermute(lax.ppermute(message, WORKERS, [(0, 1)]), WORKERS, [(1, 0)])


PROGRAMS = {
    "all_reduce": (functools.partial(lax.psum, axis_name=WORKERS), False, SAME),
    "all_gather": (functools.partial(lax.all_gather, axis_name=WORKERS, tiled=True), True, SAME),
    "send_recv": (there_and_back, False, OWN),
    "reduce_scatter": (functools.partial(lax.psum_scatter, axis_name=WORKERS, tiled=True), False, OWN),
}
"""Operation → what one rank computes, whether its message is a share, and whether the result is the same on all."""
