"""How JAX workers find each other, and how arrays and programs are spread over them.

A worker is a device: the only one of its process, or one of several. Alone, it has ordinary arrays and programs. With
others there is a mesh of all workers: an array is either the same on all of them (parameters) or every worker's own
part of a longer one (batches, statistics), and a program is what one worker does, made global by `shard_map`. Gradients
are averaged inside the process by XLA itself, between processes over gloo.
"""

import socket

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import NamedSharding, PartitionSpec

WORKERS = "workers"
"""Name of the mesh's only axis."""
SAME, OWN = PartitionSpec(), PartitionSpec(WORKERS)

JOIN_S = 120
"""Ranks are started together; a peer that does not come in this time does not come."""
MEET_S = 900
"""A peer may still compile, from scratch where others found their programs in the cache. A dead one is noticed sooner,
by its missing heartbeat."""


class Alone(object):
    """One worker, and nothing to share."""

    name = "none"

    def put_same(self, tree):
        return jax.tree.map(jnp.array, tree)

    def put_own(self, trees):
        return self.put_same(trees[0])

    def batch(self, arrays):
        """A batch on the device; where the memory is aligned, not even copied."""
        return jax.device_put(arrays[0])

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


class Devices(Alone):
    """Several workers, all of them devices of this process."""

    def __init__(self, job):
        self.name = "shard_map, {} devices of a process".format(job.devices)
        self._size = job.workers
        asked = job.knobs.get("flatten")
        self._flatten = job.world_size > 1 if asked is None else asked
        self._here = jax.local_devices()
        self._mesh = jax.make_mesh((job.workers,), (WORKERS,))

    def put_same(self, tree):
        """A tree that is the same on all workers of all ranks."""
        return jax.tree.map(lambda array: self._global(self._copies([array] * len(self._here)), SAME), tree)

    def put_own(self, trees):
        """A tree for each worker of this rank."""
        return jax.tree.map(lambda *arrays: self._global(self._copies(arrays), OWN), *trees)

    def batch(self, arrays):
        return self._global([jax.device_put(array, device) for array, device in zip(arrays, self._here)], OWN)

    def spread(self, program, in_specs, out_specs):
        """A program of one worker as one of all. Nothing is exchanged but what it asks for itself."""
        # With the check on, JAX would sum gradients of what is the same on all ranks by itself, tensor by tensor.
        return jax.jit(jax.shard_map(program, mesh=self._mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False))

    def average(self, gradients):
        """The mean over all workers: of one long vector, or tensor by tensor.

        Gloo carries many tensors much slower than one; XLA's own exchange inside a process is the other way round.
        """
        if not self._flatten:
            return lax.pmean(gradients, WORKERS)
        vector, restore = ravel_pytree(gradients)
        return restore(lax.pmean(vector, WORKERS))

    def _copies(self, arrays):
        """One array a device, in memory of JAX' own, so that a step can update it in place."""
        return [jax.device_put(jnp.array(array), device) for array, device in zip(arrays, self._here)]

    def _global(self, arrays, spec):
        shape = arrays[0].shape
        if spec == OWN:
            shape = (self._size * shape[0],) + shape[1:]
        return jax.make_array_from_single_device_arrays(shape, NamedSharding(self._mesh, spec), arrays)


class Group(Devices):
    """This rank, with its device or devices, among its peers."""

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
        super().__init__(job)
        self.name = "shard_map"
        self._meetings = 0
        self._ones = self.put_own([jnp.ones(1)] * job.devices)
        self._sum = self.spread(lambda ones: lax.psum(ones, WORKERS), (OWN,), SAME)

    def meet(self):
        """Return when all ranks are here, however long one of them took to compile.

        A collective will not do, nor `multihost_utils.sync_global_devices`, which is one: gloo gives up on a peer that
        is 30 s late.
        """
        from jax._src import distributed  # JAX' own checkpoints wait so; there is no public door

        self._meetings += 1
        distributed.global_state.client.wait_at_barrier("paceline{}".format(self._meetings), MEET_S * 1000)

    def synchronize(self):
        """Return when all ranks are here, within fractions of a millisecond of each other."""
        self._sum(self._ones).block_until_ready()

    def leave(self):
        """Part when all ranks are here: rank 0 holds the coordinator that the others still talk to."""
        self.meet()
        jax.distributed.shutdown()


def join(job):
    if job.devices > 1:
        jax.config.update("jax_num_cpu_devices", job.devices)
    if job.world_size > 1:
        return Group(job)
    return Devices(job) if job.devices > 1 else Alone()
