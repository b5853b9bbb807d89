"""Conditions that follow the same formulas, stacked so that one evaluation computes all of them. Plain data.

The equations take many configurations and many parameter vectors at once, because a fit evaluates every trial for
every parameter. An array of seconds has one row per configuration and one column per vector; an array of messages has
the messages of a step as its third axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.model.equations.arrays import Bools, Floats
from paceline.model.equations.conditions import Conditions
from paceline.plan.vocabulary import Exchange, Sharing


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    """Configurations that differ in numbers only; each field is a column with one number per configuration."""

    rows: tuple[Conditions, ...]
    workers: Floats
    hosts: Floats
    servers: Floats
    batch: Floats
    passes: Floats
    every: Floats
    bandwidth: Floats
    """Infinite if nothing limits the link: within one host, and on links without a limit."""
    latency_s: Floats
    prefetch: Bools
    sizes: Floats
    """Bytes of each message: configurations × 1 × messages."""
    fractions: Floats | None
    """Fraction of the backward pass after which each message is ready, in the shape of `sizes`; None if fitted."""

    @property
    def sharing(self) -> Sharing:
        return self.rows[0].sharing

    @property
    def exchange(self) -> Exchange:
        return self.rows[0].exchange

    @property
    def is_simulated(self) -> bool:
        return self.rows[0].is_simulated

    @property
    def exchanges(self) -> bool:
        """Whether workers exchange anything."""
        return _exchanges(self.rows[0])

    @property
    def overlaps(self) -> bool:
        """Whether messages are sent during the backward pass; averaged weights are sent after it."""
        return self.rows[0].every == 1

    @property
    def exchanged(self) -> Floats:
        """Bytes exchanged per step."""
        exchanged: Floats = self.sizes.sum(axis=-1)
        return exchanged


def stack_of(rows: Sequence[Conditions]) -> Stack:
    """Stack configurations that follow the same formulas (see `stacks_of`)."""
    first = rows[0]

    def column(number: Callable[[Conditions], float]) -> Floats:
        return np.array([[number(row)] for row in rows], dtype=np.float64)

    return Stack(
        rows=tuple(rows),
        workers=column(lambda row: row.workers),
        hosts=column(lambda row: row.hosts),
        servers=column(lambda row: max(1, row.servers)),
        batch=column(lambda row: row.batch),
        passes=column(lambda row: row.passes),
        every=column(lambda row: row.every),
        bandwidth=column(lambda row: np.inf if row.bandwidth is None or row.hosts < 2 else row.bandwidth),
        latency_s=column(lambda row: row.latency_s or 0.0),
        prefetch=np.array([[row.prefetch] for row in rows]),
        sizes=np.array([[row.messages] for row in rows], dtype=np.float64),
        fractions=None if first.fractions is None else np.array([[row.fractions] for row in rows], dtype=np.float64),
    )


def stacks_of(configurations: Sequence[Conditions]) -> list[tuple[list[int], Stack]]:
    """(places in the sequence, stack) of all configurations that follow the same formulas."""
    places: dict[tuple[object, ...], list[int]] = {}
    for place, conditions in enumerate(configurations):
        places.setdefault(_formulas(conditions), []).append(place)
    return [(group, stack_of([configurations[place] for place in group])) for group in places.values()]


def _formulas(conditions: Conditions) -> tuple[object, ...]:
    """What decides which formulas apply; the number of messages is part of it, because rows have equal lengths."""
    return (
        conditions.sharing,
        conditions.exchange,
        conditions.is_simulated,
        _exchanges(conditions),
        conditions.every == 1,
        conditions.fractions is None,
        len(conditions.messages),
    )


def _exchanges(conditions: Conditions) -> bool:
    return conditions.workers > 1 and bool(conditions.messages)
