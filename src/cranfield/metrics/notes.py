"""Notes for the reader of a measurement: one sentence for each thing that happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cranfield._numbers import count_text, listed
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.judgments import Judgments, NegativeGrades, Ranked, notes_on_negative_grades
from cranfield.metrics.definition import Metric
from cranfield.metrics.gains import EXPONENTIAL

# A rating this much below the highest has 2^-50 of its gain, which is lost to rounding in a sum of thousands of gains.
_LONG_SCALE = 50

_SENTENCES: Mapping[str, str] = {
    "lists_in_row_order": "{n} without scores and ranks, taken in the order of the rows",
    "joined_lists": "{n} written in one cell each, and split",
    "nan_scores": "{n} with a NaN score, dropped as not computable",
    "duplicate_items": "{n} repeated in the same list: only the best ranked is kept",
    "rank_disagreements": "{n} where the ranks contradict the scores: the scores decide",
    "missing_ranks": "{n} missing in {lists}: each is a place with an unknown item; gaps=close leaves these places out",
    "users without test ratings": "{n} for users without a test rating, not measured",
    "test users without a list": "{n} without a list: 0 in full averages, left out of reduced ones",
    "recommended items unknown to the test set": "{n} in the lists with an item that nobody rated in the test set",
    "lists whose relevant item was not ranked": "{n} whose relevant item the system could not rank",
}
_THINGS: Mapping[str, str] = {
    "lists_in_row_order": "list",
    "joined_lists": "list",
    "nan_scores": "item",
    "duplicate_items": "item",
    "rank_disagreements": "list",
    "missing_ranks": "rank",
    "users without test ratings": "list",
    "test users without a list": "test user",
    "recommended items unknown to the test set": "place",
    "lists whose relevant item was not ranked": "list",
}


class Graded(NamedTuple):
    """Facts about a test set: notes on its grades, the highest grade, the threshold, lists without relevant items."""

    notes: tuple[str, ...]
    top_grade: float
    threshold: float
    n_lists: int
    n_without_relevant: int

    @classmethod
    def of(cls, judgments: Judgments) -> Graded:
        """Return the facts about judgments."""
        without = int((judgments.n_relevant == 0).sum())
        return cls(judgments.notes, judgments.highest_grade, judgments.threshold, judgments.n_lists, without)


def notes_on(
    systems: Sequence[Ranked],
    counts: Sequence[Mapping[str, int]],
    graded: Graded,
    metrics: Sequence[Metric],
) -> tuple[str, ...]:
    """Return the notes that a reader should see with the scores; a note on several systems appears once."""
    said: dict[str, list[str]] = {}
    for system, count in zip(systems, counts):
        for note in (*_on_counts(count), *_on_ties(system, metrics), *_on_predictions(system, metrics)):
            said.setdefault(note, []).append(system.name)
    everybody = len(systems) if len(systems) > 1 else 0
    return (
        *graded.notes,
        *_on_scale(graded.top_grade, metrics),
        *_on_judgments(graded),
        *(f"{'every run' if len(who) == everybody else ', '.join(who)}: {note}" for note, who in said.items()),
    )


def notes_on_whom(systems: Sequence[Ranked]) -> tuple[str, ...]:
    """Return notes on the users that lists were made for, if their records say that users were left out.

    Examples
    --------
    >>> notes_on_whom([Ranked("knn", made_for="100 users, drawn at random"), Ranked("mine")])
    ('The lists of knn were made for 100 users, drawn at random; the other users of the test set count as users \
without a list, unless coverage is reduced.',)
    """
    names: dict[str, list[str]] = {}
    for system in systems:
        names.setdefault(system.made_for, []).append(system.name)
    return tuple(
        f"The lists of {listed(who)} were made for {users}; the other users of the test set count as users without a "
        "list, unless coverage is reduced."
        for users, who in names.items()
        if users
    )


def notes_on_reading(histories: Sequence[tuple[str, Sequence[Step]]]) -> tuple[str, ...]:
    """Return a note on the format that each source was read as; nothing for what was made here.

    Examples
    --------
    >>> from cranfield.rankings import read_run, read_test
    >>> run, test = read_run({"ann": ["x"]}), read_test({"ann": {"x": 1}})
    >>> notes_on_reading([("the test set was read", test.history), ("knn", run.history)])
    ('the test set was read as qrels, knn as dict',)
    """
    said: dict[str, list[str]] = {}
    for name, history in histories:
        if history and "format" in history[-1].settings:
            said.setdefault(str(history[-1].settings["format"]), []).append(name)
    return (", ".join(f"{', '.join(who)} as {kind}" for kind, who in said.items()),) if said else ()


def notes_on_grades(test: Ratings, metrics: Sequence[Metric], negative_grades: NegativeGrades) -> tuple[str, ...]:
    """Return notes on the scale of a test set: grades below 0, and exponential gains of high grades."""
    top = float(test.values.max(initial=0.0))
    return (*notes_on_negative_grades(test, negative_grades), *_on_scale(top, metrics))


def _on_scale(top: float, metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield notes on scales for which exponential gains are of little use."""
    exponential = [metric for metric in metrics if _is_exponential(metric)]
    if exponential and top > _LONG_SCALE:
        yield (
            f"test ratings reach {top:,.15g}, and 2^r makes a rating {_LONG_SCALE} lower worth nothing in comparison: "
            f"only the highest count in {', '.join(map(str, exponential))}; use gain=rating, or ratings on a shorter "
            "scale"
        )
    above_one = [str(metric) for metric in exponential if dict(metric.parameters).get("gain") in ("exp1", "exp1full")]
    if above_one and top <= 1.0:
        yield f"no test rating is above 1, so nothing has a gain in {', '.join(above_one)}; use gain=exp"


def _is_exponential(metric: Metric) -> bool:
    if metric.definition.name == "ERR" or (metric.definition.name, metric.dialect) == ("nDCG", "elliot"):
        return True
    return dict(metric.parameters).get("gain") in EXPONENTIAL


def _on_judgments(graded: Graded) -> Iterator[str]:
    lists, without = graded.n_lists, graded.n_without_relevant
    if without and without == lists:
        yield (
            f"no test rating is {graded.threshold:g} or more (the highest is {graded.top_grade:g}): nothing is "
            "relevant, and metrics of relevance are undefined"
        )
    elif without:
        yield f"{without:,} of {lists:,} test users have no relevant item: metrics of relevance are undefined for them"


def _on_counts(counts: Mapping[str, int]) -> Iterator[str]:
    for name, sentence in _SENTENCES.items():
        if counts.get(name):
            lists = count_text(counts.get("lists_with_gaps", 0), "list")
            yield sentence.format(n=count_text(counts[name], _THINGS[name]), lists=lists)


def _on_ties(system: Ranked, metrics: Sequence[Metric]) -> Iterator[str]:
    if not system.counts.get("tied_items"):
        return
    cutoffs = sorted({metric.cutoff for metric in metrics if metric.cutoff is not None})
    shares = [(n, system.share_tied_across(n)) for n in cutoffs]
    ties = ", ".join(f"{tied:.1%} of the lists across rank {n}" for n, tied in shares if tied)
    if ties:
        yield f"scores tie in {ties}"
    unsupported = [str(metric) for metric in metrics if not metric.definition.averages_ties]
    if system.ties == "average" and unsupported:
        yield f"ties are broken as in trec_eval, not averaged, in {', '.join(unsupported)}"


def _on_predictions(system: Ranked, metrics: Sequence[Metric]) -> Iterator[str]:
    of_predictions = [str(metric) for metric in metrics if "predictions" in metric.definition.needs]
    if of_predictions and system.has_scores and not system.has_predictions:
        yield f"no predicted ratings were given: {', '.join(of_predictions)} used the scores instead"
