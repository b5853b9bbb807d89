"""A study whose frameworks, environments, site and trials are looked up on this machine.

This module reads no store and runs nothing. `Workbench` acts on a prepared study; `Snapshot` holds what is known about
it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from paceline.environments import Environment, ExistingInterpreter, HostInterpreter, load_environment
from paceline.frameworks import Framework, load_framework
from paceline.plan import Catalog, Trial, expand
from paceline.plan.expand import Expanded, refuse_unavailable
from paceline.plan.proof import ProofCase
from paceline.run.conformance import REFERENCE, cases_of
from paceline.sites import Site, load_site
from paceline.spec import Study, workloads_of


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedStudy:
    """One study on this machine, expanded once when it is prepared."""

    study: Study
    frameworks: Mapping[str, Framework]
    """The frameworks of the study, and the reference if the study needs a fairness proof."""
    environments: Mapping[str, Environment]
    """Framework → the environment in which it is installed."""
    site: Site
    catalog: Catalog
    """What the planning stage needs to know about all of these."""
    expanded: tuple[Expanded, ...]
    """Every trial of the study, with the reason if it cannot run here."""
    proving: bool
    """Whether the study needs a fairness proof."""

    @classmethod
    def of(cls, study: Study, *, proving: bool = False) -> PreparedStudy:
        """Look up everything that a study names.

        Args:
            proving: require a fairness proof; a study with two frameworks that train always requires one.

        Raises:
            SpecError: the study names something unknown.
        """
        names = study.values("framework.name", str)
        frameworks = {name: load_framework(name, f"{study.source}: framework.name") for name in names}
        trained = not study.of_collectives
        if trained and sum(framework.capabilities.trains for framework in frameworks.values()) > 1:
            proving = True
        if proving:
            frameworks.setdefault(REFERENCE, load_framework(REFERENCE))
        environments = {
            name: environment_of(
                framework,
                interpreter=study.interpreters.get(name),
                environment=study.environments.get(name),
                where=f"{study.source}: framework",
            )
            for name, framework in frameworks.items()
        }
        site = load_site(study.single("cluster.site", str), f"{study.source}: cluster.site")
        catalog = Catalog(
            capabilities={name: framework.capabilities for name, framework in frameworks.items()},
            environments={name: (environment.name, environment.lock) for name, environment in environments.items()},
            unavailable=_unavailable(environments),
            site=site.limits(),
            workload=workloads_of(study),
        )
        return cls(
            study=study,
            frameworks=frameworks,
            environments=environments,
            site=site,
            catalog=catalog,
            expanded=tuple(expand(study, catalog)),
            proving=proving,
        )

    def without(self, broken: Mapping[str, str]) -> PreparedStudy:
        """The same study without frameworks that turned out not to work; nothing is looked up again.

        Args:
            broken: framework → the reason.
        """
        if not broken:
            return self
        catalog = replace(self.catalog, unavailable={**self.catalog.unavailable, **broken})
        return replace(self, catalog=catalog, expanded=tuple(refuse_unavailable(self.expanded, broken)))

    @property
    def trials(self) -> list[Trial]:
        """Every trial that can run here."""
        return [expanded.trial for expanded in self.expanded if expanded.refusal is None]

    def proof_cases(self, further: tuple[Trial, ...] = ()) -> list[ProofCase]:
        """The runs of the fairness proof; none if the study needs no proof.

        Args:
            further: trials in addition to those of the study.
        """
        return cases_of([*self.trials, *further], self.catalog) if self.proving else []


def environment_of(
    framework: Framework, *, interpreter: str | None = None, environment: str | None = None, where: str = "framework"
) -> Environment:
    """The environment of a framework: the user's interpreter, a pinned environment, or the host's own interpreter."""
    if interpreter is not None:
        return ExistingInterpreter(interpreter, package=framework.package, where=f"{where}.interpreter")
    if environment is not None:
        return load_environment(environment, f"{where}.environment")
    if framework.environment is not None:
        return load_environment(framework.environment)
    # If an adapter imports the user's packages, a changed package makes another environment; for others it does not.
    return ExistingInterpreter(sys.executable) if framework.imports_packages else HostInterpreter()


def _unavailable(environments: Mapping[str, Environment]) -> dict[str, str]:
    states = {name: (environment, environment.state()) for name, environment in environments.items()}
    return {
        name: f"environment {environment.name}: {state.reason}; {state.fix}"
        for name, (environment, state) in states.items()
        if state.state == "unavailable"
    }
