"""A record: the facts of one run. Written once, never edited; everything else is derived from it again.

Samples are columns (pyarrow), one row per rank and step: `rank, step, kind, start_s, wall_s, cpu_s, loss`, one
`phase.<name>` column a phase; `starved_s`, how long the main thread waited for a core, where the system tells; and of a
collective `bytes`, the size of the step's message.
Layer times are a table of their own: `rank, layer, what, step, seconds`; so are the meter's looks, see `meter`, and
what a user's program printed, see `output`. Of a recorded run these series lie in files and are read at the first look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Final, Literal

import pyarrow as pa

from paceline.plan.pace import Pace
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import PhasesBy
from paceline.record.doubt_codes import DoubtCode
from paceline.record.facts import InputFacts, RankFacts
from paceline.record.machines import Machine
from paceline.record.on_demand import OnDemand, SeriesFile
from paceline.record.sample_files import SERIES

SCHEMA_VERSION = 2
"""Version of what is stored; `migrate` knows the steps from each earlier one."""
RecordKind = Literal["measurement", "proof"]
"""proof: a run that shows what is computed and whose times mean nothing."""
MEASUREMENT: Final = "measurement"
PROOF: Final = "proof"


class OutcomeKind(str, Enum):
    """How a run ended."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended, and if not well: where and why."""

    kind: OutcomeKind
    """The word."""
    stage: str | None = None
    """How far it came, in words that follow the outcome: "during setup", "after step 12" …; None when ok."""
    reason: str | None = None
    """One sentence."""
    rank: int | None = None
    """The rank that failed first, where that is known."""
    log_tail: tuple[str, ...] = ()
    """Last lines that it wrote."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A warning that belongs to a number, kept and shown with it."""

    code: DoubtCode
    message: str
    """What was seen, with the number."""
    hint: str = ""
    """What to do about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rank:
    """Facts of one rank."""

    rank: int
    host: str
    cores: tuple[int, ...]
    exit_code: int | None = None
    """None: it never started."""
    framework_version: str | None = None
    python: str | None = None
    parameters: int | None = None
    """Trainable parameters that the framework counted."""
    setup_s: float | None = None
    """Process start to first step."""
    peak_rss_bytes: float | None = None
    cpu_s: float | None = None
    """CPU time of the whole process."""
    clock_origin_s: float | None = None
    """Unix time of this rank's clock at which its `start_s` is zero; what ranks of several hosts are aligned by."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the adapter reports of itself: threads, buckets, BLAS, compile time …"""
    notes: tuple[str, ...] = ()
    """What it wanted the user to know."""

    @property
    def reported(self) -> RankFacts:
        """Its facts, each by name with its type."""
        return RankFacts(self.facts)


@dataclass(frozen=True, kw_only=True)
class Record:
    """Facts of one run. Without slots: a series that is read at the first look has to be put somewhere."""

    run_id: str
    """Trial id, repeat and attempt, e.g. torch-ddp.resnet20.b32.2w1t-9f3c1a2b.r2.a0."""
    trial: Trial
    study: str
    """Name of the study it was run for."""
    repeat: int
    """Which repeat of the trial; also the round in which it was interleaved with others."""
    attempt: int
    """0, or more after `run --retry-failed`."""
    started: float
    """Unix time."""
    elapsed_s: float
    """Wall time of the run, set-up included."""
    outcome: Outcome
    ranks: tuple[Rank, ...]
    machine: Mapping[str, Any]
    """Who and what the machine is that commanded the run; "id" tells machines apart."""
    state: Mapping[str, Any]
    """Load, pressure and frequency before, during and after; the host's own CPU use."""
    environment: Mapping[str, Any]
    """Fingerprint: name, lock, python, packages seen."""
    resources: Mapping[str, Any]
    """Of the meter: its period and the network counters; what it saw of each process is the series `meter`."""
    inputs: Mapping[str, Any]
    """Checksums of the graph, the initial weights and the data."""
    doubts: tuple[Doubt, ...]
    """Warnings found when the numbers checked themselves."""
    paceline: str
    """Version that made it."""
    kind: RecordKind = MEASUREMENT
    """What sort of facts."""
    phases_by: PhasesBy = "timers"
    hosts: tuple[Mapping[str, Any], ...] = ()
    """Every host of the run: name, address, cores; and what the site tells of itself under "site" in `state`."""
    machines: tuple[Machine, ...] = ()
    """The machine behind each of `hosts`, as far as it is known: what worked, not what commanded."""
    schema_version: int = SCHEMA_VERSION
    samples: OnDemand = field(default=OnDemand(), compare=False)
    """Raw samples; None when no step was taken, or the file is not what was written."""
    layers: OnDemand = field(default=OnDemand(), compare=False)
    """Layer times, where they were asked for."""
    meter: OnDemand = field(default=OnDemand(), compare=False)
    """What the meter saw of each process; None when none was started."""
    output: OnDemand = field(default=OnDemand(), compare=False)
    """What a user's program printed last, in each process: see `record.output`; None where nothing was kept."""

    @property
    def ok(self) -> bool:
        return self.outcome.kind is OutcomeKind.OK

    @property
    def pace(self) -> Pace:
        """What the site did to time on purpose, as the site tells it."""
        return Pace.of(self.state.get("site") or {})

    @property
    def reported(self) -> RankFacts:
        """Facts of rank 0, of which what all ranks agree on is read; without any rank nothing is reported."""
        return self.ranks[0].reported if self.ranks else RankFacts({})

    @property
    def input_facts(self) -> InputFacts:
        """What is known of what it trained, each by name with its type."""
        return InputFacts(self.inputs)

    def to_json(self) -> dict[str, Any]:
        """All but the series, which are stored as columns."""
        plain = {"trial", "outcome", "ranks", "doubts", "machines", *SERIES}
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in plain}
        data["trial"] = self.trial.to_json()
        data["outcome"] = asdict(self.outcome) | {"kind": self.outcome.kind.value}
        data["hosts"] = [dict(host) for host in self.hosts]
        data["machines"] = [asdict(machine) for machine in self.machines]
        data["ranks"] = [asdict(rank) for rank in self.ranks]
        data["doubts"] = [asdict(doubt) for doubt in self.doubts]
        return data

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        *,
        trial: Trial | None = None,
        doubts: tuple[Doubt, ...] = (),
        series: Mapping[str, pa.Table | SeriesFile] | None = None,
    ) -> Record:
        """The record that `to_json` told of.

        Args:
            data: what `to_json` made.
            trial: its trial, where that is known already and not in `data`.
            doubts: further ones.
            series: its tables, or the files in which they lie, by name.
        """
        plain = dict(data)
        outcome = dict(plain.pop("outcome"))
        outcome["kind"] = OutcomeKind(outcome["kind"])
        outcome["log_tail"] = tuple(outcome["log_tail"])
        told = plain.pop("trial", None)
        plain["trial"] = trial or Trial.from_json(told)
        plain["hosts"] = tuple(plain.get("hosts", ()))
        plain["machines"] = tuple(Machine(**machine) for machine in plain.get("machines", ()))
        plain["ranks"] = tuple(
            Rank(**{**rank, "cores": tuple(rank["cores"]), "notes": tuple(rank["notes"])}) for rank in plain["ranks"]
        )
        plain["doubts"] = (*(Doubt(**doubt) for doubt in plain["doubts"]), *doubts)
        return cls(**{**plain, **(series or {})}, outcome=Outcome(**outcome))
