"""What it costs to go from one choice to another, in words. Knows no number of the two."""

from __future__ import annotations

from paceline.recommend.recommendation import Choice, setting


def switching(present: Choice, choice: Choice) -> str:
    """Everything that must be done; "" where nothing changes."""
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
            f"another framework ({present.framework} → {choice.framework}): the training program is written anew, in a "
            "new environment"
        )
    if present.strategy != choice.strategy:
        return f"another strategy ({present.strategy} → {choice.strategy}): the part of the program that joins workers"
    return ""


def _class(present: Choice, choice: Choice) -> str:
    if present.strategy_class == choice.strategy_class:
        return ""
    return f"{choice.strategy_class} instead of {present.strategy_class}: check what accuracy it reaches"


def _machines(present: Choice, choice: Choice) -> str:
    found = []
    if choice.hosts != present.hosts:
        found.append(_more(choice.hosts - present.hosts, "host"))
    elif choice.workers != present.workers:
        found.append(_more(choice.workers - present.workers, "worker"))
    if choice.threads != present.threads:
        found.append(_more((choice.threads - present.threads), "thread") + " a worker")
    if choice.network and present.network and choice.network != present.network:
        found.append(f"another network ({present.network} → {choice.network})")
    return ", ".join(found)


def _more(count: int, what: str) -> str:
    return f"{abs(count)} {what}{'s' if abs(count) != 1 else ''} {'more' if count > 0 else 'less'}"


def _batch(present: Choice, choice: Choice) -> str:
    before, after = present.batch * present.workers, choice.batch * choice.workers
    if before == after:
        return ""
    return f"the global batch goes from {before} to {after}: re-tune the learning rate and check the accuracy"


def _settings(present: Choice, choice: Choice) -> str:
    """Settings of another framework are part of its program."""
    if present.framework != choice.framework:
        return ""
    names = [name for name in {**present.knobs, **choice.knobs} if present.knobs.get(name) != choice.knobs.get(name)]
    told = [f"{name}={setting(choice.knobs[name])}" if name in choice.knobs else f"no {name}" for name in names]
    return f"{', '.join(told)}: {'one line' if len(told) == 1 else f'{len(told)} lines'}" if told else ""
