"""Describes the effort of switching from one choice to another."""

from __future__ import annotations

from paceline.recommend.recommendation import Choice, setting


def switching(present: Choice, choice: Choice) -> str:
    """Lists everything that must be changed; "" if nothing changes."""
    return "; ".join(
        words
        for words in (
            _framework(present, choice),
            _class(present, choice),
            _machines(present, choice),
            _batch(present, choice),
            _settings(present, choice),
        )
        if words
    )


def _framework(present: Choice, choice: Choice) -> str:
    if present.framework != choice.framework:
        return (
            f"change the framework ({present.framework} → {choice.framework}): rewrite the training program and set "
            "up a new environment"
        )
    if present.strategy != choice.strategy:
        return (
            f"change the strategy ({present.strategy} → {choice.strategy}): rewrite the part of the program that "
            "distributes the work"
        )
    return ""


def _class(present: Choice, choice: Choice) -> str:
    if present.strategy_class == choice.strategy_class:
        return ""
    return f"{choice.strategy_class} instead of {present.strategy_class}: check the accuracy"


def _machines(present: Choice, choice: Choice) -> str:
    changes = []
    if choice.hosts != present.hosts:
        changes.append(_more(choice.hosts - present.hosts, "host"))
    elif choice.workers != present.workers:
        changes.append(_more(choice.workers - present.workers, "worker"))
    if choice.threads != present.threads:
        changes.append(_more((choice.threads - present.threads), "thread") + " per worker")
    if choice.network and present.network and choice.network != present.network:
        changes.append(f"change the network ({present.network} → {choice.network})")
    return ", ".join(changes)


def _more(count: int, what: str) -> str:
    return f"{abs(count)} {'more' if count > 0 else 'fewer'} {what}{'s' if abs(count) != 1 else ''}"


def _batch(present: Choice, choice: Choice) -> str:
    before, after = present.batch * present.workers, choice.batch * choice.workers
    if before == after:
        return ""
    return f"the global batch goes from {before} to {after}: re-tune the learning rate and check the accuracy"


def _settings(present: Choice, choice: Choice) -> str:
    """Lists the changed settings. Those of another framework are part of rewriting the program."""
    if present.framework != choice.framework:
        return ""
    names = [name for name in {**present.knobs, **choice.knobs} if present.knobs.get(name) != choice.knobs.get(name)]
    changes = [
        f"set {name}={setting(choice.knobs[name])}" if name in choice.knobs else f"remove {name}" for name in names
    ]
    effort = "a one-line change" if len(changes) == 1 else f"{len(changes)} lines to change"
    return f"{', '.join(changes)} ({effort})" if changes else ""
