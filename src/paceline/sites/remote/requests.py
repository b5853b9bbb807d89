"""Everything that an agent can be asked, with the types of its answers: the only place that knows their keys.

`agent.service` is the other side.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paceline.errors import SiteError
from paceline.sites.base import BusyCounter, HostAnswer, ProcessUsage
from paceline.sites.remote.agent.files import FRAME
from paceline.sites.remote.agent.processes import GRACE_S, REAP_S
from paceline.sites.remote.link import ANSWER_S, Answer, Link

TRIPS = 8
"""Questions for the time when clocks are compared; the one with the shortest round trip is believed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostFacts:
    """What a host tells of itself."""

    name: str
    address: str
    """Where its processes are reached by the others."""
    interface: str | None
    """The network device that has this address."""
    pid: int
    """Process id of the agent."""
    python: str
    """Version of the Python that runs the agent."""
    cores: tuple[int, ...]
    """Cores that its processes may use, in the order in which they are given out."""
    machine: str
    """Architecture of its CPU."""
    cpu_model: str | None
    kernel: str
    memory_bytes: int
    addresses: Mapping[str, str]
    """Network device → address."""

    @classmethod
    def of(cls, answer: Answer) -> HostFacts:
        return cls(**{**answer, "cores": tuple(answer["cores"])})


@dataclass(frozen=True, kw_only=True, slots=True)
class HostUsage:
    """What the processes of a run on one host have used so far, and what its network devices have carried."""

    processes: Mapping[str, ProcessUsage] = field(default_factory=dict)
    sent_bytes: int = 0
    received_bytes: int = 0

    @classmethod
    def of(cls, answer: Answer) -> HostUsage:
        processes = {name: ProcessUsage(**used) for name, used in answer["processes"].items()}
        return cls(processes=processes, sent_bytes=answer["sent_bytes"], received_bytes=answer["received_bytes"])


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockOffset:
    """How far a host's clock is ahead of ours."""

    offset_s: float
    error_s: float
    """Half of the round trip: the truth lies within."""


class Agent(Link):
    """One host that is another machine, by way of the agent that runs there.

    All methods that ask it raise a SiteError when the host is gone, does not answer, or could not do what was asked.
    """

    def __init__(self, receive: Callable[[], bytes], send: Callable[[bytes], None], close: Callable[[], None]) -> None:
        super().__init__(receive, send, close)
        self.delivered: set[tuple[str, int, int]] = set()
        """Files that are there: path, size and time of change."""
        self._usage = (float("-inf"), HostUsage())
        self.about = HostFacts.of(self.ask("hello"))
        self.name = self.about.name

    def unix_time(self) -> float:
        """The time of its clock."""
        return float(self.ask("clock")["unix_s"])

    def clock_offset(self) -> ClockOffset:
        """Compare clocks: the host told its time somewhere between question and answer."""
        best = None
        for _ in range(TRIPS):
            asked, began = time.time(), time.monotonic()
            its_time = self.unix_time()
            trip = time.monotonic() - began
            if best is None or trip < 2 * best.error_s:
                best = ClockOffset(offset_s=its_time - (asked + trip / 2), error_s=trip / 2)
        assert best is not None
        return best

    def free_ports(self, count: int, address: str) -> tuple[int, ...]:
        """Ports of one of its addresses that are free now."""
        return tuple(self.ask("ports", count=count, address=address)["ports"])

    def missing(self, digests: Mapping[str, str | None]) -> list[str]:
        """The paths at which it has no file with the wanted digest, as it says."""
        return list(self.ask("missing", digests=dict(digests))["paths"])

    def put(self, path: Path) -> None:
        """Bring a file there, to the same path."""
        status = path.stat()
        with path.open("rb") as file:
            frames = iter(lambda: file.read(FRAME), b"")
            # As many frames as come, then an empty one: a file may be longer than its size says.
            self.ask("put", path=str(path), mode=status.st_mode & 0o777, follows=itertools.chain(frames, [b""]))

    def listing(self, folder: Path) -> dict[str, str | None]:
        """Path within a folder → digest, for all files that it has there, as it says."""
        return dict(self.ask("listing", folder=str(folder))["digests"])

    def get(self, path: str, into: Path) -> None:
        """Bring a file from there."""
        self.ask("get", path=path, into=into)

    def run(self, argv: Sequence[str], env: Mapping[str, str], *, within_s: float) -> HostAnswer:
        """Run a program to its end."""
        answer = self.ask("run", argv=list(argv), env=dict(env), timeout_s=within_s, within_s=within_s + ANSWER_S)
        return HostAnswer(host=self.name, code=answer["code"], text=answer["text"])

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], folder: Path, cores: Sequence[int]) -> int:
        """Start a program that ends with the agent; its process id."""
        answer = self.ask("start", name=name, argv=list(argv), env=dict(env), folder=str(folder), cores=list(cores))
        return int(answer["pid"])

    def stop(self) -> list[str]:
        """End everything that was started there; the names of what the kernel would not let go."""
        return list(self.ask("stop", within_s=GRACE_S + REAP_S + ANSWER_S)["stuck"])

    def counters(self) -> BusyCounter:
        """CPU seconds of the whole host."""
        return BusyCounter(**self.ask("counters"))

    def fresh_usage(self, within_s: float) -> HostUsage:
        """What its processes and devices have used, not older than this; of a host that is gone the last answer."""
        asked_at, usage = self._usage
        if time.monotonic() - asked_at > within_s and not self.lost:
            with contextlib.suppress(SiteError):
                usage = HostUsage.of(self.ask("usage"))
            self._usage = (time.monotonic(), replace(usage, processes={}) if self.lost else usage)
        return self._usage[1]
