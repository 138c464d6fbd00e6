"""Every fact about popularity is said in one sentence, which is written here once, and comes back from JSON."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cranfield.facts import Fact, bias

WINNER = bias.WinnerWithoutPopularity(("a",), ("1R", "P1R"), {}, {}, {})
ROW = {"system": "ease", "mean": 0.31, "reached": 0.456, "recommended": 3.14, "head": 0.625}
REACHED = bias.ReachedByPopularity("P@10", ROW, 25.04)
CHANGED = bias.ChangedConclusions(1, 2, 0, 6)
LOST = bias.ChangedConclusion("ease", "knn", "1R", ("P1R", "U1R"), "is lost")

SAID: list[tuple[Fact, str]] = [
    (
        bias.PopularityRemark("only popularity"),
        "Popularity is the only system with a score; name others to compare it with.",
    ),
    (
        bias.PopularityRemark("no neutral protocol"),
        "No neutral protocol is possible with these ratings, so nothing can be said about the order.",
    ),
    (bias.PopularityRemark("more changes"), "More changes are in the table of conclusions."),
    (
        bias.PopularityRemark("liked or met"),
        "Whether popular items are liked more, or people only come across them more often, cannot be seen from ratings that people chose to give. A neutral protocol removes both effects. Judgments of items chosen at random can tell them apart.",
    ),
    (
        bias.PopularityRemark("nothing below the threshold"),
        "No rating is below the threshold. Then every item has the same share of positive ratings, and under uniform test ratings (U1R, UAR) popularity falls to random, or near it in dense data, whatever it is worth (Bellogín et al. 2017, section 6.2).",
    ),
    (
        bias.PopularityRemark("lists differ"),
        "the lists differ between users, and the formula is for a ranking that is the same for all",
    ),
    (
        bias.PopularityRemark("relevant ratings alone"),
        "no test rating is below the threshold: SNIPS of precision and doubly robust estimates are left out",
    ),
    (WINNER, "a stays first without popularity's advantage."),
    (replace(WINNER, first=("a", "b")), "a and b are level as measured, so there is no winner to look at."),
    (
        replace(WINNER, popularity={"b": ("P1R", "U1R")}),
        "The winner depends on popularity: a as measured, b without its advantage.",
    ),
    (
        replace(WINNER, design={"b": ("1R",)}, popularity={"c": ("U1R",)}),
        "The winner depends on the design and on popularity: a as measured, b by the design, c without popularity's advantage.",
    ),
    (
        replace(WINNER, design={"b": ("1R",)}),
        "The winner depends on the design, not on popularity: a as measured, b where popularity keeps its advantage.",
    ),
    (
        replace(WINNER, design={"b": ("1R",)}, opened={"c": ("U1R",)}),
        "The winner depends on the design: a as measured, b where popularity keeps its advantage; elsewhere it is open: c.",
    ),
    (
        replace(WINNER, opened={"b": ("P1R",), "c": ("U1R",)}),
        "a is first as measured; elsewhere it is open: b and c.",
    ),
    (
        bias.RandomPrecision(0.0123, 0.0151, 812.4),
        "A random ranking of the targets (812.4 per list) has a precision of 0.0123; the formula predicts 0.0151.",
    ),
    (
        bias.HighestEstimate("P@10", "IPS", "ease", 0.1234, 0.1, 0.15),
        "P@10: ease has the highest IPS estimate, 0.1234 [0.1000, 0.1500].",
    ),
    (
        bias.WholeCatalogue("HitRate@10", 0.62, 0.03, 0.02, 0.04, True),
        "HitRate@10: 0.6200 among sampled items; on the whole catalogue 0.0300 [0.0200, 0.0400].",
    ),
    (
        bias.WholeCatalogue("HitRate@10", 0.62, 0.03, 0.0, 0.4, False),
        "HitRate@10: 0.6200 among sampled items; on the whole catalogue not identified, within [0.0000, 0.4000].",
    ),
    (bias.TimesRandom("P@10", 1.5, 1234.5), "Systems reach 1.5 to 1,234.5 times the P@10 of a random ranking."),
    (
        REACHED,
        "ease has the best P@10 of the systems other than popularity, 0.3100, 25.0 times the score of a random ranking. Ranking by popularity alone reaches 45.6 % of it.",
    ),
    (
        replace(REACHED, times_random=None),
        "ease has the best P@10 of the systems other than popularity, 0.3100. Ranking by popularity alone reaches 45.6 % of it.",
    ),
    (
        bias.CorrelatedWithPopularity({"ease": 0.5, "knn": -0.125}),
        "Over users, given how many relevant items each has, the scores correlate with those of popularity by ease 0.50, knn -0.12.",
    ),
    (
        bias.PopularItems(ROW),
        "The items that ease recommends are 3.1 times as popular as the average item of the catalogue; 62.5 % of them are in the head, the most popular items with a fifth of all ratings.",
    ),
    (
        bias.OrderUnder("P1R", 0.333, 1, 3),
        "Under P1R (each relevant item among items of its popularity percentile) the order agrees with that of 1R by tau 0.33: popularity goes from place 1 to 3.",
    ),
    (
        bias.OrderUnder("U1R", float("nan"), 2, 2),
        "Under U1R (as 1R, with the same number of test ratings per item) all systems are level: popularity stays at place 2.",
    ),
    (
        CHANGED,
        "1 of 6 pairs of systems has another conclusion without popularity's advantage, and 2 because of the design alone.",
    ),
    (
        replace(CHANGED, popularity=0, design=0, unclear=3),
        "None of 6 pairs of systems have another conclusion without popularity's advantage, and none because of the design alone. In 3, only the significance changes, which proves nothing.",
    ),
    (LOST, "ease is better than knn under 1R; under P1R and U1R that is not significant."),
    (
        replace(LOST, control="AR", protocols=("1R",), change="is reversed"),
        "ease is better than knn under AR; under 1R the order is reversed because of the design.",
    ),
    (
        replace(LOST, protocols=("P1R",), change="appears"),
        "ease is better than knn under P1R; under 1R that is not significant.",
    ),
    (
        bias.Levelled(1687, 0.0044),
        "AR-NN: 1,687 non-relevant items in a list, so that a random ranking has a precision of 0.0044, as in UAR",
    ),
    (
        bias.HowMeasured(99, "list", 5),
        "1R, P1R and U1R: 99 non-relevant items in a list, in expectation over the draw; averaged by list, as in equation (1). Tests are over users and 5 random splits; what popularity explains is of the first",
    ),
    (
        bias.HowMeasured(99, "user", 1),
        "1R, P1R and U1R: 99 non-relevant items in a list, in expectation over the draw; averaged by user. Tests are over users of one split, so p-values leave out how much another split would change",
    ),
    (
        bias.OutsideLists(1000, 0.25, ("P1R", "U1R", "UAR")),
        "The lists end at 1,000 items, and 25% of the relevant test items are outside them on average. Under P1R, U1R, UAR, items outside follow in random order, so a system that would rank rare items well looks worse than it is: rank more items to see it.",
    ),
    (
        bias.NoteOn((), "ERR@5 has no expectation over the unknown order below a list"),
        "neutral protocols are left out: ERR@5 has no expectation over the unknown order below a list",
    ),
    (
        bias.NoteOn(("U1R", "UAR"), "there are too few ratings"),
        "U1R and UAR are left out: there are too few ratings",
    ),
    (bias.NoteOn(("P1R",), "nothing is relevant"), "P1R is left out: nothing is relevant"),
    (
        bias.NoteOn(("U1R", "UAR"), "each item has 5 test ratings", left_out=False),
        "U1R and UAR: each item has 5 test ratings",
    ),
    (
        bias.GroupsTooSmall(20, 5, 10, drawn=False),
        "P1R is left out: its 20 popularity groups have 5 items, no more than the 10 that the metric looks at; choose fewer groups",
    ),
    (
        bias.GroupsTooSmall(50, 16, 100, drawn=True),
        "P1R is left out: its 50 popularity groups have 16 items, fewer than the 100 targets of a list; choose fewer groups or fewer targets",
    ),
    (
        bias.UniformRatings(5, 1200, 6000, 20000),
        "U1R and UAR: 5 test ratings of each of 1,200 items, 6,000 of 20,000 in all",
    ),
    (
        bias.SizesDiffer(900, 1500),
        "target sets differ in size, 900 to 1,500 items: training items are removed, so a remaining item is more likely to be a test item than σ|PR(i)|/|U| says, especially for active users",
    ),
    (bias.SplitMayNotDraw("predefined"), "the given split may not draw test ratings at random"),
    (bias.SplitMayNotDraw("temporal"), "the split (temporal) may not draw test ratings at random"),
    (bias.NoteOn(("DR (svd)",), "the library is missing"), "DR (svd) is left out: the library is missing"),
    (
        bias.UnevenWeights("ease", 1500, 15, 0.93, 120.4),
        "ease: 15 of 1,500 observed relevant items carry 93% of the weight (effective sample size 120); a larger clip trades this variance for bias",
    ),
    (bias.UnevenWeights("ease", 0), "ease: no relevant test item is in the lists, so nothing is estimated"),
    (
        bias.AboveOne("ease", (("IPS", "P@10", 1.25), ("IPS", "Recall@10", 1.5))),
        "ease: IPS of P@10 1.25, IPS of Recall@10 1.50 is above 1: the items it recommends are observed more often than their propensities say, as when users come across items that suit them; look at SNIPS",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_about_popularity_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert str(Fact.read(json.loads(json.dumps(fact.as_dict())))) == said


def test_every_fact_about_popularity_has_a_sentence_here():
    kinds = {kind for kind in vars(bias).values() if isinstance(kind, type) and issubclass(kind, Fact)}
    assert {type(fact) for fact, _ in SAID} == kinds - {Fact}
