"""What a host tells of itself when it is first asked."""

from __future__ import annotations

import os
import platform
import socket

from paceline.sites.remote.agent.addresses import addresses, device_with
from paceline.sites.remote.agent.cores import usable_cores
from paceline.sites.remote.agent.kernel_files import PAGE_BYTES, value_in


def host_facts(own_address: str | None) -> dict[str, object]:
    """Args: own_address: where this host was reached; None: ssh may know it."""
    own_addresses = addresses()
    by_ssh = os.environ.get("SSH_CONNECTION", "").split()[2:3]
    # Of several addresses the one by which this host was reached: its peers will reach it there too.
    address = own_address or [*by_ssh, *own_addresses.values(), "127.0.0.1"][0]
    return {
        "name": socket.gethostname(),
        "address": address,
        "interface": device_with(address),
        "pid": os.getpid(),
        "python": platform.python_version(),
        "cores": usable_cores(),
        "machine": platform.machine(),
        "cpu_model": value_in("/proc/cpuinfo", "model name"),
        "kernel": platform.release(),
        "memory_bytes": PAGE_BYTES * os.sysconf("SC_PHYS_PAGES"),
        "addresses": own_addresses,
    }
