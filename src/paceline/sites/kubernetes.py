"""Pods of a Kubernetes cluster: their manifest is applied, and an agent is started in each with kubectl exec.

Never run on a cluster: there was none where this was written. What the manifests ask for is tested.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import text
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import SiteState
from paceline.sites.remote.launch import agent_command, program_version, through_pipes
from paceline.sites.remote.link import in_parallel
from paceline.sites.remote.requests import Agent
from paceline.sites.remote.site import RemoteSite

JOB, PYTORCH_JOB, MPI_JOB = "Job", "PyTorchJob", "MPIJob"
LABEL = "paceline.run/study"
READY = "600s"
"""How long to wait for the pods, as kubectl takes it."""

KNOBS = {
    "image": Knob(default="", doc="Image of the pods, with Python 3.8 or newer and the tools to build environments."),
    "kind": Knob(
        default=JOB,
        choices=(JOB, PYTORCH_JOB, MPI_JOB),
        doc="Resource that creates the pods: Kubernetes' own Job, or Kubeflow's PyTorchJob or MPIJob.",
    ),
    "namespace": Knob(default="default", doc="Namespace of the pods."),
    "name": Knob(default="paceline", doc="Name of the Job; two studies at once need two names."),
    "memory": Knob(default="", doc="Memory per pod in Kubernetes' format, e.g. '16Gi'; empty: no limit."),
    "gpus_per_node": Knob(default=0, minimum=0, doc="GPUs per pod."),
}


class KubernetesSite(RemoteSite):
    """Pods of a Kubernetes cluster."""

    name = "kubernetes"

    def __init__(self) -> None:
        super().__init__()
        self._applied: tuple[str, Path] | None = None

    def state(self) -> SiteState:
        if not shutil.which("kubectl"):
            return SiteState(state="unavailable", reason="no program kubectl (and untested)", fix="install kubectl")
        return SiteState(state="untested", reason="manifests are tested, but never on a cluster")

    def engine_knobs(self) -> dict[str, Knob]:
        return KNOBS

    def engine_facts(self) -> dict[str, object]:
        return {"engine": program_version(["kubectl", "version", "--client"])}

    def refusal(self, cluster: ClusterChoice) -> str | None:
        return None if cluster.options["image"] else "name an image under [cluster.kubernetes]"

    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        namespace, name = text(cluster.options, "namespace"), text(cluster.options, "name")
        path = Path.cwd() / f"{name}.kubernetes.json"
        path.write_text(json.dumps(manifest(cluster), indent=1), encoding="utf-8")
        _kubectl(namespace, "apply", "-f", str(path))
        self._applied = (namespace, path)
        chosen = ["-l", f"{LABEL}={name}"]
        _kubectl(namespace, "wait", "pod", *chosen, "--for=condition=Ready", f"--timeout={READY}")
        pods = _kubectl(namespace, "get", "pods", *chosen, "-o", "jsonpath={.items[*].metadata.name}").split()
        if len(pods) < cluster.hosts:
            raise SiteError(f"{len(pods)} of {cluster.hosts} pods are there", hint=f"kubectl -n {namespace} get pods")
        command = agent_command(text(cluster.options, "python"))

        def reach(pod: str) -> Agent:
            return through_pipes(["kubectl", "-n", namespace, "exec", "-i", pod, "--", *command], f"pod {pod}")

        return in_parallel(reach, sorted(pods)[: cluster.hosts])

    def recall(self) -> None:
        applied, self._applied = self._applied, None
        if applied:
            namespace, path = applied
            subprocess.run(
                ["kubectl", "-n", namespace, "delete", "--wait=false", "-f", str(path)],
                capture_output=True,
                check=False,
            )
            path.unlink(missing_ok=True)


def _kubectl(namespace: str, *arguments: str) -> str:
    done = subprocess.run(["kubectl", "-n", namespace, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SiteError(f"kubectl {arguments[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def manifest(cluster: ClusterChoice) -> dict[str, object]:
    """The manifest of as many pods as hosts, each on a node of its own, that wait for their agents."""
    options = cluster.options
    kind, hosts = options["kind"], cluster.hosts
    about = {"name": options["name"], "namespace": options["namespace"]}
    if kind == JOB:
        return {
            "apiVersion": "batch/v1",
            "kind": JOB,
            "metadata": about,
            "spec": {
                "completions": hosts,
                "parallelism": hosts,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": _pod(cluster, restart="Never", container="agent"),
            },
        }
    if kind == PYTORCH_JOB:
        # Kubeflow wants one Master; it is a host like the others.
        replicas = {"Master": 1, "Worker": hosts - 1}
        spec = {
            name: {"replicas": count, "restartPolicy": "Never", "template": _pod(cluster, container="pytorch")}
            for name, count in replicas.items()
            if count
        }
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": PYTORCH_JOB,
            "metadata": about,
            "spec": {"runPolicy": {"cleanPodPolicy": "All"}, "pytorchReplicaSpecs": spec},
        }
    # The workers of an MPIJob are the hosts; its launcher only has to live as long as they do.
    launcher = _pod(cluster, container="launcher", labelled=False)
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": MPI_JOB,
        "metadata": about,
        "spec": {
            "slotsPerWorker": cluster.workers_per_host,
            "runPolicy": {"cleanPodPolicy": "All"},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": launcher},
                "Worker": {"replicas": hosts, "template": _pod(cluster, container="worker")},
            },
        },
    }


def _pod(
    cluster: ClusterChoice, *, container: str, restart: str | None = None, labelled: bool = True
) -> dict[str, object]:
    options = cluster.options
    wanted = {"cpu": str(cluster.workers_per_host * cluster.threads_per_worker)}
    wanted |= {"memory": memory} if (memory := text(options, "memory")) else {}
    wanted |= {"nvidia.com/gpu": str(options["gpus_per_node"])} if options["gpus_per_node"] else {}
    labels = {LABEL: options["name"]} if labelled else {}
    spec: dict[str, object] = {
        "containers": [
            {
                "name": container,
                "image": options["image"],
                "command": _waiting(),
                # Requests equal to limits: where the node's CPU policy is static, the pod gets whole cores of its own.
                "resources": {"requests": wanted, "limits": wanted},
            }
        ],
    }
    if labelled:
        # Two pods on one node would be one host that looks like two.
        spec["affinity"] = {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        }
    if restart:
        spec["restartPolicy"] = restart
    return {"metadata": {"labels": labels}, "spec": spec}


def _waiting() -> Sequence[str]:
    return ["sleep", "infinity"]
