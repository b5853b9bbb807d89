"""The timing law of the `null` framework: how long each phase of a step takes, as equations. Pure.

P ranks, step t, rank r; names in code font are knobs (docs/reference/null.md lists them all):

    input       I      = (input_s + input_per_sample_s * batch) * slow_input_factor
    compute     C[r,t] = (compute_s + compute_per_sample_s * batch) * slow[r] * J[r,t] * R * (1 + crowding)
                slow[r] = slow_factor on slow_rank, 1 elsewhere
                forward F = C * FORWARD_SHARE, backward B = C - F
    exchange    X      = n * 2(P-1) * alpha_s + 2(P-1)/P * M * beta_s_per_byte   (a ring; 0 for P = 1)
                M      = message_bytes, n = ceil(M / bucket_bytes) buckets (1 without the knob, 0 if M = 0)
    exposed     E[t]   = max(0, X - overlap * B of the slowest rank at t)
    data        D[t]   = I, or with input_overlap: max(0, I - rest[t-1]) after the first step
    rest        rest[t] = max over r of C[r,t] + E[t] + update_s + overhead_s
    step        T[t]   = D[t] + rest[t], the same on every rank

Of C, crowding / (1 + crowding) is waiting for a core: the column starved_s.

Phases of rank r, which sum to T: data D, forward F, backward B, communication (max C - C[r,t]) + E, update,
overhead.

A collective by itself, of M bytes (frameworks.null_collective):

    all_reduce                   2(P-1) * alpha_s + 2(P-1)/P * M * beta_s_per_byte
    all_gather, reduce_scatter    (P-1) * alpha_s +  (P-1)/P * M * beta_s_per_byte
    broadcast                     (P-1) * (alpha_s + M * beta_s_per_byte)   (from rank to rank)
    send_recv                             alpha_s + M * beta_s_per_byte

each times J of rank 0 and R.

    jitter      J = exp(s*x - s*s/2), x[t] = c*x[t-1] + sqrt(1 - c*c)*e[t], e and x[0] standard normal
                s = jitter, c = jitter_correlation; mean 1, a stream of its own for every rank
    run         R = exp(v*z - v*v/2), v = run_jitter: one draw a run, shared by its ranks; mean 1

The ring's cost is that of Thakur, Rabenseifner and Gropp (2005), "Optimization of collective communication
operations in MPICH", without the arithmetic. Knows no clock and no socket: `frameworks.null` waits or stamps.
"""

import collections
import math
import random

VERSION = "law-2"
"""Reported as the framework's version; changes when an equation above does."""

PHASES = ("data", "forward", "backward", "communication", "update", "overhead")

FORWARD_SHARE = 1.0 / 3
"""Of compute; the backward pass of a dense layer does two products of the forward's size."""

BYTES_PER_PARAMETER = 4
"""Gradients are float32."""

WHOLE_RUN = "run"
"""Owner of the random numbers that all ranks share."""

LOSS_START = 2.3
LOSS_FLOOR = 0.2
LOSS_HALF_STEPS = 100.0
"""The step at which the loss has come half-way from its start (above the floor)."""

StepTimes = collections.namedtuple("StepTimes", PHASES)  # noqa: PYI024  the phases are listed once


def num_parameters(graph):
    """Trainable parameters of a neutral graph (its JSON form)."""
    total = 0
    for layer in graph["layers"]:
        for parameter in layer["parameters"]:
            if parameter["trainable"]:
                size = 1
                for extent in parameter["shape"]:
                    size *= extent
                total += size
    return total


def loss(step):
    """A loss that falls for ever, the same on all ranks."""
    return LOSS_FLOOR + LOSS_START / (1.0 + step / LOSS_HALF_STEPS)


class Law(object):
    """The law with its knobs filled in, for one world size, batch and message."""

    def __init__(self, knobs, world_size, batch, gradient_bytes):
        self.knobs = knobs
        self.world_size = world_size
        asked = knobs["message_bytes"]
        self.message_bytes = round(gradient_bytes if asked is None else asked)
        bucket = knobs["bucket_bytes"]
        self.bucket_bytes = max(1, self.message_bytes if bucket is None else round(bucket))
        self.num_buckets = -(-self.message_bytes // self.bucket_bytes)
        self.input_s = (knobs["input_s"] + knobs["input_per_sample_s"] * batch) * knobs["slow_input_factor"]
        self._crowding = knobs["crowding"]
        self._compute_s = (knobs["compute_s"] + knobs["compute_per_sample_s"] * batch) * (1 + self._crowding)
        self.exchange_s = self._exchange_s()

    def _exchange_s(self):
        peers = self.world_size - 1
        latency_s = self.num_buckets * 2 * peers * self.knobs["alpha_s"]
        return latency_s + 2.0 * peers / self.world_size * self.message_bytes * self.knobs["beta_s_per_byte"]

    def compute_s(self, rank, factor=1.0):
        """C of a rank, where `factor` is the product of its jitters at this step."""
        slow = self.knobs["slow_factor"] if rank == self.knobs["slow_rank"] else 1.0
        return self._compute_s * slow * factor

    def starved_s(self, compute_s):
        """What of its computing a rank spent in waiting for a core."""
        return compute_s * self._crowding / (1 + self._crowding)

    def forward_s(self, compute_s):
        return compute_s * FORWARD_SHARE

    def data_s(self, previous_rest_s):
        """D, given the rest of the step before (None on the first step)."""
        if self.knobs["input_overlap"] and previous_rest_s is not None:
            return max(0.0, self.input_s - previous_rest_s)
        return self.input_s

    def step(self, compute_s, slowest_compute_s, previous_rest_s):
        """The phases of one step of a rank that computes for `compute_s` while the slowest takes longer."""
        forward_s = self.forward_s(compute_s)
        hidden_s = self.knobs["overlap"] * (slowest_compute_s - self.forward_s(slowest_compute_s))
        return StepTimes(
            data=self.data_s(previous_rest_s),
            forward=forward_s,
            backward=compute_s - forward_s,
            communication=(slowest_compute_s - compute_s) + max(0.0, self.exchange_s - hidden_s),
            update=self.knobs["update_s"],
            overhead=self.knobs["overhead_s"],
        )

    def bucket_sizes(self):
        """Bytes of each bucket; all full but the last."""
        left = self.message_bytes
        while left > 0:
            yield min(left, self.bucket_bytes)
            left -= self.bucket_bytes


def collective_s(operation, message_bytes, world_size, knobs):
    """What one collective operation takes, without jitter."""
    alpha_s, transfer_s = knobs["alpha_s"], message_bytes * knobs["beta_s_per_byte"]
    peers = world_size - 1
    if operation == "all_reduce":
        return 2 * peers * (alpha_s + transfer_s / world_size)
    if operation in ("all_gather", "reduce_scatter"):
        return peers * (alpha_s + transfer_s / world_size)
    if operation == "broadcast":
        return peers * (alpha_s + transfer_s)
    return alpha_s + transfer_s  # send_recv


def log_normal(sigma, draw):
    """A factor of mean 1 whose logarithm has the standard deviation sigma."""
    return math.exp(sigma * draw - sigma * sigma / 2)


class Jitter(object):
    """The factors of one rank, step after step."""

    def __init__(self, stream, sigma, correlation):
        # A text seed gives the same numbers on every Python from 3.2 on.
        self._random = random.Random(stream)
        self._sigma = sigma
        self._correlation = correlation
        self._state = None

    def draw(self):
        """The next factor."""
        fresh = self._random.gauss(0.0, 1.0)
        if self._state is None:
            # Begins in its stationary state, so that there is no transient to wait for.
            self._state = fresh
        else:
            kept = self._correlation
            self._state = kept * self._state + math.sqrt(1 - kept * kept) * fresh
        return log_normal(self._sigma, self._state)


def stream_name(seed, run_id, whose):
    """Names a stream of random numbers; `whose` is a rank, or WHOLE_RUN.

    The run's id holds trial and repeat: runs are as independent as real ones, so that statistics meet no false friends.
    """
    return "{}|{}|{}".format(seed, run_id, whose)


def run_factor(stream, sigma):
    """R: one more factor for the whole run."""
    return log_normal(sigma, random.Random(stream).gauss(0.0, 1.0))
