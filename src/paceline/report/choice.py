"""Which configuration is fastest, in one sentence, however many questions a study asks.

Wordings say the same facts at different length, the fullest first: an answer takes the first that it has room for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from paceline.compare import Comparison, PairVerdict
from paceline.report import numbers
from paceline.report.contests import Contest, contests_of
from paceline.report.names import listed, setting, where
from paceline.report.sentences import evidence_of, is_refused

MOST_PLACES = 4
"""Questions whose places an answer has room to name."""
MOST_NAMED = 2
"""Configurations that an answer names as being most often among the fastest; more would say little."""


def choice_wordings(comparison: Comparison) -> list[tuple[str, ...]]:
    """The sentence that says which is fastest, or why none is ranked; [] where nothing was compared."""
    contests, margin = contests_of(comparison), f"{comparison.margin * 100:g} %"
    if not contests:
        wordings = _refusal(comparison)
    elif len(contests) == 1:
        wordings = _one(contests[0], margin)
    else:
        wordings = _several(contests, margin)
    return [(f"{wording}.",) for wording in wordings]


def _one(contest: Contest, margin: str) -> Iterator[str]:
    """The outcome of the only question; then without names, which may be long."""
    yield _outcome(contest, margin)
    total = len(contest.names)
    if contest.winner is None:
        yield f"Of {total} configurations the fastest {len(contest.leaders)} {_close(contest, margin)}"
    else:
        yield f"Of {total} configurations one is proven the fastest, {_factor(contest.closest)} × as fast as the next"


def _several(contests: Sequence[Contest], margin: str) -> Iterator[str]:
    """Two outcomes beside each other; the outcome at the largest size, and who wins how often; then that alone."""
    largest, second = contests[:2]
    if len(contests) == 2:
        yield f"{_outcome(largest, margin)}; {_further(largest, second, margin)}"
    elif largest.winner is not None and largest.workers > second.workers:
        yield f"{_outcome(largest, margin)}; {_record_of(largest.winner, contests, margin)}"
    if len(_wins(contests)) > 1 and len(contests) <= MOST_PLACES and all(contest.where for contest in contests):
        yield _places(contests, margin)
    yield from _tally(contests, margin)


def _outcome(contest: Contest, margin: str) -> str:
    """Who is faster than who, by how much, and how sure that is."""
    place, closest = setting(contest.where), contest.closest
    if contest.winner is None:
        # With its p: after Holm's correction an interval without 1 may still prove nothing.
        ratio = f" ({evidence_of(closest)})" if len(contest.leaders) == 2 else ""
        ahead = f", ahead of {listed(contest.beaten)}" if contest.beaten else ""
        leading = listed(contest.leading)
        # A name such as "k=1" keeps its small letter, and so cannot begin a sentence.
        begun = place or ("" if leading[0].isupper() else "The settings ")
        return f"{begun}{leading} {_close(contest, margin)}{ratio}{ahead}"
    than = contest.names[closest.b]
    if place or contest.winner[0].isupper():
        begun = f"{place}{contest.winner} is"
    else:
        begun, than = f"With {contest.winner}, training is", f"with {than}"
    if len(contest.names) > 2:
        begun, than = f"{begun} the fastest of {len(contest.names)}:", f"{than}, the next"
    note = f"; {closest.note}" if closest.note else ""
    return f"{begun} {_factor(closest)} × as fast as {than} ({_sure(closest)}{note})"


def _further(first: Contest, second: Contest, margin: str) -> str:
    """The outcome of a second question; what both are about is not said again: "with 1 worker, 1.33 ×"."""
    outcome = _outcome(second, margin)
    if second.winner is not None and second.where and _match(first) == _match(second):
        outcome = f"{setting(second.where)}{_factor(second.closest)} ×"
    return f"{outcome[0].lower()}{outcome[1:]}" if second.where else outcome


def _places(contests: Sequence[Contest], margin: str) -> str:
    """Who wins where."""
    clauses = []
    for winner, _ in _wins(contests).most_common():
        won = [contest for contest in contests if contest.winner == winner]
        places = listed([where(contest.where) for contest in won])
        clauses.append(f"{winner} wins {places} ({_range(won)} × as fast as the next)")
    if undecided := [contest for contest in contests if contest.winner is None]:
        places = listed([where(contest.where) for contest in undecided])
        clauses.append(f"{places} the fastest {_close_in_all(undecided, margin)}")
    text = "; ".join(clauses)
    return text if text[0].isupper() else f"The setting {text}"


def _match(contest: Contest) -> tuple[str | None, str, str | None]:
    """Who wins against whom, and what is said about that."""
    return contest.winner, contest.names[contest.closest.b], contest.closest.note


def _record_of(winner: str, contests: Sequence[Contest], margin: str) -> str:
    """How often a winner that was just named wins."""
    won = [contest for contest in contests if contest.winner == winner]
    if len(won) == len(contests):
        return f"it wins {_all(contests)}, by {_range(won)} ×"
    wins = _wins(contests)
    del wins[winner]
    return f"it wins {len(won)} of {len(contests)} comparisons{_counted(wins)}{_undecided(contests, margin)}"


def _tally(contests: Sequence[Contest], margin: str) -> Iterator[str]:
    """Who wins how often; then without names, which may be long."""
    total, wins = len(contests), _wins(contests)
    all_of_them = _all(contests)
    if not wins:
        equal = all(contest.equal for contest in contests)
        close = f"In {all_of_them} the fastest are equally fast within {margin}"
        level = close if equal else f"No winner is proven in any of {total} comparisons"
        yield f"{level}{_often_leading(contests)}"
        yield level
        return
    ((best, count),) = wins.most_common(1)
    factors = f"{_range([contest for contest in contests if contest.winner == best])} × as fast as the next"
    if count == total:
        sizes = {len(contest.names) for contest in contests}
        of_all = f" of {max(sizes)}" if len(sizes) == 1 and max(sizes) > 2 else ""
        named = best if best[0].isupper() else f"The setting {best}"
        yield f"{named} is the fastest{of_all} in {all_of_them}, {factors}"
        yield f"One configuration is the fastest{of_all} in {all_of_them}, {factors}"
        return
    del wins[best]
    undecided = _undecided(contests, margin)
    won = f"Of {total} comparisons {best} wins {count} ({factors}){_counted(wins)}{undecided}"
    yield f"{won}{_often_leading(contests)}"
    yield won
    yield f"Of {total} comparisons {count + sum(wins.values())} have a proven winner{undecided}"


def _all(contests: Sequence[Contest]) -> str:
    return "both comparisons" if len(contests) == 2 else f"all {len(contests)} comparisons"


def _wins(contests: Sequence[Contest]) -> Counter[str]:
    return Counter(contest.winner for contest in contests if contest.winner is not None)


def _counted(wins: Counter[str]) -> str:
    """E.g. ", MXNet 2 and JAX 1"."""
    return f", {listed([f'{name} {count}' for name, count in wins.most_common()])}" if wins else ""


def _undecided(contests: Sequence[Contest], margin: str) -> str:
    """In how many questions no winner is proven."""
    undecided = [contest for contest in contests if contest.winner is None]
    return f"; in {len(undecided)} the fastest {_close_in_all(undecided, margin)}" if undecided else ""


def _close_in_all(contests: Sequence[Contest], margin: str) -> str:
    return _close(next((contest for contest in contests if not contest.equal), contests[0]), margin)


def _close(contest: Contest, margin: str) -> str:
    return f"are equally fast within {margin}" if contest.equal else "cannot be told apart"


def _often_leading(contests: Sequence[Contest]) -> str:
    """Who is most often among the fastest; "" where that sets nobody apart."""
    leading = Counter(name for contest in contests for name in contest.leading)
    members = {name for contest in contests for name in contest.names.values()}
    most = max(leading.values())
    often = [name for name, count in leading.items() if count == most]
    if len(often) > MOST_NAMED or len(often) == len(members):
        return ""
    are = "is" if len(often) == 1 else "are"
    others = Counter({name: count for name, count in leading.items() if name not in often})
    second = [f", {name} in {count}" for name, count in others.most_common(1)] if len(often) == 1 else []
    times = "all" if most == len(contests) else most
    return f"; {listed(often)} {are} among the fastest in {times}{''.join(second)}"


def _range(contests: Sequence[Contest]) -> str:
    """How much faster than the next the winners are: "1.10 to 1.31"."""
    closest = sorted(
        (contest.closest for contest in contests), key=lambda pair: pair.ratio.value if pair.ratio else 0.0
    )
    low, high = _factor(closest[0]), _factor(closest[-1])
    return low if low == high else f"{low} to {high}"


def _factor(pair: PairVerdict) -> str:
    return numbers.value(numbers.known(pair.ratio))


def _sure(pair: PairVerdict) -> str:
    return numbers.sureness(numbers.known(pair.ratio))


def _refusal(comparison: Comparison) -> Iterator[str]:
    """Why nothing is ranked, with the reason where there is room for it."""
    refused = [pair for pair in comparison.verdicts if is_refused(pair)]
    if not refused:
        return
    (reason, _), *others = Counter(pair.note or "" for pair in refused).most_common()
    counted = f"{numbers.counted(len(refused), 'pair')} {'is' if len(refused) == 1 else 'are'} not ranked"
    more = f" (and {numbers.counted(len(others), 'other reason')})" if others else ""
    yield f"{counted}: {reason}{more}"
    yield f"{counted} ({', '.join(sorted({pair.verdict for pair in refused}))}): the verdicts below say why"
