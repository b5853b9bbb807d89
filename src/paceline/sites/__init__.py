"""The places where processes run: a literal dict first, entry points of the group `paceline.sites` second."""

from __future__ import annotations

from paceline.plugins import known_plugins, load_plugin
from paceline.sites.base import HostAnswer, ProcessUsage, Running, Site, SiteState

__all__ = ["SITES", "HostAnswer", "ProcessUsage", "Running", "Site", "SiteState", "known_sites", "load_site"]

SITES = {
    "local": "paceline.sites.local:LocalSite",
    "lab": "paceline.sites.lab.site:LabSite",
    "ssh": "paceline.sites.ssh:SshSite",
    "mpi": "paceline.sites.mpi:MpiSite",
    "slurm": "paceline.sites.slurm:SlurmSite",
    "ray": "paceline.sites.ray:RaySite",
    "kubernetes": "paceline.sites.kubernetes:KubernetesSite",
}
"""id → class."""


def known_sites() -> dict[str, str]:
    """Ours and those that installed packages offer."""
    return known_plugins("paceline.sites", SITES)


def load_site(name: str, where: str = "cluster.site") -> Site:
    """A new site object; SpecError for a name that nobody offers."""
    site: Site = load_plugin("site", name, known_sites(), where)()
    return site
