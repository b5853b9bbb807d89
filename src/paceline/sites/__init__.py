"""The places where processes run: those of this package, and those that others offer as `paceline.sites`."""

from __future__ import annotations

from paceline.plugins import known_plugins, load_plugin
from paceline.sites.base import BusyCounter, HostAnswer, ProcessUsage, Running, Site, SiteState

__all__ = [
    "SITES",
    "BusyCounter",
    "HostAnswer",
    "ProcessUsage",
    "Running",
    "Site",
    "SiteState",
    "known_sites",
    "load_site",
]

SITES = {
    "local": "paceline.sites.local:LocalSite",
    "lab": "paceline.sites.lab.site:LabSite",
    "ssh": "paceline.sites.ssh:SshSite",
    "mpi": "paceline.sites.mpi:MpiSite",
    "slurm": "paceline.sites.slurm:SlurmSite",
    "ray": "paceline.sites.ray:RaySite",
    "kubernetes": "paceline.sites.kubernetes:KubernetesSite",
}
"""Id → class."""


def known_sites() -> dict[str, str]:
    """The sites of this package and those that other installed packages offer; id → class."""
    return known_plugins("paceline.sites", SITES)


def load_site(name: str, where: str = "cluster.site") -> Site:
    """A new site object.

    Raises:
        SpecError: nobody offers a site of this name.
    """
    site: Site = load_plugin("site", name, known_sites(), where)()
    return site
