"""Facts of splits: what a check found, and what a reader should know of a split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from cranfield._numbers import count_text, percent_text, rounded
from cranfield.facts.fact import Fact

FindingLevel = Literal["wrong", "attention", "fine"]
MODERATE_SHIFT, LARGE_SHIFT = 0.1, 0.25
"""Kolmogorov's distances from which on a shift is moderate, and large."""

_SHIFTS = {
    "ratings": ("ratings", "the mean rating"),
    "popularity": ("item popularity", "the mean number of training ratings of the rated item"),
    "activity": ("user activity", "the mean number of training ratings of the user"),
}
_QUESTIONS = {
    "past": "how systems would have done at a moment in time, knowing only the past",
    "profiles": "how well users who are not in training are served from a part of their profile",
    "known users": "how well users with training ratings are served ({:,} in the test part)",
    "new users": "what new users are recommended ({:,} in the test part)",
    "new items": "whether new items are found ({:,} in the test part)",
    "order": "how several test items of a user are ranked",
    "tuning": "how to choose hyper-parameters without looking at the test part",
}


class RepeatsInTest(Fact):
    """Test items that their user had before, where events were divided."""

    repeated: int
    of: int
    users: int  # who have some
    of_users: int
    events: Mapping[str, int]  # of each part

    def _said(self) -> str:
        divided = ", ".join(f"{name} {count:,}" for name, count in self.events.items())
        return (
            f"events divided: {divided}; {100 * self.repeated / max(self.of, 1):.1f} % of the test items are repeats "
            f"({self.users:,} of {self.of_users:,} users have some)"
        )


class CountedRepeats(Fact):
    """What counts of a test set in which users have items again, and how many users are left."""

    repeats: str
    repeated: int
    of: int
    users: int
    counted: int  # users with a test item that counts
    again: int  # users with a test item that they had before

    def _said(self) -> str:
        share = f"{100 * self.repeated / max(self.of, 1):.1f} % of the test items are repeats"
        said = {"exclude": "they do not count here", "only": "only they count here", "allow": "they count here"}.get(
            self.repeats, "they count here, but are not recommended"
        )
        left = self.users - self.counted
        gone = f"; {count_text(left, 'user')} without another test item {_are(left)} left out" if left else ""
        return f"{share} ({self.again:,} of {count_text(self.users, 'user')} have some); {said}{gone}"


class StraddlingBaskets(Fact):
    """Baskets or sessions with events before and after a cut, which are in the test part as a whole."""

    count: int
    unit: str
    cut: str

    def _said(self) -> str:
        many = count_text(self.count, self.unit)
        return (
            f"{many} with events before and after {self.cut}: each is at the time of its last event, in the test part"
        )


class SplitVerdict(Fact):
    """How many findings of a check are wrong or need attention."""

    split: str
    wrong: int
    attention: int

    def _said(self) -> str:
        wrong = f"{count_text(self.wrong, 'thing')} wrong" if self.wrong else "nothing wrong"
        return f"{self.split}: {wrong}, {count_text(self.attention, 'thing')} to note."


class SplitFinding(Fact):
    """What a check found."""

    _about: ClassVar[str]
    # ``wrong`` if the split should not be used as it is, ``attention`` if a reader must know it, else ``fine``.
    level: FindingLevel

    @property
    def about(self) -> str:
        """What it is about, in a word or two."""
        return self._about


class PairsInParts(SplitFinding):
    """Pairs, or events, in two parts, named "train and test"; none if there are no parts."""

    _about = "overlap"
    pairs: int = 0
    parts: str = ""
    of: int = 0  # ratings of the smaller part
    thing: str = "(user, item) pair"

    def _said(self) -> str:
        if not self.pairs:
            return f"No {self.thing} is in two parts."
        return (
            f"{count_text(self.pairs, self.thing)} {_are(self.pairs)} in both {self.parts} "
            f"({percent_text(self.pairs / self.of)} of the smaller part)."
        )


class RepeatedItems(SplitFinding):
    """Test items that their user had before: a property of events, and no fault."""

    _about = "repeats"
    repeats: RepeatsInTest

    def _said(self) -> str:
        return f"{self.repeats}; repeats=exclude, allow or only says what counts."


class PairsRepeated(SplitFinding):
    """Rows of a part that repeat a pair of that part."""

    _about = "repeated pairs"
    part: str
    rows: int

    def _said(self) -> str:
        return (
            f"{count_text(self.rows, 'row')} of the {self.part} part {'repeats' if self.rows == 1 else 'repeat'} a "
            "(user, item) pair of that part; decide which row counts."
        )


class WithoutTimes(SplitFinding):
    """Leakage in time cannot be checked."""

    _about = "leakage"

    def _said(self) -> str:
        return "The parts have no times, so leakage in time cannot be checked."


class OlderRatings(SplitFinding):
    """Leakage in time: ratings of a part that are older than some of another part."""

    _about = "leakage"
    part: str
    ratings: int
    of: int  # ratings of the part
    than: Literal["own training", "training", "validation", "item in training"]
    owners: int = 0  # users whose own training they precede, or items that training has only later
    newer: tuple[int, int] | None = None  # training ratings newer than the oldest test rating, of how many
    begins: str = ""  # the moment of the oldest test rating

    def _said(self) -> str:
        older = _share(self.ratings, f"{self.part} rating", self.of)
        match self.than:
            case "own training":
                users = count_text(self.owners, "user")
                return f"{older} of {users} {_are(self.ratings)} older than a training rating of the same user."
            case "item in training":
                return (
                    f"{count_text(self.ratings, f'{self.part} rating')} of {count_text(self.owners, 'item')} came "
                    "before the item's first training rating: at that time, training held nothing about the item."
                )
            case "validation":
                return (
                    f"{older} {_are(self.ratings)} older than the newest validation rating: hyper-parameters are "
                    "chosen with knowledge of the future."
                )
        if not self.ratings:
            return f"No test rating is older than any training rating; the test part begins at {self.begins}."
        newer = "."
        if self.newer is not None:
            newer = (
                f", and {_share(self.newer[0], 'training rating', self.newer[1])} newer than the oldest test rating "
                f"({self.begins}): training contains the future of other users."
            )
        return f"{older} {_are(self.ratings)} older than the newest training rating{newer}"


class ColdStart(SplitFinding):
    """Test users and items without training ratings; of how many, if it is a finding and not a note."""

    _about = "cold start"
    users: int
    items: int
    ratings: int  # of these users and items
    of: int  # test ratings
    of_users: int | None = None
    of_items: int | None = None

    def _said(self) -> str:
        share = f"({count_text(self.ratings, 'test rating')}, {percent_text(self.ratings / self.of)})"
        if self.of_users is None or self.of_items is None:
            unknown = f"{count_text(self.users, 'user')} and {count_text(self.items, 'item')}"
            return f"cold start: {unknown} of the test part have no training rating {share}"
        if not self.ratings:
            return "All users and items of the test part have training ratings."
        users = f"{self.users:,} of {count_text(self.of_users, 'user')}"
        items = f"{self.items:,} of {count_text(self.of_items, 'item')}"
        nobody = "; no test user is known, so the parts may write the ids differently" if self.level == "wrong" else ""
        return f"{users} and {items} of the test part have no training rating {share}{nobody}."


class PartShift(SplitFinding):
    """How far ratings, item popularity or user activity differ between training and test."""

    of: str
    train: float  # the mean
    test: float
    d: float  # the difference of the means in standard deviations of training
    D: float  # Kolmogorov's distance, and its p-value
    p: float

    @property
    def about(self) -> str:
        """What is shifted."""
        return f"shift of {_SHIFTS[self.of][0]}"

    def _said(self) -> str:
        size = "large" if self.D >= LARGE_SHIFT else "moderate" if self.D >= MODERATE_SHIFT else "small"
        p = "p < 0.0001" if self.p < 0.0001 else f"p = {self.p:.3g}"
        return (
            f"The {self.about} from training to test is {size} (Kolmogorov's D = {self.D:.3f}, {p}): "
            f"{_SHIFTS[self.of][1]} goes from {self.train:,.4g} to {self.test:,.4g} (d = {self.d:+.2f})."
        )


class DaysToTest(SplitFinding):
    """The quantiles of the days from a user's last training rating to the first test rating."""

    _about = "gaps"
    users: int
    negative: int  # users whose test part begins before training ends
    days: Mapping[str, float]

    def _said(self) -> str:
        days = {name: days_text(value) for name, value in self.days.items()}
        return (
            f"From a user's last training rating to the first test rating: {days['median']} days (median), "
            f"{days['q1']} to {days['q3']} for the middle half, at most {days['max']}; for {self.negative:,} of "
            f"{count_text(self.users, 'user')} the test part begins before training ends."
        )


class PartSize(SplitFinding):
    """The size of a part, and the quantiles of the ratings per user."""

    _about = "profiles"
    part: str
    ratings: int
    users: int
    items: int
    profiles: Mapping[str, float]

    def _said(self) -> str:
        sizes = self.profiles
        return (
            f"The {self.part} part has {count_text(self.ratings, 'rating')} of {count_text(self.users, 'user')} and "
            f"{count_text(self.items, 'item')}: {sizes['median']:,.0f} per user (median), from {sizes['min']:,.0f} to "
            f"{sizes['max']:,.0f}."
        )


class QuestionsAnswered(SplitFinding):
    """What a split can or cannot show: keys of `_QUESTIONS`, each with the number of users or items it is about."""

    _about = "answers"
    answered: bool
    questions: Mapping[str, int]

    def _said(self) -> str:
        questions = [_QUESTIONS[name].format(number) for name, number in self.questions.items()]
        return f"It {'can' if self.answered else 'cannot'} show {'; '.join(questions)}."


class LeakageInTime(Fact):
    """Test ratings that precede a training rating of the same user, and the share older than the median of training."""

    ratings: int
    of: int
    older: float

    def _said(self) -> str:
        return (
            f"leakage in time: {_share(self.ratings, 'test rating', self.of)} "
            f"{'precedes' if self.ratings == 1 else 'precede'} a training rating of the same user; "
            f"{percent_text(self.older)} of the test ratings are older than the median training rating"
        )


class ShortProfiles(Fact):
    """Users or items with too few ratings for the rule of a split, and what becomes of them."""

    short: int
    becomes: Literal["untested", "training", "not held out", "tested whole"]
    ratings: int = 0  # they have fewer; items in training and those not held out have at most that many
    of: str = "user"  # or item
    total: int = 0  # items, of which the others are tested
    since: str = ""  # the moment from which on ratings count

    def _said(self) -> str:
        short, fewer = count_text(self.short, self.of), f"fewer than {self.ratings} ratings"
        match self.becomes:
            case "untested":
                return f"{short} with too few ratings for a test rating at this ratio"
            case "training" if self.total:
                items = f"{self.short:,} of {self.total:,} items"
                return f"{items} have {self.ratings} ratings or fewer, all kept in training"
            case "training":
                return f"{short} with {fewer}: all in training"
            case "not held out":
                most = count_text(self.ratings, "rating")
                return f"{short} with {most} or fewer: not held out, because no test rating would be left"
        return f"{short} with {fewer} from {self.since} on; all of these are test ratings"


class SessionsHeldOut(Fact):
    """The latest sessions, which are tested, except those too short to have an event after the known ones."""

    sessions: int
    of: int
    cut: str
    short: int
    given: int  # the number of known events, at least

    def _said(self) -> str:
        held = f"{self.sessions:,} of {count_text(self.of, 'session')} end from {self.cut} on and are not in training"
        if not self.short:
            return held
        have, are = ("has", "is") if self.short == 1 else ("have", "are")
        first = "first" if self.given == 1 else f"first {self.given}"
        return f"{held}; {self.short:,} of them {have} no event after the {first} and {are} left out"


class SessionsTooSmall(Fact):
    """Sessions with fewer events than a split requires."""

    sessions: int
    least: int

    def _said(self) -> str:
        return f"{count_text(self.sessions, 'session')} with fewer than {self.least} events: in no part"


class SessionsTied(Fact):
    """Sessions in which a known event and the target are in the same second."""

    sessions: int

    def _said(self) -> str:
        return (
            f"in {count_text(self.sessions, 'session')} the last known event and the target are in the same second; "
            "their order was drawn at random"
        )


class TiedAtCut(Fact):
    """Users whose cut falls among ratings of the same second."""

    users: int

    def _said(self) -> str:
        return (
            f"for {count_text(self.users, 'user')} the cut falls among ratings of the same second; which of these are "
            "test ratings was drawn at random"
        )


class UniformItems(Fact):
    """The items of T, and η, the number of test ratings of each."""

    items: int
    eta: int

    def _said(self) -> str:
        return f"the {self.items:,} most popular items are T, and {self.eta:,} ratings of each are test"


class AboveSigma(Fact):
    """A test part larger than σ, because η follows from ε and the rarest item; the ε that gives σ."""

    share: float
    sigma: float
    rarest: int
    epsilon: float

    def _said(self) -> str:
        return (
            f"the test part is {percent_text(self.share)} of the ratings, more than σ = {percent_text(self.sigma)}, "
            f"because the rarest item of T has {self.rarest:,} ratings; epsilon={self.epsilon:g} keeps T and comes "
            "nearest to σ"
        )


class BelowEpsilon(Fact):
    """Items of T that keep less than ε of their ratings in training, because η was rounded up."""

    exact: float  # η before rounding
    eta: int
    items: int
    least: float
    epsilon: float

    def _said(self) -> str:
        return (
            f"rounding η = {self.exact:.4g} up to {self.eta} leaves {self.items:,} items of T with as little as "
            f"{self.least:.2%} of their ratings in training, a little less than ε = {self.epsilon:g}; rounding=down "
            "keeps to it"
        )


class UntestedHead(Fact):
    """The most popular items, whose ratings outside training are in no part."""

    items: int
    ratings: int

    def _said(self) -> str:
        return f"the {self.items:,} most popular items are not tested: {self.ratings:,} ratings are in no part"


class NewAfterCut(Fact):
    """Users or items without a rating before a cut, and what becomes of their later ratings."""

    number: int
    of: str  # user or item
    cut: str
    ratings: int
    dropped: bool

    def _said(self) -> str:
        done = "dropped" if self.dropped else f"kept; show them separately with the segment cold_{self.of}s"
        return (
            f"{count_text(self.number, self.of)} {'has' if self.number == 1 else 'have'} no rating before {self.cut}; "
            f"their {count_text(self.ratings, 'later rating')}: {done}"
        )


class TakenAfterCut(Fact):
    """Which ratings after a cut are in a part, and how many others are in none."""

    part: str
    target: str | int
    cut: str
    unused: int

    def _said(self) -> str:
        usual = {"all": "all ratings", "random": "a random rating of each user"}
        taken = f"each user's first {self.target} ratings"
        if isinstance(self.target, str):
            taken = usual.get(self.target, f"each user's {self.target} rating")
        return f"{self.part} part: {taken} from {self.cut} on; {count_text(self.unused, 'other rating')} in no part"


class PairsMoved(Fact):
    """Pairs of a predefined split that were in more than one part."""

    pairs: int
    kept_in: str

    def _said(self) -> str:
        return f"{self.pairs:,} pairs were in more than one part; kept in {self.kept_in} only"


class UnequalProbabilities(Fact):
    """A truth without weights whose judgments had probabilities that differ by a factor."""

    factor: float

    def _said(self) -> str:
        return (
            "a user's pairs outside training were judged with probabilities that differ by a factor of "
            f"{self.factor:.1f}, and every judgment counts the same: pairs that are rarely judged, such as known "
            "items, seem to be rarely liked; weight the judgments, or use a random half of them as the truth"
        )


class JudgedByPopularity(Fact):
    """How often popular items are judged outside training, relative to an even sample."""

    ratio: float

    def _said(self) -> str:
        judged = (
            f"outside training, items that are popular in training are judged {self.ratio:.2f} times as often as in an "
            "even sample: "
        )
        if self.ratio < 1:
            return (
                f"{judged}items that people know are missing from these judgments, so they are not a truth as they "
                "are; state the probability of each judgment, or use cf.splits.truths.half"
            )
        return (
            f"{judged}these judgments are chosen like the training ratings, so they are not a truth; "
            "state the probability of each judgment"
        )


def days_text(days: float) -> str:
    """Return days with one decimal."""
    return f"{rounded(days, 1):,.1f}"


def _share(number: int, thing: str, of: int) -> str:
    return f"{count_text(number, thing)} ({percent_text(number / of)})"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
