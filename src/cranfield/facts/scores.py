"""Facts of scores: how lists and test set were read and joined, who counts, and inputs that look implausible."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield._numbers import count_text, few, listed, number_text, percent_text
from cranfield.facts.fact import Fact

Id = str | int | float
"""The id of a user or of an item."""

# Maximum number of runs that a warning names.
_RUNS_SHOWN = 4

LONG_SCALE = 50
"""A rating so much below the highest has 2^-50 of its gain, which is lost to rounding in a sum of many gains."""

LIST_COUNTS = {
    "lists_in_row_order": ("list", "without scores and ranks, taken in the order of the rows"),
    "joined_lists": ("list", "written in one cell each, and split"),
    "nan_scores": ("item", "with a NaN score, dropped as not computable"),
    "duplicate_items": ("item", "repeated in the same list: only the best ranked is kept"),
    "rank_disagreements": ("list", "where the ranks contradict the scores: the scores decide"),
    "missing_ranks": (
        "rank",
        "missing in {lists}: each is a place with an unknown item; gaps=close leaves these places out",
    ),
    "users without test ratings": ("list", "for users without a test rating, not measured"),
    "test users without a list": ("test user", "without a list: 0 in full averages, left out of reduced ones"),
    "recommended items unknown to the test set": (
        "place",
        "in the lists with an item that nobody rated in the test set",
    ),
    "lists whose relevant item was not ranked": ("list", "whose relevant item the system could not rank"),
}
"""What may happen to lists while they are read and joined, by name: the thing that is counted, and what happened."""

_SUSPICIONS = {
    "empty": "every list is empty, and scores 0",
    "copy": "the lists hold the items of the test set with their ratings, as a copy of it would",
    "swapped": "the test set and the run seem to be swapped: the test set holds scores, and this run ratings",
    "turned": (
        "its users seem to be the items of the test set, and its items the users: their ids fit both columns, and the "
        "lists look like lists only if users and items are swapped; name the columns of the run, user=... and "
        "item=..., or of the test set"
    ),
}

_FORMS = {
    "Unicode normalisation": "é as one character or as two: write both in the form NFC",
    "a prefix": "user_7 against 7",
    "a decimal part": "1.0 against 1",
    "leading zeros": "007 against 7",
}
"""Examples of ways in which the same ids may be written differently."""


class RelevantItems(Fact):
    """What gives an item its value, and in which metrics: a threshold, or a gain instead of it."""

    threshold: float | None  # None if it is still to be chosen from the ratings
    metrics: tuple[str, ...]  # that use the threshold
    gains: tuple[tuple[str, tuple[str, ...]], ...]  # the formula of a gain, and the metrics that use it

    def _said(self) -> str:
        which = f" ({', '.join(self.metrics)})" if self.gains else ""
        from_where = "as the ratings suggest" if self.threshold is None else threshold_text(self.threshold)
        under = [f"relevant {from_where}{which}"] if self.metrics else []
        return "; ".join([*under, *(f"{', '.join(names)}: gain = {gain}" for gain, names in self.gains)])


class NothingRelevant(Fact):
    """No test rating reaches the threshold of relevance, as a clause."""

    threshold: float | None
    highest: float | None

    def _said(self) -> str:
        highest = "" if self.highest is None else f"; the highest is {self.highest:g}"
        return f"no test rating is {'relevant' if self.threshold is None else f'{self.threshold:g}'} or more{highest}"


class WithoutValues(Fact):
    """Metrics that have no value, since nothing is relevant."""

    metrics: tuple[str, ...]
    reason: NothingRelevant

    def _said(self) -> str:
        return f"{', '.join(self.metrics)}: nothing can be said, since {self.reason}"


class WithoutRelevant(Fact):
    """Test users without a relevant item: some of them, or all."""

    users: int
    of: int
    threshold: float
    highest: float

    def _said(self) -> str:
        if self.users == self.of:
            none = f"no test rating is {self.threshold:g} or more (the highest is {self.highest:g})"
            return f"{none}: nothing is relevant, and metrics of relevance are undefined"
        many = f"{self.users:,} of {self.of:,} test users have no relevant item"
        return f"{many}: metrics of relevance are undefined for them"


class RelevanceLevels(Fact):
    """The levels of relevance that metrics are also measured at: their names and lowest ratings."""

    levels: tuple[tuple[str, float], ...]

    def _said(self) -> str:
        return "levels of relevance: " + ", ".join(f"{name} from {level:g}" for name, level in self.levels)


class GradesBelowZero(Fact):
    """Grades below 0 of a test set, and how they are read: judged, unjudged or pooled."""

    count: int
    without: int  # users who have no other grade
    reading: str

    def _said(self) -> str:
        grades = f"{count_text(self.count, 'test grade')} below 0, read as"
        if self.reading == "judged":
            return f"{grades} judged and not relevant; some collections mean pooled and not judged: see negative_grades"
        many = f"{self.without:,} test users have no other and are"
        many = "1 test user has no other grade and is" if self.without == 1 else many
        gone = f"; {many} not measured" if self.without else ""
        return f"{grades} {'not judged' if self.reading == 'unjudged' else 'pooled and not judged'}{gone}"


class ExponentialGains(Fact):
    """Metrics with exponential gains, which are of little use for test ratings up to this one."""

    highest: float
    metrics: tuple[str, ...]

    def _said(self) -> str:
        which = ", ".join(self.metrics)
        if self.highest <= LONG_SCALE:
            return f"no test rating is above 1, so nothing has a gain in {which}; use gain=exp"
        return (
            f"test ratings reach {self.highest:,.15g}, and 2^r makes a rating {LONG_SCALE} lower worth nothing in "
            f"comparison: only the highest count in {which}; use gain=rating, or ratings on a shorter scale"
        )


class OfRun(Fact):
    """A fact about the lists of one run or of several, which `OfRuns` names."""


class Implausible(OfRun):
    """A fact about a run that looks like a mistake."""


class OfRuns(Fact):
    """The runs that a fact is about."""

    stated: OfRun
    runs: tuple[str, ...]
    every: bool  # whether these are all of several runs

    def _said(self) -> str:
        names = listed(self.runs) if isinstance(self.stated, Implausible) else ", ".join(self.runs)
        return f"{'every run' if self.every else names}: {self.stated}"

    @staticmethod
    def of(stated: Sequence[tuple[str, OfRun]], runs: int) -> list[OfRuns]:
        """Return facts about single runs, of which there are so many, each with all runs that it is about."""
        names: dict[str, list[str]] = {}
        for name, fact in stated:
            names.setdefault(str(fact), []).append(name)
        first = {str(fact): fact for _, fact in reversed(stated)}  # numbers that are shown alike are the same
        return [OfRuns(first[said], tuple(who), len(who) == runs > 1) for said, who in names.items()]


class ListCount(OfRun):
    """How many lists, items, ranks or users something happened to: see `LIST_COUNTS`."""

    kind: str
    count: int
    lists: int = 0  # with missing ranks

    def _said(self) -> str:
        thing, happened = LIST_COUNTS[self.kind]
        return f"{count_text(self.count, thing)} {happened.format(lists=count_text(self.lists, 'list'))}"


class TiedScores(OfRun):
    """The shares of the lists in which scores tie across ranks."""

    shares: tuple[tuple[int, float], ...]

    def _said(self) -> str:
        ties = ", ".join(f"{share:.1%} of the lists across rank {rank}" for rank, share in self.shares)
        return f"scores tie in {ties}"


class TiesBroken(OfRun):
    """Metrics that do not average over the orders of tied items."""

    metrics: tuple[str, ...]

    def _said(self) -> str:
        return f"ties are broken as in trec_eval, not averaged, in {', '.join(self.metrics)}"


class ScoresAsRatings(OfRun):
    """Metrics of predicted ratings that used scores."""

    metrics: tuple[str, ...]

    def _said(self) -> str:
        return f"no predicted ratings were given: {', '.join(self.metrics)} used the scores instead"


class Unranked(Fact):
    """A system that does not rank many of the candidates."""

    system: str
    share: float

    def _said(self) -> str:
        return (
            f"{self.system}: {self.share:.0%} of the candidates are in no list, and count as ranked below all others; "
            "if they are training items, give these as train=..."
        )


class OutsideCatalogue(Fact):
    """The items in the whole lists of a system that are not in the catalogue."""

    system: str
    entries: int  # outside
    recommended: int  # all entries
    items: int | None  # distinct ones outside; None for several folds together, whose items are not compared
    examples: tuple[str, ...]  # some of these items

    def _said(self) -> str:
        number = "" if self.items is None else f"{self.items:,} "
        items = "item that is" if self.items == 1 else "items that are"
        return (
            f"{self.system} recommends {number}{items} not in the catalogue, such as {', '.join(self.examples)}: "
            f"{self.entries:,} of its {self.recommended:,} recommendations "
            f"({percent_text(self.entries / self.recommended)}), counted separately from unjudged ones"
        )


class ServedUsers(Fact):
    """The users that lists were made for, where some were left out."""

    min_ratings: int = 0  # the lowest number of training ratings of a user; 0 if that does not matter
    sample: int | float | None = None  # how many of them were drawn, a number or a share; None: all have lists

    def _said(self) -> str:
        enough = f" with at least {self.min_ratings} training ratings" if self.min_ratings else ""
        if self.sample is None:
            return f"users{enough}"
        drawn = f"{100 * self.sample:g} % of the" if isinstance(self.sample, float) else f"{self.sample:,}"
        return f"{drawn} users{enough}, drawn at random"


class MadeFor(Fact):
    """The users that lists were made for, if others were left out."""

    systems: tuple[str, ...]
    users: ServedUsers

    def _said(self) -> str:
        return (
            f"The lists of {listed(self.systems)} were made for {self.users}; the other users of the test set count as "
            "users without a list, unless coverage is reduced."
        )

    @property
    def brief(self) -> str:
        """The same in a few words."""
        return f"{few(self.systems, 3)}: lists for {self.users} only"


class AveragedOver(Fact):
    """How many users or lists each system is averaged over by metrics that are undefined for others."""

    metrics: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]  # by system
    unit: str

    def _said(self) -> str:
        if len({count for _, count in self.counts}) == 1:
            whose = "the system" if len(self.counts) == 1 else "each system"
            who = f"over the {count_text(self.counts[0][1], self.unit)} for whom {whose} has a value"
        else:
            each = ", ".join(f"{system} {count:,}" for system, count in self.counts)
            who = f"each system over the {self.unit}s for whom it has a value ({each})"
        return f"{', '.join(self.metrics)}: {who}"


class InFold(Fact):
    """A fact about one fold or repetition; numbers are counted from 1, and None if there is only one."""

    stated: Fact
    fold: int | None
    repetition: int | None = None

    def _said(self) -> str:
        where = {"repetition": self.repetition, "fold": self.fold}
        return f"{', '.join(f'{name} {n}' for name, n in where.items() if n is not None)}: {self.stated}"

    @staticmethod
    def joined(folds: Sequence[Sequence[Fact]], repetitions: Sequence[int] | None = None) -> list[Fact]:
        """Return the facts of several folds: those common to all of them once, the others with their fold."""
        of_folds = [{str(fact): fact for fact in facts} for facts in folds]
        times = list(repetitions or [0] * len(folds))
        common = {said: fact for said, fact in of_folds[0].items() if all(said in others for others in of_folds)}
        joined: list[Fact] = [*common.values()]
        for place, of_fold in enumerate(of_folds):
            fold = times[:place].count(times[place]) + 1 if times.count(times[place]) > 1 else None
            repetition = times[place] + 1 if len(set(times)) > 1 else None
            joined += [InFold(fact, fold, repetition) for said, fact in of_fold.items() if said not in common]
        return joined


class ReadAs(Fact):
    """The formats that sources were read as: each with its sources."""

    formats: tuple[tuple[str, tuple[str, ...]], ...]

    def _said(self) -> str:
        return ", ".join(f"{', '.join(sources)} as {format}" for format, sources in self.formats)


class RepeatsHidden(Fact):
    """Items that users had before count, but are not recommended, so that no list is perfect."""

    most: tuple[tuple[str, float], ...]  # the average of perfect lists of the other items, by metric

    def _said(self) -> str:
        most = listed([f"{metric} {number_text(value)}" for metric, value in self.most])
        return f"items that the user had count but are not recommended, so no system can exceed {most}"


class RepeatsAlone(Fact):
    """Only items that users had before are ranked, which are few, so that a random order finds many of them."""

    random: tuple[tuple[str, float], ...]  # Recall@n of a random order

    def _said(self) -> str:
        random = listed([f"{metric} {number_text(value)}" for metric, value in self.random])
        return f"only items that the user had are ranked, which looks easy: a random order of them has {random}"


class RepeatsFound(Fact):
    """How many items of a system's lists their users had before, and what the lists find of these and of others."""

    system: str
    cutoff: int
    share: float  # of repeats in the lists; NaN if that is not known
    repeated: float  # Recall of the items that users had, over users with such test items
    new: float

    def _said(self) -> str:
        return (
            f"{100 * self.share:.1f} % of the top {self.cutoff} of {self.system} are repeats; it finds "
            f"{100 * self.repeated:.1f} % of the repeated and {100 * self.new:.1f} % of the new items"
        )


class PredictionsRight(Fact):
    """How many of a system's predicted ratings are right within a margin, as a mean over users."""

    system: str
    share: float
    margin: float

    def _said(self) -> str:
        return f"{self.system} predicts {100 * self.share:.1f} % of the ratings right, within {self.margin:.3g}."


class SharedRatings(Fact):
    """Test ratings that are in the training set too."""

    shared: int
    ratings: int

    def _said(self) -> str:
        return (
            f"{self.shared:,} of {self.ratings:,} test ratings ({self.shared / self.ratings:.0%}) are in the training "
            "set too: a system that was trained on it has seen them; if they are events that repeat, say what counts "
            "with repeats=exclude, allow or only"
        )


class FewInCommon(Implausible):
    """A run and a test set that have few users or items in common, or write them differently."""

    things: str
    met: int
    of_run: int
    of_test: int
    run_ids: tuple[Id, ...]  # examples of those that the other side lacks
    test_ids: tuple[Id, ...]
    forms: tuple[str, ...]  # how these are written differently

    def _said(self) -> str:
        reason = f"; these differ by {form_text(self.forms)}" if self.forms else ""
        return (
            f"the test set has only {self.met:,} of the {self.of_run:,} {self.things} of the run, and {self.of_test:,} "
            f"in all; the others of the run are {ids_text(self.run_ids)}, those of the test set "
            f"{ids_text(self.test_ids)}{reason}"
        )


class Suspicion(Implausible):
    """A run that looks like a mistake: ``empty``, a ``copy`` of the test set, or ``swapped`` with it.

    Or its users and items are ``turned``.
    """

    kind: str

    def _said(self) -> str:
        return _SUSPICIONS[self.kind]


class NoHits(Implausible):
    """Lists without any hit, and how many chance alone would find."""

    expected: float

    def _said(self) -> str:
        return (
            f"no list holds any item that its user has rated in the test set, although chance alone would find about "
            f"{self.expected:,.0f}"
        )


class SeenItems(Fact):
    """Items in lists that their users rated in training: of each run, and of how many items."""

    runs: tuple[tuple[str, int, int], ...]
    repeated: float = 0.0  # the share of the test ratings that are in training too

    def _said(self) -> str:
        seen = [f"{seen:,} of {of:,} items of {name} ({seen / of:.0%})" for name, seen, of in self.runs[:_RUNS_SHOWN]]
        if len(self.runs) > _RUNS_SHOWN:
            seen.append(f"those of {len(self.runs) - _RUNS_SHOWN} more runs")
        which = "which take up places and are not in the test set"
        if self.repeated:
            which = f"as {percent_text(self.repeated)} of the test ratings are"
        return f"lists hold items from their user's training ratings, {which}: {listed(seen)}"


class SameLists(Fact):
    """Runs with the same lists under different names."""

    runs: tuple[str, ...]

    def _said(self) -> str:
        return f"{listed(self.runs)} hold the same lists, as if one file were given under several names"


def threshold_text(threshold: float) -> str:
    """Return the lowest relevant rating, to follow the word relevant."""
    return f"from {threshold!r}".removesuffix(".0")


def form_text(forms: Sequence[str]) -> str:
    """Return how ids are written differently, with an example if there is one difference."""
    example = _FORMS.get(forms[0])
    return f"{forms[0]} ({example})" if len(forms) == 1 and example else listed(forms)


def ids_text(ids: Sequence[Id]) -> str:
    """Return some ids as text."""
    return listed([repr(known) for known in ids])


class ScoredFirst(Fact):
    """How often the best system under the decisions of a page is first under others that were computed with them."""

    system: str
    first: int
    of: int
    # For each choice of a decision: in how many combinations the system is first, and of how many.
    by_option: tuple[tuple[str, str, int, int], ...]

    def _said(self) -> str:
        if self.first == self.of:
            return f"{self.system} is first under all {self.of:,} combinations of decisions."
        decision, option, first, of = min(self.by_option, key=lambda counted: counted[2] / counted[3])
        least = f"least often with “{decision}: {option}” ({first:,} of {of:,})"
        return f"{self.system} is first under {self.first:,} of {self.of:,} combinations of decisions, {least}."
