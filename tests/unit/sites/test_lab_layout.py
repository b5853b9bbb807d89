"""What the lab should be, before anything is made: hosts, cores, shares, links, scripts, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.plan.trial import ClusterChoice
from paceline.sites.lab import cgroups
from paceline.sites.lab.cgroups import Bases, Groups, find_bases, quota_us
from paceline.sites.lab.faults import Fault, parse_fault
from paceline.sites.lab.layout import layout_of, refusal
from paceline.sites.lab.links import burst_bytes, host_script, switch_script
from paceline.sites.lab.site import KNOBS
from paceline.spec.networks import read_network
from paceline.spec.study import Network


def cluster(
    hosts: int = 2, network: Network | None = None, workers: int = 1, oversubscribe: bool = False, **options: Any
) -> ClusterChoice:
    return ClusterChoice(
        site="lab",
        hosts=hosts,
        workers_per_host=workers,
        threads_per_worker=1,
        device="cpu",
        network=network,
        oversubscribe=oversubscribe,
        options={name: knob.default for name, knob in KNOBS.items()} | options,
    )


def why(asked: ClusterChoice, cores: int = 2, quotas: bool = True, ceiling: float | None = None) -> str | None:
    return refusal(asked, cores=cores, quotas=quotas, ceiling=ceiling)


def test_hosts_are_dealt_over_the_cores_in_turn() -> None:
    hosts = layout_of(cluster(4, core_share=0.5), (0, 1)).hosts

    assert [host.cores for host in hosts] == [(0,), (1,), (0,), (1,)]
    assert [host.quota for host in hosts] == [0.5] * 4
    assert [(host.name, host.address) for host in hosts[:2]] == [("lab1", "10.77.0.1"), ("lab2", "10.77.0.2")]


def test_share_of_a_host_is_the_same_at_every_number_of_hosts() -> None:
    assert {layout_of(cluster(n, core_share=0.5), (0, 1)).hosts[0].quota for n in (1, 2, 4)} == {0.5}


def test_whole_cores_need_no_quota() -> None:
    assert layout_of(cluster(2), (0, 1)).hosts[0].quota is None


def test_host_with_two_workers_has_two_cores() -> None:
    assert [h.cores for h in layout_of(cluster(2, workers=2), (0, 1, 2, 3)).hosts] == [(0, 1), (2, 3)]


def test_dilation_slows_everything_alike() -> None:
    network = Network(bandwidth_bytes_per_s=100e6, latency_s=1e-3, jitter_s=0.2e-3)
    plain, slow = (layout_of(cluster(2, network, dilation=k), (0, 1)) for k in (1.0, 4.0))

    assert slow.hosts[0].quota == 0.25
    assert plain.link.rate_bytes_per_s == 100e6
    assert slow.link.rate_bytes_per_s == 25e6
    assert plain.round_trip_s == pytest.approx(2e-3)
    assert slow.round_trip_s == pytest.approx(8e-3)
    assert slow.link.rate_bytes_per_s * slow.link.burst_s == pytest.approx(100e6 * plain.link.burst_s)
    assert slow.link.jitter_s == pytest.approx(4 * plain.link.jitter_s)


def test_racks_are_joined_by_a_spine_as_fast_as_a_link_unless_said() -> None:
    network = Network(bandwidth_bytes_per_s=100e6)
    layout = layout_of(cluster(4, network, topology="racks", core_share=0.5), (0, 1))
    said = layout_of(cluster(4, network, topology="racks", core_share=0.5, spine_bandwidth=10e6), (0, 1))

    assert [host.rack for host in layout.hosts] == [0, 1, 0, 1]
    assert layout.spine is not None
    assert layout.spine.rate_bytes_per_s == 100e6
    assert said.spine is not None
    assert said.spine.rate_bytes_per_s == 10e6


@pytest.mark.parametrize(
    "asked, kept, words",
    [
        (
            cluster(4),
            {},
            r"4 hosts × 1 cores × a share of 1 want 4 cores, and there are 2.*core_share = 0.5.*dilation = 2",
        ),
        (cluster(2, core_share=0.5), {"quotas": False}, "run as root"),
        (cluster(2, fault="slow-host:lab1@3:2"), {"quotas": False}, "no host can be slowed"),
        (cluster(2, core_share=0.05), {}, "no less than 0.1"),
        (cluster(2, read_network("10GbE")), {"ceiling": 500e6}, r"10000 Mbit/s, .* true up to 4000 .*dilation = 3"),
        (cluster(2, spine_bandwidth=1e9), {"ceiling": 500e6}, "true up to 4000"),
        (cluster(2, fault="cut-wire:lab1@3"), {}, "should be one of none, cut-link"),
        (cluster(2, fault="cut-link:lab3@3"), {}, "hosts are called lab1 … lab2"),
    ],
)
def test_refusal_says_why_and_what_to_write(asked: ClusterChoice, kept: dict[str, Any], words: str) -> None:
    import re

    assert re.search(words, why(asked, **kept) or "")


def test_what_fits_is_not_refused() -> None:
    assert why(cluster(2)) is None
    assert why(cluster(4, core_share=0.5)) is None
    assert why(cluster(8, dilation=4.0)) is None
    assert why(cluster(4, oversubscribe=True)) is None
    assert why(cluster(2, read_network("1GbE")), ceiling=None) is None
    assert why(cluster(2, read_network("10GbE"), dilation=3.0), ceiling=500e6) is None


def test_faults_are_read() -> None:
    assert parse_fault("none") is None
    assert parse_fault("cut-link:lab2@30") == Fault(kind="cut-link", host="lab2", step=30)
    assert parse_fault("slow-host:lab1@3:2.5") == Fault(kind="slow-host", host="lab1", step=3, factor=2.5)


@pytest.mark.parametrize("text", ["slow-host:lab1@3", "kill-host:lab1@3:2", "slow-host:lab1@3:0.5", "kill-host:lab1"])
def test_wrong_faults_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fault"):
        parse_fault(text)


def test_both_ends_of_a_link_are_held_to_its_rate() -> None:
    layout = layout_of(cluster(2, Network(bandwidth_bytes_per_s=12.5e6)), (0, 1))
    switch = switch_script(layout.hosts, [11, 12], layout.link, None, taps=False, netem=False)
    host = host_script(layout.hosts[0], layout.link, netem=False)

    assert "link add p1 type veth peer name eth0 netns 12" in switch
    assert switch.count("tbf rate 100000000bit") == 2
    assert host.count("tbf rate 100000000bit") == 1


def test_netem_delays_before_the_bucket_where_the_kernel_has_it() -> None:
    layout = layout_of(cluster(2, Network(bandwidth_bytes_per_s=12.5e6, latency_s=2e-3, jitter_s=1e-3)), (0, 1))
    script = host_script(layout.hosts[0], layout.link, netem=True)

    assert "root handle 1: netem limit 100000 delay 1000us 500us" in script
    assert "parent 1:1 handle 10: tbf" in script


def test_devices_of_the_delay_line_are_not_made_again() -> None:
    layout = layout_of(cluster(4, topology="racks", core_share=0.5), (0, 1))
    script = switch_script(layout.hosts, [1, 2, 3, 4], layout.link, layout.spine, taps=True, netem=False)

    assert "eth0" not in script
    assert "link set p3 master rack1" in script
    assert "link set spine1 master rack1" in script


def test_burst_grows_with_the_rate_and_holds_a_few_packets() -> None:
    assert burst_bytes(1e5) >= 3 * 1514
    assert burst_bytes(125e6) >= 240e3


@pytest.mark.parametrize(
    "cores, expected", [(0.5, (5000, 10000)), (0.25, (2500, 10000)), (0.05, (1000, 10000)), (2.0, (20000, 10000))]
)
def test_quota_never_below_what_the_kernel_takes(cores: float, expected: tuple[int, int]) -> None:
    assert quota_us(cores) == expected


def a_machine(root: Path, mounts: str, own: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text(mounts)
    (root / "proc/self/cgroup").write_text(own)


def test_groups_of_version_1_are_made_below_our_own(tmp_path: Path) -> None:
    a_machine(tmp_path, "c /cg/cpu cgroup rw,cpu 0 0\nc /cg/cpuset cgroup rw,cpuset 0 0\n", "2:cpu:/ours\n1:cpuset:/\n")
    (tmp_path / "cg/cpu/ours").mkdir(parents=True)
    (tmp_path / "cg/cpuset").mkdir()
    for name in ("cpus", "mems"):
        (tmp_path / f"cg/cpuset/cpuset.{name}").write_text("0-1\n")
    bases = find_bases(str(tmp_path))
    assert bases == Bases(version=1, cpu=tmp_path / "cg/cpu/ours", cpuset=tmp_path / "cg/cpuset")
    cpu, cpuset = Groups(bases, "7.8").make("lab1", (1,), 0.25)

    assert cpu == tmp_path / "cg/cpu/ours/paceline-lab.7.8/lab1"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "2500"
    assert (cpu / "cpu.cfs_period_us").read_text() == "10000"
    assert (cpuset / "cpuset.cpus").read_text() == "1"
    assert (cpuset / "cpuset.mems").read_text() == "0-1"


def test_groups_of_version_2_are_made_at_the_top(tmp_path: Path) -> None:
    a_machine(tmp_path, "c /cg cgroup2 rw 0 0\n", "0::/user.slice\n")
    (tmp_path / "cg").mkdir()
    (tmp_path / "cg/cgroup.controllers").write_text("cpuset cpu memory\n")
    (tmp_path / "cg/cgroup.subtree_control").write_text("")
    bases = find_bases(str(tmp_path))
    assert bases is not None
    (folder,) = Groups(bases, "7.8").make("lab1", (0, 1), 1.5)

    assert (folder / "cpu.max").read_text() == "15000 10000"
    assert (folder / "cpuset.cpus").read_text() == "0,1"
    assert (folder.parent / "cgroup.subtree_control").read_text() == "+cpu +cpuset"


@pytest.mark.parametrize(("version", "told"), [(1, {"cpu.shares": "2"}), (2, {"cpu.weight": "2"})])
def test_old_kernels_have_a_light_group_instead_of_an_idle_one(
    tmp_path: Path, version: int, told: dict[str, str]
) -> None:
    folder = Groups(Bases(version=version, cpu=tmp_path, cpuset=None), "7.8").make_idle()

    assert folder == tmp_path / "paceline-lab.7.8.idle"
    assert {file.name: file.read_text() for file in folder.iterdir()} == told


def test_without_a_cpu_controller_there_are_no_groups(tmp_path: Path) -> None:
    a_machine(tmp_path, "c /cg cgroup2 rw 0 0\n", "0::/\n")
    (tmp_path / "cg").mkdir()
    (tmp_path / "cg/cgroup.controllers").write_text("hugetlb\n")
    (tmp_path / "cg/cgroup.subtree_control").write_text("")

    assert find_bases(str(tmp_path)) is None


def test_sweep_removes_groups_of_the_dead_and_nothing_else(tmp_path: Path) -> None:
    dead, reused = "paceline-lab.4194305.1", f"paceline-lab.{cgroups.owner_of_this_process().split('.')[0]}.1"
    kept = [f"paceline-lab.{cgroups.owner_of_this_process()}", "paceline-lab.mine.too", "somebody"]
    for name in (dead, reused, *kept):
        (tmp_path / name / "lab1").mkdir(parents=True)
    removed = cgroups.sweep(Bases(version=1, cpu=tmp_path, cpuset=None))

    assert sorted(removed) == sorted(str(tmp_path / name) for name in (dead, reused))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)
