"""Rows that differ in their size alone: what a scaling curve is drawn through. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.compare.comparison import Comparison
from paceline.compare.rows import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingFamily:
    """One curve."""

    base: Row
    """The row that efficiency refers to."""
    network: str | None
    """Links between its hosts; None: as they are, or there is only one host."""
    rows: tuple[Row, ...]
    """Those with numbers, smallest first; the base among them."""

    @property
    def key(self) -> str:
        """Names the family."""
        return f"{self.base.key} {self.network}" if self.network else self.base.key


def families(comparison: Comparison) -> list[ScalingFamily]:
    """Every family with at least two sizes. A host that is alone has no network, and stands for itself on all."""
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
