"""Every fact of a split is said in one sentence, which is written here once, and comes back from JSON as it was."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cranfield.facts import Fact, split

MOMENT = "2001-01-01 00:00:00"
LEAKED = split.OlderRatings("wrong", "test", 1, 2, "training", newer=(3, 4), begins=MOMENT)
COLD = split.ColdStart("attention", 3, 1, 10, 40)
SHIFT = split.PartShift("fine", "popularity", 1234.5, 1000.0, -0.25, 0.0999, 0.00001)
SHORT = split.ShortProfiles(2, "untested")

SAID: list[tuple[Fact, str]] = [
    (
        split.RepeatsInTest(1663, 10000, 7164, 13858, {"train": 480611, "test": 91322}),
        "events divided: train 480,611, test 91,322; 16.6 % of the test items are repeats (7,164 of 13,858 users have some)",
    ),
    (
        split.RepeatedItems("fine", split.RepeatsInTest(1, 4, 1, 2, {"train": 5, "test": 4})),
        "events divided: train 5, test 4; 25.0 % of the test items are repeats (1 of 2 users have some); repeats=exclude, "
        "allow or only says what counts.",
    ),
    (split.PairsInParts("fine", thing="event"), "No event is in two parts."),
    (
        split.CountedRepeats("exclude", 25, 100, 24, 22, 9),
        "25.0 % of the test items are repeats (9 of 24 users have some); they do not count here; 2 users without another "
        "test item are left out",
    ),
    (
        split.CountedRepeats("only", 25, 100, 24, 24, 24),
        "25.0 % of the test items are repeats (24 of 24 users have some); only they count here",
    ),
    (
        split.CountedRepeats("hide", 25, 100, 24, 24, 9),
        "25.0 % of the test items are repeats (9 of 24 users have some); they count here, but are not recommended",
    ),
    (
        split.StraddlingBaskets(3, "basket", "2001-01-01"),
        "3 baskets with events before and after 2001-01-01: each is at the time of its last event, in the test part",
    ),
    (split.SplitVerdict("mine", 0, 1), "mine: nothing wrong, 1 thing to note."),
    (split.SplitVerdict("mine", 2, 0), "mine: 2 things wrong, 0 things to note."),
    (split.PairsInParts("fine"), "No (user, item) pair is in two parts."),
    (
        split.PairsInParts("wrong", 1, "train and test", 8),
        "1 (user, item) pair is in both train and test (12.5% of the smaller part).",
    ),
    (
        split.PairsRepeated("wrong", "train", 2),
        "2 rows of the train part repeat a (user, item) pair of that part; decide which row counts.",
    ),
    (split.SessionsHeldOut(20, 100, MOMENT, 0, 1), f"20 of 100 sessions end from {MOMENT} on and are not in training"),
    (
        split.SessionsHeldOut(20, 100, MOMENT, 3, 2),
        f"20 of 100 sessions end from {MOMENT} on and are not in training; 3 of them have no event after the first 2 and are left out",
    ),
    (split.SessionsTooSmall(1, 2), "1 session with fewer than 2 events: in no part"),
    (
        split.SessionsTied(2),
        "in 2 sessions the last known event and the target are in the same second; their order was drawn at random",
    ),
    (split.WithoutTimes("wrong"), "The parts have no times, so leakage in time cannot be checked."),
    (
        LEAKED,
        "1 test rating (50.0%) is older than the newest training rating, and 3 training ratings (75.0%) newer than the oldest test rating (2001-01-01 00:00:00): training contains the future of other users.",
    ),
    (
        replace(LEAKED, ratings=0),
        "No test rating is older than any training rating; the test part begins at 2001-01-01 00:00:00.",
    ),
    (
        replace(LEAKED, part="validation", newer=None),
        "1 validation rating (50.0%) is older than the newest training rating.",
    ),
    (
        replace(LEAKED, than="validation"),
        "1 test rating (50.0%) is older than the newest validation rating: hyper-parameters are chosen with knowledge of the future.",
    ),
    (
        replace(LEAKED, than="own training", ratings=2, owners=1),
        "2 test ratings (100.0%) of 1 user are older than a training rating of the same user.",
    ),
    (
        replace(LEAKED, than="item in training", ratings=2, owners=2),
        "2 test ratings of 2 items came before the item's first training rating: at that time, training held nothing about the item.",
    ),
    (
        COLD,
        "cold start: 3 users and 1 item of the test part have no training rating (10 test ratings, 25.0%)",
    ),
    (
        replace(COLD, of_users=3, of_items=20, level="wrong"),
        "3 of 3 users and 1 of 20 items of the test part have no training rating (10 test ratings, 25.0%); no test user is known, so the parts may write the ids differently.",
    ),
    (
        split.ColdStart("fine", 0, 0, 0, 40, 3, 20),
        "All users and items of the test part have training ratings.",
    ),
    (
        SHIFT,
        "The shift of item popularity from training to test is small (Kolmogorov's D = 0.100, p < 0.0001): the mean number of training ratings of the rated item goes from 1,234 to 1,000 (d = -0.25).",
    ),
    (
        replace(SHIFT, of="ratings", D=0.25, p=0.02),
        "The shift of ratings from training to test is large (Kolmogorov's D = 0.250, p = 0.02): the mean rating goes from 1,234 to 1,000 (d = -0.25).",
    ),
    (
        split.DaysToTest("fine", 12, 1, {"min": -3.0, "q1": -0.01, "median": 1.25, "q3": 7.0, "max": 1234.56}),
        "From a user's last training rating to the first test rating: 1.2 days (median), 0.0 to 7.0 for the middle half, at most 1,234.6; for 1 of 12 users the test part begins before training ends.",
    ),
    (
        split.PartSize("fine", "test", 1200, 300, 1, {"min": 1.0, "median": 4.0, "max": 30.0}),
        "The test part has 1,200 ratings of 300 users and 1 item: 4 per user (median), from 1 to 30.",
    ),
    (
        split.QuestionsAnswered("fine", False, {"past": 0, "new users": 1200}),
        "It cannot show how systems would have done at a moment in time, knowing only the past; what new users are recommended (1,200 in the test part).",
    ),
    (
        split.LeakageInTime(1, 8, 0.5),
        "leakage in time: 1 test rating (12.5%) precedes a training rating of the same user; 50.0% of the test ratings are older than the median training rating",
    ),
    (SHORT, "2 users with too few ratings for a test rating at this ratio"),
    (replace(SHORT, becomes="training", ratings=3), "2 users with fewer than 3 ratings: all in training"),
    (
        replace(SHORT, becomes="training", ratings=3, of="item", total=7),
        "2 of 7 items have 3 ratings or fewer, all kept in training",
    ),
    (
        replace(SHORT, becomes="not held out", ratings=1, of="item"),
        "2 items with 1 rating or fewer: not held out, because no test rating would be left",
    ),
    (
        replace(SHORT, becomes="tested whole", ratings=3, since=MOMENT),
        "2 users with fewer than 3 ratings from 2001-01-01 00:00:00 on; all of these are test ratings",
    ),
    (
        split.TiedAtCut(1),
        "for 1 user the cut falls among ratings of the same second; which of these are test ratings was drawn at random",
    ),
    (split.UniformItems(1201, 118), "the 1,201 most popular items are T, and 118 ratings of each are test"),
    (
        split.AboveSigma(0.8, 0.2, 10, 0.8),
        "the test part is 80.0% of the ratings, more than σ = 20.0%, because the rarest item of T has 10 ratings; epsilon=0.8 keeps T and comes nearest to σ",
    ),
    (
        split.BelowEpsilon(117.6, 118, 3, 0.1973, 0.2),
        "rounding η = 117.6 up to 118 leaves 3 items of T with as little as 19.73% of their ratings in training, a little less than ε = 0.2; rounding=down keeps to it",
    ),
    (split.UntestedHead(10, 1500), "the 10 most popular items are not tested: 1,500 ratings are in no part"),
    (
        split.NewAfterCut(1, "user", MOMENT, 3, dropped=True),
        "1 user has no rating before 2001-01-01 00:00:00; their 3 later ratings: dropped",
    ),
    (
        split.NewAfterCut(2, "item", MOMENT, 1, dropped=False),
        "2 items have no rating before 2001-01-01 00:00:00; their 1 later rating: kept; show them separately with the segment cold_items",
    ),
    (
        split.TakenAfterCut("test", "last", MOMENT, 2),
        "test part: each user's last rating from 2001-01-01 00:00:00 on; 2 other ratings in no part",
    ),
    (
        split.TakenAfterCut("validation", 3, MOMENT, 1),
        "validation part: each user's first 3 ratings from 2001-01-01 00:00:00 on; 1 other rating in no part",
    ),
    (split.PairsMoved(1200, "test"), "1,200 pairs were in more than one part; kept in test only"),
    (
        split.UnequalProbabilities(4.96),
        "a user's pairs outside training were judged with probabilities that differ by a factor of 5.0, and every judgment counts the same: pairs that are rarely judged, such as known items, seem to be rarely liked; weight the judgments, or use a random half of them as the truth",
    ),
    (
        split.JudgedByPopularity(0.5),
        "outside training, items that are popular in training are judged 0.50 times as often as in an even sample: items that people know are missing from these judgments, so they are not a truth as they are; state the probability of each judgment, or use cf.splits.truths.half",
    ),
    (
        split.JudgedByPopularity(1.5),
        "outside training, items that are popular in training are judged 1.50 times as often as in an even sample: these judgments are chosen like the training ratings, so they are not a truth; state the probability of each judgment",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact


def test_every_fact_of_a_split_has_a_sentence_here():
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ == split.__name__}
    assert {type(fact) for fact, _ in SAID} == kinds - {split.SplitFinding}


def test_a_finding_says_what_it_is_about():
    assert [fact.about for fact in (LEAKED, COLD, SHIFT)] == ["leakage", "cold start", "shift of item popularity"]
