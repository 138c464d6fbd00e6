"""Every fact of scores, and of how groups are made, is said in one sentence, and comes back from JSON as it was."""

# ruff: noqa: E501
from __future__ import annotations

import json

import pytest

from cranfield.facts import Fact, scores

NOTHING = scores.NothingRelevant(4.0, 3.0)
COUNT = scores.ListCount("nan_scores", 2)
TURNED = scores.Suspicion("turned")
FEW = scores.FewInCommon("users", 9, 100, 2000, ("a ", "b"), (1, 2, 3), ("leading zeros",))

SAID: list[tuple[Fact, str]] = [
    (
        scores.SeenItems((("a", 10, 40),), 0.25),
        "lists hold items from their user's training ratings, as 25.0% of the test ratings are: 10 of 40 items of a (25%)",
    ),
    (scores.ServedUsers(min_ratings=5), "users with at least 5 training ratings"),
    (scores.ServedUsers(sample=0.1), "10 % of the users, drawn at random"),
    (scores.ServedUsers(3, 2000), "2,000 users with at least 3 training ratings, drawn at random"),
    (scores.RelevantItems(4.0, ("P", "AP"), (("rating", ("nDCG",)),)), "relevant from 4 (P, AP); nDCG: gain = rating"),
    (scores.RelevantItems(None, ("P",), ()), "relevant as the ratings suggest"),
    (scores.RelevantItems(3.5, (), (("2^rating − 1", ("ERR", "DCG")),)), "ERR, DCG: gain = 2^rating − 1"),
    (NOTHING, "no test rating is 4 or more; the highest is 3"),
    (scores.NothingRelevant(None, None), "no test rating is relevant or more"),
    (
        scores.WithoutValues(("P@10", "RR"), NOTHING),
        "P@10, RR: nothing can be said, since no test rating is 4 or more; the highest is 3",
    ),
    (
        scores.WithoutRelevant(1200, 5000, 4.0, 5.0),
        "1,200 of 5,000 test users have no relevant item: metrics of relevance are undefined for them",
    ),
    (
        scores.WithoutRelevant(7, 7, 4.0, 3.0),
        "no test rating is 4 or more (the highest is 3): nothing is relevant, and metrics of relevance are undefined",
    ),
    (
        scores.RelevanceLevels((("Low-High", 1.0), ("High", 7.75))),
        "levels of relevance: Low-High from 1, High from 7.75",
    ),
    (
        scores.GradesBelowZero(3, 0, "judged"),
        "3 test grades below 0, read as judged and not relevant; some collections mean pooled and not judged: see negative_grades",
    ),
    (
        scores.GradesBelowZero(1, 1, "unjudged"),
        "1 test grade below 0, read as not judged; 1 test user has no other grade and is not measured",
    ),
    (
        scores.GradesBelowZero(3000, 2000, "pooled"),
        "3,000 test grades below 0, read as pooled and not judged; 2,000 test users have no other and are not measured",
    ),
    (
        scores.ExponentialGains(5000.0, ("ERR", "DCG(gain=exp)")),
        "test ratings reach 5,000, and 2^r makes a rating 50 lower worth nothing in comparison: only the highest count in ERR, DCG(gain=exp); use gain=rating, or ratings on a shorter scale",
    ),
    (
        scores.ExponentialGains(1.0, ("DCG(gain=exp1)",)),
        "no test rating is above 1, so nothing has a gain in DCG(gain=exp1); use gain=exp",
    ),
    (COUNT, "2 items with a NaN score, dropped as not computable"),
    (
        scores.ListCount("missing_ranks", 12, 2),
        "12 ranks missing in 2 lists: each is a place with an unknown item; gaps=close leaves these places out",
    ),
    (scores.OfRuns(COUNT, ("a", "b", "c"), every=False), f"a, b, c: {COUNT}"),
    (scores.OfRuns(COUNT, ("a", "b", "c"), every=True), f"every run: {COUNT}"),
    (scores.OfRuns(TURNED, ("a", "b", "c"), every=False), f"a, b and c: {TURNED}"),
    (
        scores.TiedScores(((5, 0.031), (10, 0.5))),
        "scores tie in 3.1% of the lists across rank 5, 50.0% of the lists across rank 10",
    ),
    (scores.TiesBroken(("bpref", "AUC")), "ties are broken as in trec_eval, not averaged, in bpref, AUC"),
    (scores.ScoresAsRatings(("RMSE",)), "no predicted ratings were given: RMSE used the scores instead"),
    (
        scores.Unranked("mine", 0.254),
        "mine: 25% of the candidates are in no list, and count as ranked below all others; if they are training items, give these as train=...",
    ),
    (
        scores.OutsideCatalogue("mine", 30, 1200, 20, ("x", "y")),
        "mine recommends 20 items that are not in the catalogue, such as x, y: 30 of its 1,200 recommendations (2.5%), counted separately from unjudged ones",
    ),
    (
        scores.OutsideCatalogue("mine", 3, 30, None, ("x",)),
        "mine recommends items that are not in the catalogue, such as x: 3 of its 30 recommendations (10.0%), counted separately from unjudged ones",
    ),
    (
        scores.MadeFor(("knn", "mf"), "100 users, drawn at random"),
        "The lists of knn and mf were made for 100 users, drawn at random; the other users of the test set count as users without a list, unless coverage is reduced.",
    ),
    (
        scores.AveragedOver(("RMSE", "MAE"), (("a", 3000), ("b", 3000)), "user"),
        "RMSE, MAE: over the 3,000 users for whom each system has a value",
    ),
    (
        scores.AveragedOver(("RMSE",), (("a", 3000), ("b", 2)), "list"),
        "RMSE: each system over the lists for whom it has a value (a 3,000, b 2)",
    ),
    (scores.InFold(COUNT, 2), f"fold 2: {COUNT}"),
    (scores.InFold(COUNT, 2, 1), f"repetition 1, fold 2: {COUNT}"),
    (scores.InFold(COUNT, None, 3), f"repetition 3: {COUNT}"),
    (
        scores.ReadAs((("qrels", ("the test set was read",)), ("trec", ("a", "b")))),
        "the test set was read as qrels, a, b as trec",
    ),
    (
        scores.RepeatsHidden((("Recall@10", 0.7703), ("nDCG@10", 0.9))),
        "items that the user had count but are not recommended, so no system can exceed Recall@10 0.7703 and nDCG@10 "
        "0.9000",
    ),
    (
        scores.ScoredFirst("ease", 40, 60, (("Lists", "full", 30, 30), ("Lists", "condensed", 10, 30))),
        "ease is first under 40 of 60 combinations of decisions, least often with “Lists: condensed” (10 of 30).",
    ),
    (
        scores.ScoredFirst("ease", 60, 60, (("Lists", "full", 30, 30), ("Lists", "condensed", 30, 30))),
        "ease is first under all 60 combinations of decisions.",
    ),
    (
        scores.RepeatsAlone((("Recall@10", 0.4257),)),
        "only items that the user had are ranked, which looks easy: a random order of them has Recall@10 0.4257",
    ),
    (
        scores.RepeatsFound("TIFU-KNN", 10, 0.926151, 0.582819, 0.018104),
        "92.6 % of the top 10 of TIFU-KNN are repeats; it finds 58.3 % of the repeated and 1.8 % of the new items",
    ),
    (scores.PredictionsRight("svd", 0.456, 0.5), "svd predicts 45.6 % of the ratings right, within 0.5."),
    (
        scores.SharedRatings(500, 2000),
        "500 of 2,000 test ratings (25%) are in the training set too: a system that was trained on it has seen them; if they are events that repeat, say what counts with repeats=exclude, allow or only",
    ),
    (
        FEW,
        "the test set has only 9 of the 100 users of the run, and 2,000 in all; the others of the run are 'a ' and 'b', those of the test set 1, 2 and 3; these differ by leading zeros (007 against 7)",
    ),
    (
        TURNED,
        "its users seem to be the items of the test set, and its items the users: their ids fit both columns, and the lists look like lists only if users and items are swapped; name the columns of the run, user=... and item=..., or of the test set",
    ),
    (scores.Suspicion("empty"), "every list is empty, and scores 0"),
    (
        scores.Suspicion("copy"),
        "the lists hold the items of the test set with their ratings, as a copy of it would",
    ),
    (
        scores.Suspicion("swapped"),
        "the test set and the run seem to be swapped: the test set holds scores, and this run ratings",
    ),
    (
        scores.NoHits(1234.5678),
        "no list holds any item that its user has rated in the test set, although chance alone would find about 1,235",
    ),
    (
        scores.SeenItems(tuple((name, 10, 100) for name in "abcde")),
        "lists hold items from their user's training ratings, which take up places and are not in the test set: 10 of 100 items of a (10%), 10 of 100 items of b (10%), 10 of 100 items of c (10%), 10 of 100 items of d (10%) and those of 1 more runs",
    ),
    (scores.SameLists(("a", "b")), "a and b hold the same lists, as if one file were given under several names"),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact
    assert hash(fact)


def test_every_fact_of_scores_has_a_sentence_here():
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ == scores.__name__}
    assert {type(fact) for fact, _ in SAID} == kinds - {scores.OfRun, scores.Implausible}


def test_runs_of_which_the_same_is_said_are_named_together():
    found = scores.OfRuns.of([("a", scores.NoHits(20.1)), ("b", COUNT), ("c", scores.NoHits(19.9))], 3)
    assert found == [
        scores.OfRuns(scores.NoHits(20.1), ("a", "c"), every=False),
        scores.OfRuns(COUNT, ("b",), every=False),
    ]
    assert scores.OfRuns.of([("a", COUNT)], 1) == [scores.OfRuns(COUNT, ("a",), every=False)]
    assert scores.OfRuns.of([("a", COUNT), ("b", COUNT)], 2) == [scores.OfRuns(COUNT, ("a", "b"), every=True)]
