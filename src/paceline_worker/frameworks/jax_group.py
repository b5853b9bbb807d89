"""How JAX ranks find each other, and how arrays and programs are spread over them.

Alone, a rank has ordinary arrays and programs. With peers there is a mesh of one device a rank: an array is either the
same on all of them (parameters) or every rank's own part of a longer one (batches, statistics), and a program is what
one rank does, made global by `shard_map`. Gradients are averaged over gloo.
"""

import socket

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding, PartitionSpec

RANKS = "ranks"
"""Name of the mesh's only axis."""
SAME, OWN = PartitionSpec(), PartitionSpec(RANKS)

JOIN_S = 120
"""Ranks are started together; a peer that does not come in this time does not come."""
MEET_S = 900
"""A peer may still compile, from scratch where others found their programs in the cache. A dead one is noticed sooner,
by its missing heartbeat."""


class Alone(object):
    """One rank, and nothing to share."""

    name = "none"

    def put(self, tree, _spec):
        return jax.tree.map(jnp.array, tree)

    def batch(self, array):
        """A batch on the device; where the memory is aligned, not even copied."""
        return jax.device_put(array)

    def spread(self, program, _in_specs, _out_specs):
        return program

    def average(self, gradients):
        return gradients

    def meet(self):
        pass

    def synchronize(self):
        pass

    def leave(self):
        pass


class Group(object):
    """This rank among its peers."""

    name = "shard_map"

    def __init__(self, job):
        """Raises: OSError: "Address already in use": another process has the port."""
        address, port = job.rendezvous["address"], job.rendezvous["ports"][0]
        if job.rank == 0:
            # The coordinator's own complaint about a taken port comes late and in other words.
            family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
            socket.create_server((address, port), family=family).close()
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        # It would take SIGTERM for itself, and a rank would not end when the host asks it to.
        jax.config.update("jax_enable_preemption_service", False)
        at = "{}:{}".format(address, port)
        jax.distributed.initialize(
            at, job.world_size, job.rank, initialization_timeout=JOIN_S, coordinator_bind_address=at
        )
        self._size = job.world_size
        self._flatten = job.knobs["flatten"]
        self._mesh = jax.make_mesh((job.world_size,), (RANKS,))
        self._meetings = 0
        self._ones = self.put(jnp.ones(1), OWN)
        self._sum = self.spread(lambda ones: lax.psum(ones, RANKS), (OWN,), SAME)

    def put(self, tree, spec):
        """Local arrays as parts of global ones: every rank's own, or (for it to be true, equal) the same on all."""
        return jax.tree.map(lambda array: self._global(jnp.array(array), spec), tree)

    def batch(self, array):
        return self._global(jax.device_put(array, jax.local_devices()[0]), OWN)

    def spread(self, program, in_specs, out_specs):
        """A program of one rank as one of all ranks. Nothing is exchanged but what it asks for itself."""
        # With the check on, JAX would sum gradients of what is the same on all ranks by itself, tensor by tensor.
        return jax.jit(jax.shard_map(program, mesh=self._mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False))

    def average(self, gradients):
        """The mean over all ranks: of one long vector, or tensor by tensor, which gloo carries much slower."""
        if not self._flatten:
            return lax.pmean(gradients, RANKS)
        vector, restore = ravel_pytree(gradients)
        return restore(lax.pmean(vector, RANKS))

    def meet(self):
        """Return when all ranks are here, however long one of them took to compile.

        A collective will not do: gloo gives up on a peer that is 30 s late.
        """
        from jax._src import distributed  # there is no public door

        self._meetings += 1
        distributed.global_state.client.wait_at_barrier("paceline{}".format(self._meetings), MEET_S * 1000)

    def synchronize(self):
        """Return when all ranks are here, within fractions of a millisecond of each other."""
        self._sum(self._ones).block_until_ready()

    def leave(self):
        """Part when all ranks are here: rank 0 holds the coordinator that the others still talk to."""
        self.meet()
        jax.distributed.shutdown()

    def _global(self, array, spec):
        shape = array.shape if spec == SAME else (self._size * array.shape[0],) + array.shape[1:]
        return jax.make_array_from_single_device_arrays(shape, NamedSharding(self._mesh, spec), [array])


def join(job):
    return Alone() if job.world_size == 1 else Group(job)
