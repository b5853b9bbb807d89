"""The places where processes run: a literal dict first, entry points of the group `paceline.sites` second."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from paceline.errors import SpecError, did_you_mean
from paceline.sites.base import Running, Site, SiteState

__all__ = ["SITES", "Running", "Site", "SiteState", "known_sites", "load_site"]

SITES = {
    "local": "paceline.sites.local:LocalSite",
}
"""id → class; loaded on use."""


def known_sites() -> dict[str, str]:
    """Ours and those that installed packages offer; ours win."""
    return {e.name: e.value for e in entry_points(group="paceline.sites")} | SITES


def load_site(name: str, where: str = "cluster.site") -> Site:
    """A new site object.

    Raises:
        SpecError: nobody offers that name.
    """
    known = known_sites()
    if name not in known:
        raise SpecError(f"{where}: unknown site '{name}'", hint=did_you_mean(name, known))
    module, _, attribute = known[name].partition(":")
    site: Site = getattr(import_module(module), attribute)()
    return site
