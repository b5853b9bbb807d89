"""A record: the facts of one run. It is written once and never edited; all other numbers are derived from it.

Samples are a table (pyarrow) with one row per rank and step: `rank, step, kind, start_s, wall_s, cpu_s, loss`, and one
column `phase.<name>` per phase. If the system reports it, `starved_s` is the time that the main thread waited for a
core. For a collective, `bytes` is the size of the message of the step.
Layer times are a table of their own: `rank, layer, what, step, seconds`. So are the looks of the meter, see `meter`,
and what a user's program printed, see `output`.
These series of a recorded run are stored in files and read at the first access.
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
from paceline.record.fact import section
from paceline.record.facts import InputFacts, RankFacts
from paceline.record.machines import Machine, MachineFacts
from paceline.record.on_demand import OnDemand, SeriesFile
from paceline.record.sample_files import SERIES

SCHEMA_VERSION = 2
"""The version of the stored form; `migrate` has the steps from each earlier one."""
RecordKind = Literal["measurement", "proof"]
"""proof: a run of the fairness proof; it shows what is computed, and its times are not used."""
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
    """How a run ended, and where and why if it did not end well."""

    kind: OutcomeKind
    stage: str | None = None
    """How far the run came, as words that follow the outcome: "during setup", "after step 12"; None if it is ok."""
    reason: str | None = None
    """The reason, in one sentence."""
    rank: int | None = None
    """The rank that failed first, if it is known."""
    log_tail: tuple[str, ...] = ()
    """The last lines that this rank wrote."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """Returns the outcome that a stored record describes."""
        return cls(**{**data, "kind": OutcomeKind(data["kind"]), "log_tail": tuple(data["log_tail"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A warning about a number, which is stored and shown with it."""

    code: DoubtCode
    message: str
    """What was seen, with its value."""
    hint: str = ""
    """What to do about it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rank:
    """Facts of one rank."""

    rank: int
    host: str
    cores: tuple[int, ...]
    exit_code: int | None = None
    """None if the process never started."""
    framework_version: str | None = None
    python: str | None = None
    parameters: int | None = None
    """The trainable parameters that the framework counted."""
    setup_s: float | None = None
    """The time from the start of the process to its first step."""
    peak_rss_bytes: float | None = None
    cpu_s: float | None = None
    """The CPU time of the whole process."""
    clock_origin_s: float | None = None
    """The Unix time, by the clock of this rank, at which its `start_s` is zero; it aligns ranks of several hosts."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What the adapter reports about itself, such as threads, buckets, BLAS and compile time."""
    notes: tuple[str, ...] = ()
    """Messages of the adapter to the user."""

    @property
    def reported(self) -> RankFacts:
        """The facts, each by its name and with its type."""
        return RankFacts(self.facts)


@dataclass(frozen=True, kw_only=True)
class Record:
    """The facts of one run. It has no slots, because `OnDemand` keeps a series that it has read in `__dict__`."""

    run_id: str
    """The trial id, repeat and attempt, e.g. torch-ddp.resnet20.b32.2w1t-9f3c1a2b.r2.a0."""
    trial: Trial
    study: str
    """The name of the study that it was run for."""
    repeat: int
    """The repeat of the trial, which is also the round in which it was interleaved with other trials."""
    attempt: int
    """0 for the first attempt, more after `run --retry-failed`."""
    started: float
    """The Unix time of the start."""
    elapsed_s: float
    """The wall time of the run, including its set-up."""
    outcome: Outcome
    ranks: tuple[Rank, ...]
    machine: MachineFacts
    """The machine that started the run."""
    state: Mapping[str, object]
    """The load, pressure and frequency before, during and after the run, and the CPU use of the host itself."""
    environment: Mapping[str, object]
    """The environment as it was seen: name, lock, Python and packages."""
    resources: Mapping[str, object]
    """The period of the meter and the network counters; the use of each process is the series `meter`."""
    inputs: Mapping[str, object]
    """What was trained: checksums of the graph, the initial weights and the data, and the size of the model."""
    doubts: tuple[Doubt, ...]
    """The warnings that the checks of the numbers gave."""
    paceline: str
    """The version of Paceline that made the record."""
    kind: RecordKind = MEASUREMENT
    """Whether the run was a measurement or part of the fairness proof."""
    phases_by: PhasesBy = "timers"
    hosts: tuple[Mapping[str, object], ...] = ()
    """Name, address and cores of every host of the run. What the site reports about itself is "site" in `state`."""
    machines: tuple[Machine, ...] = ()
    """The machine behind each of `hosts`, as far as it is known."""
    schema_version: int = SCHEMA_VERSION
    samples: OnDemand = field(default=OnDemand(), compare=False)
    """The raw samples; None if no step was taken, or if their file is missing or damaged."""
    layers: OnDemand = field(default=OnDemand(), compare=False)
    """The layer times, if the study asked for them."""
    meter: OnDemand = field(default=OnDemand(), compare=False)
    """What the meter saw of each process; None if no process was started."""
    output: OnDemand = field(default=OnDemand(), compare=False)
    """The end of what each process of a user's program printed, see `record.output`; None if nothing was kept."""

    @property
    def ok(self) -> bool:
        return self.outcome.kind is OutcomeKind.OK

    @property
    def pace(self) -> Pace:
        """The pace of the emulated hosts, as the site reports it."""
        return Pace.of(section(self.state, "site"))

    @property
    def reported(self) -> RankFacts:
        """The facts of rank 0, for facts that are the same on all ranks; without any rank, nothing is reported."""
        return self.ranks[0].reported if self.ranks else RankFacts({})

    @property
    def input_facts(self) -> InputFacts:
        """The facts about the trained model, each by its name and with its type."""
        return InputFacts(self.inputs)

    def to_json(self) -> dict[str, object]:
        """Returns everything except the series, which are stored as tables."""
        plain = {"trial", "outcome", "ranks", "doubts", "machines", *SERIES}
        data: dict[str, object] = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in plain}
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
        """Returns the record that `to_json` describes.

        Args:
            data: the result of `to_json`.
            trial: the trial, if it is not in `data`.
            doubts: further doubts.
            series: name → the table of a series, or the file that contains it.
        """
        plain = dict(data)
        plain["outcome"] = Outcome.from_json(plain["outcome"])
        stored_trial = plain.pop("trial", None)
        plain["trial"] = trial or Trial.from_json(stored_trial)
        plain["hosts"] = tuple(plain.get("hosts", ()))
        plain["machines"] = tuple(Machine(**machine) for machine in plain.get("machines", ()))
        plain["ranks"] = tuple(
            Rank(**{**rank, "cores": tuple(rank["cores"]), "notes": tuple(rank["notes"])}) for rank in plain["ranks"]
        )
        plain["doubts"] = (*(Doubt(**doubt) for doubt in plain["doubts"]), *doubts)
        return cls(**{**plain, **(series or {})})
