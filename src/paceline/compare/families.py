"""Groups rows that differ only in their size; each group is one scaling curve. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.compare.comparison import Comparison
from paceline.compare.rows import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingFamily:
    """The rows of one scaling curve."""

    base: Row
    """The row that the efficiency refers to."""
    network: str | None
    """The emulated links between its hosts; None if they are not emulated or there is only one host."""
    rows: tuple[Row, ...]
    """The rows with numbers, including the base, smallest first."""

    @property
    def key(self) -> str:
        """The key of the family."""
        return f"{self.base.key} {self.network}" if self.network else self.base.key


def families(comparison: Comparison) -> list[ScalingFamily]:
    """Returns every family with at least two sizes. A single host has no network and belongs to the curve of each."""
    by_base: dict[str, list[Row]] = {}
    for row in comparison.rows:
        if row.base is not None and row.throughput is not None:
            by_base.setdefault(row.base, []).append(row)
    curves = []
    for base, rows in by_base.items():
        named = dict.fromkeys(row.network for row in rows if row.network is not None)
        for network in named or (None,):
            members = sorted((row for row in rows if row.network in {None, network}), key=lambda row: row.workers)
            if len({row.workers for row in members}) > 1:
                curves.append(ScalingFamily(base=comparison.row(base), network=network, rows=tuple(members)))
    return curves
