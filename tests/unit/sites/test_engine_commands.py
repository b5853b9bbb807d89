"""What is handed to mpirun, srun, sbatch and kubectl, without running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.plan.trial import ClusterChoice
from paceline.sites import known_sites, load_site
from paceline.sites.kubernetes import JOB, LABEL, MPI_JOB, PYTORCH_JOB, manifest
from paceline.sites.mpi import mpirun_command
from paceline.sites.remote.agent.channel import HOME, KEY
from paceline.sites.slurm import sbatch_command, srun_command


def cluster(site: str, count: int = 2, **options: Any) -> ClusterChoice:
    knobs = {name: knob.default for name, knob in load_site(site).limits().knobs.items()}
    return ClusterChoice(
        site=site,
        hosts=count,
        workers_per_host=2,
        threads_per_worker=3,
        device="cpu",
        network=None,
        oversubscribe=False,
        options=knobs | options,
    )


def value_after(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_open_mpi_gets_one_unbound_agent_a_host_and_the_names_of_the_secrets() -> None:
    command = mpirun_command(cluster("mpi", options="-v", hosts="a,b,c"), is_open_mpi=True, is_root=True)

    assert value_after(command, "--np") == "2"
    assert value_after(command, "--map-by") == "ppr:1:node"
    assert value_after(command, "--bind-to") == "none"
    assert value_after(command, "--host") == "a,b"
    assert [command[i + 1] for i, word in enumerate(command) if word == "-x"] == [HOME, KEY]
    assert "--allow-run-as-root" in command
    assert command.index("-v") < command.index("python3")


def test_mpich_gets_its_own_words() -> None:
    command = mpirun_command(cluster("mpi", hostfile="nodes"), is_open_mpi=False, is_root=False)

    assert value_after(command, "-ppn") == "1"
    assert value_after(command, "-f") == "nodes"
    assert value_after(command, "-genvlist") == f"{HOME},{KEY}"


@pytest.mark.parametrize("site", ["ssh", "mpi"])
def test_too_few_named_hosts_are_refused_with_where_to_name_them(site: str) -> None:
    refusal = load_site(site).limits().refuses(cluster(site, 3, hosts="a, b"))

    assert refusal is not None
    assert f"[cluster.{site}] names 2" in refusal


def test_sbatch_asks_for_nodes_cores_and_what_the_study_says() -> None:
    asked = cluster("slurm", partition="gpu", time_limit="2:00:00", gpus_per_node=4, options="--account=x")
    command = sbatch_command(asked, Path("/out"))

    assert value_after(command, "--nodes") == "2"
    assert value_after(command, "--cpus-per-task") == "6"
    assert value_after(command, "--partition") == "gpu"
    assert value_after(command, "--time") == "2:00:00"
    assert value_after(command, "--gpus-per-node") == "4"
    assert "--account=x" in command
    assert command[-1].startswith("srun --nodes 2 --ntasks 2 --ntasks-per-node 1 ")


def test_srun_inside_an_allocation_takes_the_options_itself() -> None:
    assert "--account=x" in srun_command(cluster("slurm", options="--account=x"), inside=True)


def test_allocation_with_fewer_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "1")

    assert "has 1 node(s), and 2" in (load_site("slurm").limits().refuses(cluster("slurm")) or "")


def pods_of(kind: str, made: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """(how many, template) of the pods that are hosts."""
    spec = made["spec"]
    if kind == JOB:
        return [(spec["completions"], spec["template"])]
    if kind == PYTORCH_JOB:
        return [(one["replicas"], one["template"]) for one in spec["pytorchReplicaSpecs"].values()]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    return [(worker["replicas"], worker["template"])]


@pytest.mark.parametrize("kind", [JOB, PYTORCH_JOB, MPI_JOB])
def test_manifests_ask_for_as_many_pods_as_hosts_each_on_a_node_of_its_own(kind: str) -> None:
    asked = cluster("kubernetes", 4, kind=kind, image="mine:1", memory="8Gi", gpus_per_node=2)
    made = manifest(asked)
    pods = pods_of(kind, made)

    assert made["kind"] == kind
    assert sum(count for count, _ in pods) == 4
    for _, template in pods:
        (container,) = template["spec"]["containers"]
        assert container["image"] == "mine:1"
        assert container["resources"]["limits"] == {"cpu": "6", "memory": "8Gi", "nvidia.com/gpu": "2"}
        assert template["metadata"]["labels"] == {LABEL: "paceline"}
        apart = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert apart[0]["topologyKey"] == "kubernetes.io/hostname"


def test_kubernetes_without_an_image_is_refused() -> None:
    assert "image" in (load_site("kubernetes").limits().refuses(cluster("kubernetes")) or "")


def test_every_engine_says_how_it_stands_without_raising() -> None:
    for name in known_sites():
        assert load_site(name).state().state in {"ready", "unavailable", "untested"}
