"""Every fact of ratings is said in one sentence, and comes back from JSON as it was."""

from __future__ import annotations

import json

import pytest

from cranfield.facts import Fact, ratings

SAID = [
    (ratings.ImplicitFeedback(), "There is no rating column: every rating is 1 (implicit feedback)."),
    (
        ratings.RatingsInNumbers("films", 1200, 30, 400, 0.1),
        "films: 1,200 ratings of 400 items by 30 users (10 % of all pairs).",
    ),
    (ratings.RatingsInNumbers(None, 1, 1, 1, 1.0), "1 rating of 1 item by 1 user (100 % of all pairs)."),
    (ratings.MergedRepeats(1, "last"), "1 repeated rating was merged (repeated='last')."),
    (ratings.MergedRepeats(1200, "sum"), "1,200 repeated ratings were merged (repeated='sum')."),
    (
        ratings.FewRatings(3, "users", 5),
        "3 users have fewer than 5 ratings after the filter, because it removed others; repeat=true repeats the filter "
        "until there are none",
    ),
    (
        ratings.KeptEvents(5000, 1200, "sum", "max"),
        "5,000 events of 1,200 pairs of user and item: splits divide the events, and merge each part by itself (sum in "
        "training, max elsewhere).",
    ),
    (
        ratings.TiedBaskets(2),
        "2 users with several baskets at the same time: these are in the order of ids.",
    ),
    (
        ratings.BasketsAgainstTime(1),
        "1 user with baskets whose numbers run against their times: the order is that of the times.",
    ),
    (ratings.WithoutFeatures(1, 3, "user"), "There are no features for 1 of the 3 users."),
    (ratings.UnknownIds(2, "items"), "2 of the given items are not in the ratings"),
    (
        ratings.OtherProfiles(7),
        "7 users have profiles of a different size than requested: the item counts leave no room",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact


def test_every_fact_of_ratings_has_a_sentence_here():
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ == ratings.__name__}
    assert {type(fact) for fact, _ in SAID} == kinds
