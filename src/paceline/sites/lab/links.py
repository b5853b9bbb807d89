"""Scripts for `ip` and `tc` that make the links between the hosts and the switch. Pure: `cluster` runs them."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.sites.lab.layout import BURST_S, LabHost, LabLink

DEVICE = "eth0"
"""The host's end of its link."""
QUEUE_S = 10e-3
LEAST_QUEUE = 512 * 1024
"""What the queue of a link holds: the bytes of so much time, and at least so many."""
NETEM_PACKETS = 100_000
"""netem holds a packet while it delays it, and drops what is beyond its limit."""


LARGEST_GSO = 65536
HEADROOM = 2 * 1514
"""Bytes between the largest packet that TCP hands down and the size of the bucket, which counts headers too."""


def port(number: int) -> str:
    """The switch's end of a host's link."""
    return f"p{number}"


def burst_bytes(rate_bytes_per_s: float, burst_s: float = BURST_S) -> int:
    """Bytes that pass at once before the rate holds: those of 2 ms, and never less than a few packets.

    Measured on two cores of a busy virtual machine: TCP payload over the rate that was asked for. Headers leave 0.956.

        100 Mbit/s   8 kB 0.96   25 kB 0.96   64 kB 0.96
        300 Mbit/s   8 kB 0.96   25 kB 0.96   75 kB 0.96
        1 Gbit/s    64 kB 0.92  128 kB 0.94  250 kB 0.95
        2.5 Gbit/s 250 kB 0.95  625 kB 0.93  1.2 MB 0.94

    This holds as long as the packets that TCP hands down fit into the bucket, which `host_script` ensures. The kernel
    splits larger ones: 300 Mbit/s then got 0.34 with 8 kB and 0.61 with 25 kB, and 100 Mbit/s took 20 µs of softirq
    per kilobyte instead of 3.
    """
    return max(8 * 1024, int(rate_bytes_per_s * burst_s))


def shaping(device: str, link: LabLink, *, netem: bool) -> list[str]:
    """Lines for `tc -batch` that limit what leaves a device to the rate of the link, and with `netem` delay it."""
    lines, parent = [], "root"
    if netem and link.delay_s:
        jitter = f" {link.jitter_s * 1e6:.0f}us" if link.jitter_s else ""
        delay = f"netem limit {NETEM_PACKETS} delay {link.delay_s * 1e6:.0f}us{jitter}"
        lines.append(f"qdisc add dev {device} root handle 1: {delay}")
        parent = "parent 1:1"
    if rate := link.rate_bytes_per_s:
        burst = burst_bytes(rate, link.burst_s)
        # Room for all bytes in flight: a single sender loses none. Several senders to one host do, as at a real switch.
        queue = max(LEAST_QUEUE, 4 * burst, int(rate * (QUEUE_S + 4 * link.delay_s)))
        bucket = f"tbf rate {rate * 8:.0f}bit burst {burst} limit {queue}"
        lines.append(f"qdisc add dev {device} {parent} handle 10: {bucket}")
    return lines


def switch_script(
    hosts: Sequence[LabHost], inits: Sequence[int], link: LabLink, spine: LabLink | None, *, taps: bool, netem: bool
) -> str:
    """Make bridges, ports and the spine in the namespace of the switch. With `taps` the ports are there already."""
    racks = sorted({host.rack for host in hosts})
    ip = [f"link add rack{rack} type bridge stp_state 0 forward_delay 0 mcast_snooping 0" for rack in racks]
    tc = []
    for number, (host, init) in enumerate(zip(hosts, inits, strict=True)):
        if not taps:
            ip.append(f"link add {port(number)} type veth peer name {DEVICE} netns {init}")
        ip += [f"link set {port(number)} master rack{host.rack}", f"link set {port(number)} up"]
        tc += shaping(port(number), link, netem=netem)
    if spine and len(racks) > 1:
        ip.append("link add spine0 type veth peer name spine1")
        for rack in racks:
            ip += [f"link set spine{rack} master rack{rack}", f"link set spine{rack} up"]
            tc += shaping(f"spine{rack}", spine, netem=netem)
    ip += [f"link set rack{rack} up" for rack in racks]
    return _script(ip, tc)


def host_script(host: LabHost, link: LabLink, *, netem: bool) -> str:
    """Give the host's end of its link an address and a rate, in the namespace of the host."""
    ip = [f"address add {host.address}/24 dev {DEVICE}", f"link set {DEVICE} up"]
    if link.rate_bytes_per_s:
        largest = min(LARGEST_GSO, burst_bytes(link.rate_bytes_per_s, link.burst_s) - HEADROOM)
        ip.append(f"link set {DEVICE} gso_max_size {largest}")
    return _script(ip, shaping(DEVICE, link, netem=netem))


def _script(ip: Sequence[str], tc: Sequence[str]) -> str:
    """A shell script that gives each program all of its lines at once: starting the programs is what takes the time."""
    filled = [(program, lines) for program, lines in (("ip", ip), ("tc", tc)) if lines]
    return "\n".join(f"{program} -batch - <<'END'\n" + "\n".join(lines) + "\nEND" for program, lines in filled)
