"""A study with everything that it names looked up on this machine: frameworks, environments, site, and its trials.

Reads no store and runs nothing. `Workbench` acts on a prepared study; `Snapshot` says what is known about it.
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
    """One study on this machine. The study is expanded once, when it is prepared."""

    study: Study
    frameworks: Mapping[str, Framework]
    """Those of the study, and the judge of the fairness proof where one is needed."""
    environments: Mapping[str, Environment]
    """Framework → where it is installed."""
    site: Site
    catalog: Catalog
    """What the planning stage wants to know about all these."""
    expanded: tuple[Expanded, ...]
    """Every trial of the study, with the reason where it cannot run here."""
    proving: bool
    """Whether the study needs a fairness proof."""

    @classmethod
    def of(cls, study: Study, *, proving: bool = False) -> PreparedStudy:
        """Look up what a study names.

        Args:
            proving: ask for a fairness proof whatever the study compares; with two frameworks that train it always is.

        Raises:
            SpecError: the study names something that is not known.
        """
        names: tuple[str, ...] = study.axes["framework.name"]
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
        site = load_site(study.one("cluster.site"), f"{study.source}: cluster.site")
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
        """The same study where some frameworks turned out not to work; nothing is looked up again.

        Args:
            broken: framework → why.
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
        """What shows that the trials compute the same, where the study needs it.

        Args:
            further: trials beside those of the study.
        """
        return cases_of([*self.trials, *further], self.catalog) if self.proving else []


def environment_of(
    framework: Framework, *, interpreter: str | None = None, environment: str | None = None, where: str = "framework"
) -> Environment:
    """Where a framework is installed: the user's interpreter, a pinned environment, or the host's own interpreter."""
    if interpreter is not None:
        return ExistingInterpreter(interpreter, package=framework.package, where=f"{where}.interpreter")
    if environment is not None:
        return load_environment(environment, f"{where}.environment")
    if framework.environment is not None:
        return load_environment(framework.environment)
    # An adapter that imports the user's packages is another environment whenever they change; the others are not.
    return ExistingInterpreter(sys.executable) if framework.imports_packages else HostInterpreter()


def _unavailable(environments: Mapping[str, Environment]) -> dict[str, str]:
    states = {name: (environment, environment.state()) for name, environment in environments.items()}
    return {
        name: f"environment {environment.name}: {state.reason}; {state.fix}"
        for name, (environment, state) in states.items()
        if state.state == "unavailable"
    }
