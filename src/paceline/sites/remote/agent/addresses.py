"""Network devices of a host and their IPv4 addresses."""

from __future__ import annotations

import fcntl
import socket
import struct

SIOCGIFADDR = 0x8915


def addresses() -> dict[str, str]:
    """Device → its address, for all devices that have one but the loopback."""
    by_device = {name: _address_of(name) for _, name in socket.if_nameindex() if name != "lo"}
    return {name: address for name, address in by_device.items() if address}


def device_with(address: str) -> str | None:
    """The device that has this address."""
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == address), None)


def _address_of(device: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", device.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(request[20:24])
