"""What an agent can be asked to do."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from paceline.sites.remote.agent.channel import Channel
from paceline.sites.remote.agent.counters import cpu_counters, traffic
from paceline.sites.remote.agent.files import frames, listing, missing, take
from paceline.sites.remote.agent.host_facts import host_facts
from paceline.sites.remote.agent.ports import free_ports
from paceline.sites.remote.agent.processes import StartedProcesses, run_to_end
from paceline.sites.remote.agent.usage import UsageReader


class HostService:
    """One method per request, with the request's fields as arguments; each returns the answer.

    `sites.remote.requests` is the other side, and says what the answers hold.
    """

    def __init__(self, channel: Channel, tether: str) -> None:
        """Args: tether: source of the program that ties another one to its parent."""
        self._channel = channel
        self._processes = StartedProcesses(tether, self._tell_end)
        self._usage = UsageReader()

    def hello(self) -> dict[str, object]:
        return host_facts(self._channel.own_address)

    def clock(self) -> dict[str, object]:
        return {"unix_s": time.time()}

    def ports(self, count: int, address: str) -> dict[str, object]:
        return {"ports": free_ports(count, address)}

    def missing(self, digests: Mapping[str, str]) -> dict[str, object]:
        return {"paths": missing(digests)}

    def put(self, path: str, mode: int) -> dict[str, object]:
        """Take a file; its bytes follow the request, then an empty frame."""
        take(path, mode, self._channel.receive)
        return {}

    def listing(self, folder: str) -> dict[str, object]:
        return {"digests": listing(folder)}

    def get(self, path: str) -> dict[str, object]:
        """Give a file; its bytes follow the answer, then an empty frame."""
        return {"size": os.path.getsize(path), "follows": frames(path)}

    def run(self, argv: Sequence[str], env: Mapping[str, str], timeout_s: float) -> dict[str, object]:
        code, text = run_to_end(argv, env, timeout_s)
        return {"code": code, "text": text}

    def start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str], folder: str, cores: Sequence[int]
    ) -> dict[str, object]:
        return {"pid": self._processes.start(name, argv, env, folder, cores)}

    def usage(self) -> dict[str, object]:
        return {"processes": self._usage.usage(self._processes.running()), **traffic()}

    def counters(self) -> dict[str, object]:
        return {**cpu_counters()}

    def stop(self) -> dict[str, object]:
        return {"stuck": self._processes.stop()}

    def _tell_end(self, name: str, pid: int, code: int) -> None:
        with contextlib.suppress(OSError):
            self._channel.send({"ended": name, "pid": pid, "code": code})
