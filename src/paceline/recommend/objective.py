"""What a user asks for: the goal, the prices and the limits of a recommendation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paceline.errors import PacelineError, did_you_mean
from paceline.plan.trial import Trial
from paceline.plan.vocabulary import APPROXIMATE, ASYNCHRONOUS, EXACT, StrategyClass
from paceline.stats.estimate import Estimate
from paceline.units import BYTES, SECONDS, format_count, format_seconds, parse_quantity

HOUR_S = 3600.0
JOULES_A_KWH = 3.6e6
CLASSES: tuple[StrategyClass, ...] = (EXACT, APPROXIMATE, ASYNCHRONOUS)
"""The classes of strategies; they are never ranked together unless the user asks for it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What turns throughput into time, cost and energy per epoch."""

    epoch: float | None = None
    """The samples per epoch."""
    price: float | None = None
    """The price per host and hour."""
    power: float | None = None
    """The power per host in watts."""


FLAGS = {"epoch": "--epoch SAMPLES", "price": "--price P", "power": "--power W"}
"""Field of the prices → its option on the command line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """A quantity to maximize or minimize."""

    name: str
    unit: str
    larger: bool
    """Whether a larger value is better."""
    needs: tuple[str, ...]
    """The fields of the prices that the value depends on."""
    per_host: bool
    """Whether the value is proportional to the number of hosts."""
    factor: Callable[[Prices], float]
    """The value of an epoch of one second on one host; if a larger value is better, that of one sample per second."""
    shown: Callable[[float], str]
    """Formats a value for display."""
    words: str
    """The text after a value, e.g. "samples/s"."""
    header: str
    """The header of its column in a table."""
    praise: str
    """The adjective for a better value: "fast", "cheap"."""

    def value(self, throughput: Estimate, hosts: int, prices: Prices) -> Estimate:
        """Returns the value of the goal for a throughput in samples per second on a number of hosts."""
        scale = self.factor(prices) * (hosts if self.per_host else 1)
        if self.larger:
            return throughput.times(scale, self.unit)
        return throughput.over(scale * _required(prices.epoch), self.unit)

    def worth(self, hosts: int, reference_hosts: int) -> float:
        """Returns the gain of using `hosts` hosts instead of `reference_hosts` at the same throughput."""
        return reference_hosts / hosts if self.per_host else 1.0

    def text(self, value: Estimate) -> str:
        """Returns a value with its interval and unit, e.g. "812 (790–840) samples/s"."""
        return f"{self.number(value)} {self.words}"

    def number(self, value: Estimate) -> str:
        """Returns a value with its interval, without the unit."""
        if value.ends is None:
            return f"{self.shown(value.value)} ({value.n_runs} runs: no interval)"
        low, high = map(self.shown, value.ends)
        return self.shown(value.value) if low == high else f"{self.shown(value.value)} ({low}–{high})"


def _required(number: float | None) -> float:
    """Returns a price whose presence `wish_for` has checked."""
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
            words="per epoch",
            header="epoch",
            praise="fast",
        ),
        Goal(
            name="cost",
            unit="currency",
            larger=False,
            needs=("epoch", "price"),
            per_host=True,
            factor=lambda prices: _required(prices.price) / HOUR_S,
            shown=lambda value: f"{value:.3g}",
            words="per epoch",
            header="cost",
            praise="cheap",
        ),
        Goal(
            name="energy",
            unit="J",
            larger=False,
            needs=("epoch", "power"),
            per_host=True,
            factor=lambda prices: _required(prices.power),
            shown=lambda value: f"{value / JOULES_A_KWH:.3g}",
            words="kWh per epoch",
            header="kWh",
            praise="frugal",
        ),
    )
}
"""Name → goal."""
THROUGHPUT, EPOCH_TIME, COST = (GOALS[name] for name in ("throughput", "epoch-time", "cost"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A limit on a number: a largest value, or a list of values."""

    most: float = math.inf
    """The largest value."""
    among: tuple[int, ...] = ()
    """The allowed values; () if all are."""

    def allows(self, number: float) -> bool:
        return number <= self.most and (not self.among or number in self.among)

    @property
    def given(self) -> bool:
        return bool(self.among) or self.most < math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Within:
    """The limits on what may be chosen."""

    workers: Bound = field(default_factory=Bound)
    hosts: Bound = field(default_factory=Bound)
    batch: Bound = field(default_factory=Bound)
    """The batch per worker."""
    threads: Bound = field(default_factory=Bound)
    """The threads per worker."""
    framework: tuple[str, ...] = ()
    strategy: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    """The networks between hosts; a single host has none."""
    memory: float | None = None
    """The bytes of memory per worker."""
    budget: float | None = None
    """The cost per epoch."""
    deadline: float | None = None
    """The seconds per epoch."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Name of each given limit → the limit as the user typed it."""


COUNTS = ("workers", "hosts", "batch", "threads")
"""Limits that are whole numbers: workers<=8, or batch=16|32."""
NAMES = ("framework", "strategy", "model", "network")
"""Limits that are names: framework=torch|jax."""
MOST: Mapping[str, Callable[[str], float]] = {
    "memory": lambda text: parse_quantity(text, BYTES),
    "budget": float,
    "deadline": lambda text: parse_quantity(text, SECONDS),
}
"""Limits that have only a largest value → how to parse it."""
LIMITS = (*COUNTS, *NAMES, *MOST)
EXAMPLE = "workers<=8,hosts<=4,memory<=16GB,framework=torch|jax"
NEEDED = {"budget": ("epoch", "price"), "deadline": ("epoch",)}
"""Limit → the fields of the prices that it depends on."""


def parse_within(text: str) -> Within:
    """Parses limits as a user writes them; "" means no limits.

    Raises:
        PacelineError: a limit or its value is invalid.
    """
    counts: dict[str, Bound] = {}
    names: dict[str, tuple[str, ...]] = {}
    largest: dict[str, float] = {}
    words: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        sign = "<=" if "<=" in part else "="
        name, _, value = (word.strip() for word in part.partition(sign))
        if name not in LIMITS:
            raise PacelineError(
                f"--within {part!r}: no such limit", hint=f"{did_you_mean(name, LIMITS)}; write it like {EXAMPLE}"
            )
        if name in words:
            raise PacelineError(f"--within {part!r}: {name} is given twice", hint=f"keep one of the two: {text}")
        try:
            if not value:
                raise ValueError(f"{name} has no value")
            if name in NAMES:
                names[name] = _parse_names(name, sign, value)
            elif name in COUNTS:
                counts[name] = _parse_bound(sign, value)
            else:
                largest[name] = _parse_largest(name, sign, value)
        except ValueError as error:
            raise PacelineError(f"--within {part!r}: {error}", hint=f"write it like {EXAMPLE}") from None
        words[name] = part
    return Within(
        workers=counts.get("workers", Bound()),
        hosts=counts.get("hosts", Bound()),
        batch=counts.get("batch", Bound()),
        threads=counts.get("threads", Bound()),
        framework=names.get("framework", ()),
        strategy=names.get("strategy", ()),
        model=names.get("model", ()),
        network=names.get("network", ()),
        memory=largest.get("memory"),
        budget=largest.get("budget"),
        deadline=largest.get("deadline"),
        words=words,
    )


def _parse_names(name: str, sign: str, value: str) -> tuple[str, ...]:
    if sign != "=":
        raise ValueError(f"{name} takes names: {name}=…, several separated by |")
    return tuple(dict.fromkeys(word.strip() for word in value.split("|")))


def _parse_bound(sign: str, value: str) -> Bound:
    numbers = tuple(_count(word) for word in value.split("|"))
    if sign == "=":
        return Bound(among=numbers)
    if len(numbers) > 1:
        raise ValueError(f"{value!r} should be one number")
    return Bound(most=numbers[0])


def _parse_largest(name: str, sign: str, value: str) -> float:
    if sign != "<=":
        raise ValueError(f"{name} takes only a largest value: {name}<=…")
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
    """What a user asks of a recommendation."""

    goal: Goal = THROUGHPUT
    prices: Prices = field(default_factory=Prices)
    within: Within = field(default_factory=Within)
    allow: frozenset[str] = frozenset()
    """The classes of strategies that may be ranked with that of the present choice."""
    present: str | None = None
    """The id of the trial in use now; None for the first that was measured."""
    among: tuple[Trial, ...] = ()
    """The only trials that may be chosen; () if the limits alone decide."""


def wish_for(
    goal: str, prices: Prices, within: str = "", *, allow: tuple[str, ...] = (), present: str | None = None
) -> Wish:
    """Checks and returns what a user asks for.

    Raises:
        PacelineError: a goal, limit or class does not exist, or a price is missing or not above zero.
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
    meanings = {
        FLAGS["epoch"]: "samples per epoch",
        FLAGS["price"]: "price per host and hour",
        FLAGS["power"]: "watts per host",
    }
    return "add " + " ".join(flags) + f" ({', '.join(meanings[flag] for flag in flags)})"
