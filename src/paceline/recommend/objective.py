"""What is wanted: goals by name, what things cost, and the limits within which to choose. Knows no candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import PacelineError, did_you_mean
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import APPROXIMATE, ASYNCHRONOUS, EXACT, StrategyClass
from paceline.stats.estimate import Estimate
from paceline.units import BYTES, SECONDS, format_count, format_seconds, parse_quantity

HOUR_S = 3600.0
JOULES_A_KWH = 3.6e6
CLASSES: tuple[StrategyClass, ...] = (EXACT, APPROXIMATE, ASYNCHRONOUS)
"""Of strategies; never in one list unless that is asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What turns throughput into what is waited and paid for."""

    epoch: float | None = None
    """Samples of an epoch."""
    price: float | None = None
    """Of a host and hour."""
    power: float | None = None
    """Of a host, in watts."""


FLAGS = {"epoch": "--epoch SAMPLES", "price": "--price P", "power": "--power W"}
"""Field of the prices → how it is given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """Something to have most, or least, of."""

    name: str
    unit: str
    larger: bool
    """Whether more of it is better."""
    needs: tuple[str, ...]
    """Fields of the prices without which it has no value."""
    per_host: bool
    """Whether every host adds to it."""
    factor: Callable[[Prices], float]
    """What an epoch of one second on one host is worth; of a goal that is larger the better, one sample a second."""
    shown: Callable[[float], str]
    """A value as a person reads it."""
    words: str
    """What follows it, e.g. "samples/s"."""
    header: str
    """Of a column of it."""
    praise: str
    """What a better one is more of: "fast", "cheap"."""

    def value(self, throughput: Estimate, hosts: int, prices: Prices) -> Estimate:
        """Of so many samples a second on so many hosts."""
        scale = self.factor(prices) * (hosts if self.per_host else 1)
        if self.larger:
            return throughput.times(scale, self.unit)
        return throughput.over(scale * known(prices.epoch), self.unit)

    def worth(self, hosts: int, others: int) -> float:
        """By what being on so many hosts, and not on others, multiplies what the same throughput is worth."""
        return others / hosts if self.per_host else 1.0

    def text(self, value: Estimate) -> str:
        """With the interval, e.g. "812 (790–840) samples/s"."""
        return f"{self.number(value)} {self.words}"

    def number(self, value: Estimate) -> str:
        """The same without its unit."""
        if value.ends is None:
            return f"{self.shown(value.value)} ({value.n_runs} runs: no interval)"
        low, high = map(self.shown, value.ends)
        return self.shown(value.value) if low == high else f"{self.shown(value.value)} ({low}–{high})"


def known(number: float | None) -> float:
    """A price that `check` has made sure of."""
    if number is None:
        raise ValueError("a goal without its prices")
    return number


GOALS: Mapping[str, Goal] = {
    goal.name: goal
    for goal in (
        Goal(
            name="throughput",
            unit="samples/s",
            larger=True,
            needs=(),
            per_host=False,
            factor=lambda _: 1.0,
            shown=format_count,
            words="samples/s",
            header="samples/s",
            praise="fast",
        ),
        Goal(
            name="epoch-time",
            unit="s",
            larger=False,
            needs=("epoch",),
            per_host=False,
            factor=lambda _: 1.0,
            shown=format_seconds,
            words="an epoch",
            header="epoch",
            praise="fast",
        ),
        Goal(
            name="cost",
            unit="currency",
            larger=False,
            needs=("epoch", "price"),
            per_host=True,
            factor=lambda prices: known(prices.price) / HOUR_S,
            shown=lambda value: f"{value:.3g}",
            words="an epoch",
            header="cost",
            praise="cheap",
        ),
        Goal(
            name="energy",
            unit="J",
            larger=False,
            needs=("epoch", "power"),
            per_host=True,
            factor=lambda prices: known(prices.power),
            shown=lambda value: f"{value / JOULES_A_KWH:.3g}",
            words="kWh an epoch",
            header="kWh",
            praise="frugal",
        ),
    )
}
"""Name → goal."""
THROUGHPUT, EPOCH_TIME, COST = (GOALS[name] for name in ("throughput", "epoch-time", "cost"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A limit on a number: at most so much, or one of some."""

    most: float = math.inf
    among: tuple[int, ...] = ()

    def allows(self, number: float) -> bool:
        return number <= self.most and (not self.among or number in self.among)

    @property
    def given(self) -> bool:
        return bool(self.among) or self.most < math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Within:
    """Limits on what may be chosen."""

    workers: Bound = field(default_factory=Bound)
    hosts: Bound = field(default_factory=Bound)
    batch: Bound = field(default_factory=Bound)
    """Samples a worker."""
    threads: Bound = field(default_factory=Bound)
    """Of a worker."""
    framework: tuple[str, ...] = ()
    strategy: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    """Between hosts; a host alone has none."""
    memory: float | None = None
    """Bytes of a worker."""
    budget: float | None = None
    """What an epoch may cost."""
    deadline: float | None = None
    """Seconds that an epoch may take."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Each limit that was given, as it was typed."""


COUNTS = ("workers", "hosts", "batch", "threads")
"""Limits that are whole numbers: workers<=8, or batch=16|32."""
NAMES = ("framework", "strategy", "model", "network")
"""Limits that are names: framework=torch|jax."""
MOST: Mapping[str, Callable[[str], float]] = {
    "memory": lambda text: parse_quantity(text, BYTES),
    "budget": float,
    "deadline": lambda text: parse_quantity(text, SECONDS),
}
"""Limits that have a largest value only → how it is read."""
LIMITS = (*COUNTS, *NAMES, *MOST)
EXAMPLE = "workers<=8,hosts<=4,memory<=16GB,framework=torch|jax"
NEEDED = {"budget": ("epoch", "price"), "deadline": ("epoch",)}
"""Limit → fields of the prices without which nobody can tell whether it is kept."""


def parse_within(text: str) -> Within:
    """Limits as the user writes them; "" is none.

    Raises:
        PacelineError: a word or a value that nobody knows.
    """
    found: dict[str, Any] = {}
    words: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        sign = "<=" if "<=" in part else "="
        name, _, value = (word.strip() for word in part.partition(sign))
        if name not in LIMITS:
            raise PacelineError(
                f"--within {part!r}: no such limit", hint=f"{did_you_mean(name, LIMITS)}; write it like {EXAMPLE}"
            )
        if name in words:
            raise PacelineError(f"--within {part!r}: {name} is limited already", hint=f"keep one of the two: {text}")
        try:
            found[name] = _limit(name, sign, value)
        except ValueError as error:
            raise PacelineError(f"--within {part!r}: {error}", hint=f"write it like {EXAMPLE}") from None
        words[name] = part
    return Within(words=words, **found)


def _limit(name: str, sign: str, value: str) -> Any:
    if not value:
        raise ValueError(f"{name} has no value")
    if name in NAMES:
        if sign != "=":
            raise ValueError(f"{name} is a name: {name}=…, several with |")
        return tuple(dict.fromkeys(word.strip() for word in value.split("|")))
    if name in COUNTS:
        numbers = tuple(_count(word) for word in value.split("|"))
        if sign == "=":
            return Bound(among=numbers)
        (most,) = numbers if len(numbers) == 1 else (None,)
        if most is None:
            raise ValueError(f"{value!r} should be one number")
        return Bound(most=most)
    if sign != "<=":
        raise ValueError(f"{name} has a largest value only: {name}<=…")
    largest = MOST[name](value)
    if not largest > 0:
        raise ValueError(f"{value!r} should be above zero")
    return largest


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text.strip()!r} should be a whole number") from None
    if number < 1:
        raise ValueError(f"{number} should be at least 1")
    return number


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What is asked of a recommendation."""

    goal: Goal = THROUGHPUT
    prices: Prices = field(default_factory=Prices)
    within: Within = field(default_factory=Within)
    allow: frozenset[str] = frozenset()
    """Classes of strategies that may stand in one list with that of the present choice."""
    present: str | None = None
    """Id of the trial that is in use now; None: the first that was measured."""
    among: tuple[Trial, ...] = ()
    """All that may be chosen; (): whatever the limits allow."""


def wish_for(
    goal: str, prices: Prices, within: str = "", *, allow: tuple[str, ...] = (), present: str | None = None
) -> Wish:
    """What a user asked, checked.

    Raises:
        PacelineError: a goal, a limit or a class that nobody knows, or a price that is missing.
    """
    if goal not in GOALS:
        raise PacelineError(f"--goal {goal}: no such goal", hint=did_you_mean(goal, GOALS))
    for word in allow:
        if word not in CLASSES:
            raise PacelineError(f"--allow {word}: no such class of strategies", hint=did_you_mean(word, CLASSES))
    limits = parse_within(within)
    wanted = {f"--goal {goal}": GOALS[goal].needs}
    wanted |= {f"--within {limits.words[name]}": needs for name, needs in NEEDED.items() if name in limits.words}
    for asked, needs in wanted.items():
        if missing := [FLAGS[name] for name in needs if getattr(prices, name) is None]:
            raise PacelineError(f"{asked}: needs {' and '.join(missing)}", hint=_what_to_add(missing))
    for name, flag in FLAGS.items():
        given = getattr(prices, name)
        if given is not None and not 0 < given < math.inf:
            raise PacelineError(f"{flag.split()[0]} {given:g}: should be above zero", hint=f"write it like {flag}")
    return Wish(goal=GOALS[goal], prices=prices, within=limits, allow=frozenset(allow), present=present)


def _what_to_add(flags: list[str]) -> str:
    told = {
        FLAGS["epoch"]: "samples of an epoch",
        FLAGS["price"]: "of a host and hour",
        FLAGS["power"]: "watts of a host",
    }
    return "add " + " ".join(flags) + f" ({', '.join(told[flag] for flag in flags)})"
