"""Which samples each rank reads at each step: one rule for every framework, resident or pipelined.

The samples of the data file are dealt out in file order, step by step and within a step rank by rank, and start again
at the end of the file. So world size W with batch B sees, step by step, the same samples as one process with batch
W * B, and what two frameworks read differs in nothing.
"""

import math


def first_sample(step, rank, world_size, batch, samples):
    """Place in the data file of the first sample of a rank's batch; the others follow, and wrap at the end."""
    return (step * world_size + rank) * batch % samples


def batch_indices(step, rank, world_size, batch, samples):
    """Places in the data file of all samples of a rank's batch."""
    first = first_sample(step, rank, world_size, batch, samples)
    return [(first + k) % samples for k in range(batch)]


def micro_batches(batch, wanted):
    """Into how many equal pieces a batch is cut where `wanted` are wanted: the most that it allows, no more than that.

    Only a proof's batch, which is smaller than the one that is measured, may allow fewer.
    """
    return max(count for count in range(1, wanted + 1) if batch % count == 0)


def cycle_steps(world_size, batch, samples):
    """Number of steps after which a rank reads the same batches again."""
    return samples // math.gcd(samples, world_size * batch)
