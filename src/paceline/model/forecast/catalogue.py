"""Data-sheet figures of devices and interconnects, for predictions without any measurement.

Peaks are for dense arithmetic at boost clocks; bandwidths are one way. `guess.REACHED` says which fraction of a peak
training is assumed to reach.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.errors import SpecError, did_you_mean


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """A processor that can train a model."""

    name: str
    fp32_flops: float
    """Peak fp32 operations per second, without tensor cores."""
    memory_bytes_per_s: float
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Interconnect:
    """A link between devices or hosts."""

    name: str
    bytes_per_s: float
    """Line rate, one way."""
    source: str


NVIDIA = "NVIDIA data sheet"

DEVICES = {
    device.name: device
    for device in (
        # Figures for one of the two processors on the board.
        Device(
            name="K80",
            fp32_flops=4.37e12,
            memory_bytes_per_s=240e9,
            source=f"{NVIDIA}, Tesla K80, 2015: 8.73 Tflop/s and 480 GB/s for two processors",
        ),
        Device(
            name="P100-PCIe",
            fp32_flops=9.3e12,
            memory_bytes_per_s=732e9,
            source=f"{NVIDIA}, Tesla P100 PCIe, 2016",
        ),
        Device(
            name="P100-SXM2",
            fp32_flops=10.6e12,
            memory_bytes_per_s=732e9,
            source=f"{NVIDIA}, Tesla P100 SXM2, 2016",
        ),
        Device(
            name="V100-PCIe",
            fp32_flops=14e12,
            memory_bytes_per_s=900e9,
            source=f"{NVIDIA}, Tesla V100, 2017",
        ),
        Device(
            name="V100-SXM2",
            fp32_flops=15.7e12,
            memory_bytes_per_s=900e9,
            source=f"{NVIDIA}, Tesla V100, 2017",
        ),
        Device(
            name="T4",
            fp32_flops=8.1e12,
            memory_bytes_per_s=300e9,
            source=f"{NVIDIA}, T4, 2018",
        ),
        Device(
            name="A100-40GB",
            fp32_flops=19.5e12,
            memory_bytes_per_s=1555e9,
            source=f"{NVIDIA}, A100 SXM, 2020",
        ),
        Device(
            name="A100-80GB",
            fp32_flops=19.5e12,
            memory_bytes_per_s=2039e9,
            source=f"{NVIDIA}, A100 80GB SXM, 2021",
        ),
        Device(
            name="H100-SXM",
            fp32_flops=67e12,
            memory_bytes_per_s=3350e9,
            source=f"{NVIDIA}, H100 SXM, 2022, without sparsity",
        ),
        Device(
            name="H100-PCIe",
            fp32_flops=51e12,
            memory_bytes_per_s=2000e9,
            source=f"{NVIDIA}, H100 PCIe, 2022, without sparsity",
        ),
    )
}

ETHERNET, INFINIBAND, PCI_SIG = "IEEE 802.3", "InfiniBand Trade Association", "PCI-SIG"
INTERCONNECTS = {
    link.name: link
    for link in (
        Interconnect(name="100Mbit", bytes_per_s=12.5e6, source=ETHERNET),
        Interconnect(name="1GbE", bytes_per_s=125e6, source=ETHERNET),
        Interconnect(name="10GbE", bytes_per_s=1.25e9, source=ETHERNET),
        Interconnect(name="25GbE", bytes_per_s=3.125e9, source=ETHERNET),
        Interconnect(name="100GbE", bytes_per_s=12.5e9, source=ETHERNET),
        Interconnect(name="FDR", bytes_per_s=6.8e9, source=f"{INFINIBAND}: 54.5 Gbit/s on 4 lanes"),
        Interconnect(name="EDR", bytes_per_s=12.1e9, source=f"{INFINIBAND}: 97 Gbit/s on 4 lanes"),
        Interconnect(name="HDR", bytes_per_s=24.2e9, source=f"{INFINIBAND}: 194 Gbit/s on 4 lanes"),
        Interconnect(name="NDR", bytes_per_s=48.5e9, source=f"{INFINIBAND}: 388 Gbit/s on 4 lanes"),
        Interconnect(name="PCIe3", bytes_per_s=15.75e9, source=f"{PCI_SIG}: 16 lanes"),
        Interconnect(name="PCIe4", bytes_per_s=31.5e9, source=f"{PCI_SIG}: 16 lanes"),
        Interconnect(name="PCIe5", bytes_per_s=63e9, source=f"{PCI_SIG}: 16 lanes"),
        Interconnect(name="NVLink2", bytes_per_s=150e9, source=f"{NVIDIA}: 6 links of a V100"),
        Interconnect(name="NVLink3", bytes_per_s=300e9, source=f"{NVIDIA}: 12 links of an A100"),
        Interconnect(name="NVLink4", bytes_per_s=450e9, source=f"{NVIDIA}: 18 links of an H100"),
    )
}


def device(name: str) -> Device:
    """Return the device with this name.

    Raises:
        SpecError: The name is unknown; the hint names the nearest ones.
    """
    if name not in DEVICES:
        raise SpecError(f"unknown device {name!r}", hint=did_you_mean(name, DEVICES))
    return DEVICES[name]
