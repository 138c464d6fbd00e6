"""Every fact is said in one sentence, which is written here once, and comes back from JSON as it was."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace

import pytest

from cranfield.facts import Fact, comparison, gate, scores, segment, split, unjudged

COMMON = comparison.Population(served=240, of=300, systems=3)
ONE, OTHER = ("ease", "pop")
ROW = {
    "system_a": ONE,
    "system_b": OTHER,
    "mean_a": 0.3,
    "mean_b": 0.2,
    "difference": 0.1,
    "lower": 0.05,
    "upper": 0.15,
    "relative": 0.5,
    "relative_lower": 0.25,
    "relative_upper": 0.75,
    "wins": 150,
    "ties": 90,
    "losses": 60,
    "n": 300,
    "p": 0.001,
    "p_corrected": 0.001,
    "significant": True,
    "better": ONE,
    "smallest_difference": 0.07,
}
LEVEL = {**ROW, "significant": False, "better": None, "p": 0.4, "p_corrected": 0.4}
BETTER = comparison.MetricStanding("P@10", (ROW,), {ONE: 0.3, OTHER: 0.2}, lower_is_better=False)
TRAINED = comparison.TrainedOnce(("mf", "bpr"))
CLAIM = gate.Claim(
    metric="P@10",
    system="new",
    baseline="old",
    outcome="undecided",
    mean=0.29,
    baseline_mean=0.3,
    gain=-0.0333,
    limit=-0.05,
    is_relative=True,
    p_corrected=0.2,
    p_worse=0.7,
    n=300,
    users_needed=float("inf"),
    users_needed_lower=700.0,
    users_needed_upper=float("inf"),
    users_if_equal=900.0,
    allowed=gate.Margin(0.01, True),
    alpha=0.05,
    systems=1,
)
CONTEST = unjudged.ContestState("P@10", "a", "b", "b", 12, -0.01, -0.1, 0.2, 0.83, settled=False, level=False)
TIPPING = unjudged.TippingPoint("P@10", "a", "b", 0.02, 0.25, 0.0, 100, 80, 20, 0.0)
REVERSED = segment.ReversedOrder("age", "old", "P@10", ("a", "b"), ("b", "a"), -0.02, 0.01, 0.001, 0.004, "student")
WINDOWS = segment.WindowLeads("P@10", ("2020-01-01", "2020-02-01"), "a", ("a", "b"), "b", 1, 1, None)

SAID: list[tuple[Fact, str]] = [
    (COMMON, "over the 240 of 300 users that all 3 systems serve"),
    (BETTER, "P@10: ease beats pop by 50 % (25 to 75 %, p = 0.001)."),
    (
        replace(BETTER, rows=(LEVEL,), population=COMMON),
        "P@10, over the 240 of 300 users that all 3 systems serve: Neither ease nor pop is shown to be better (25 to 75 %, p = 0.4); these 300 users could have shown 35 %.",
    ),
    (comparison.OtherMetrics(BETTER, (replace(BETTER, metric="RR"),)), "ease is first by both metrics."),
    (
        comparison.ResultsParagraph(BETTER, "permutation", "max_t", 0.05, 1),
        "By P@10, averaged over 300 users, pop reaches 0.2000. ease (0.3000, +50 %, 25 to 75 %, p = 0.001) is significantly better. Differences are tested by a paired permutation test, two-sided, at α = 0.05, with the max-|t| correction of Westfall and Young; the 95 % intervals hold for all comparisons at once.",
    ),
    (
        replace(BETTER, rows=({**ROW, "better": None, "tipping": 0.28, "tipping_ratio": 0.77},)),
        "P@10: ease leads on these judgments; which is better cannot be told: liking 28 % of the unjudged items reverses it.",
    ),
    (
        comparison.Untold("prod", "new", 0.279, 0.766),
        "prod leads new on these judgments; which is better cannot be told: if 28 % of the unjudged items are liked, the order is reversed, and 36 % of the judged ones are.",
    ),
    (
        comparison.Untold("prod", "new", 0.44, 1.1),
        "prod leads new on these judgments: if 44 % of the unjudged items are liked, the order is reversed, and 40 % of the judged ones are.",
    ),
    (
        comparison.Untold("prod", "new", -0.1, -0.2),
        "prod leads new on these judgments; which is better cannot be told: among the judged items, those of new are liked more often.",
    ),
    (
        comparison.Untold("prod", "new", float("nan"), float("nan")),
        "prod leads new, but no item in the first places of their lists is judged.",
    ),
    (
        comparison.NothingDisliked("P@10"),
        "No item of the lists is known to be disliked, so P@10 cannot show whether unjudged items would change the order; find out what was shown to users.",
    ),
    (comparison.PairsThatDiffer("P@10", 2, 3), "2 of 3 pairs differ significantly by P@10."),
    (comparison.PairsThatDiffer("P@10", 0, 3), "No pair of systems differs significantly by P@10."),
    (
        comparison.WinsByUser("P@10", ("a", "b"), 1200, 30, 40),
        "By P@10, a is better than b for 1,200 users, worse for 40 and equal for 30.",
    ),
    (
        comparison.Unmeasured(("P@10", "RR"), undefined_for=("mf",)),
        "P@10 and RR: nothing can be said, since it is undefined for every user of mf.",
    ),
    (
        comparison.ByMeans("median"),
        "This is about plain means, which the test compares: there is no paired test of the median that tables show.",
    ),
    (
        comparison.Served({"a": 75, "b": 100}, lists=100, users=100, alike=False, common=COMMON, among_them=BETTER),
        f"a serves 75 % of the users; a user without a list counts as an empty list. Among the 240 of 300 users that all 3 systems serve: {BETTER}",
    ),
    (
        comparison.Served({"a": 75, "b": 75}, lists=100, users=100, alike=True, common=COMMON),
        "Both systems serve the same 75 % of the users; a user without a list counts as an empty list. Among the 240 of 300 users that all 3 systems serve, the answer is the same.",
    ),
    (
        TRAINED,
        "mf and bpr draw at random and were trained once: intervals and p-values do not include the effect of another seed.",
    ),
    (
        comparison.Spread(2, "P@10", {"mf": 0.0031}, smallest=(0.02, 0.031)),
        "Between 2 repetitions (new splits and seeds) the standard deviation of the average of P@10 is mf 0.0031; intervals and p-values include it (users crossed with repetitions); 2 of them can show a difference of 0.0200 to 0.0310 (power 0.8), and more users not a much smaller one.",
    ),
    (
        comparison.TrainedOnce(("mf",)),
        "mf draws at random and was trained once: intervals and p-values do not include the effect of another seed.",
    ),
    (
        comparison.Spread(2, "P@10", {"mf": 0.0031}, same_split=True),
        "Between 2 training seeds on the same split the standard deviation of the average of P@10 is mf 0.0031; intervals and p-values include it, but not how splits vary.",
    ),
    (
        comparison.Spread(3, "P@10", {"mf": 0.0031, "ease": 0.0004}),
        "Between 3 repetitions (new splits and seeds) the standard deviation of the average of P@10 is mf 0.0031 and ease 0.0004; intervals and p-values include it (users crossed with repetitions).",
    ),
    (
        comparison.Disagreement((("P@10", "a", "b"),), significant=True, test="permutation", correction="holm"),
        "P@10: a and b differ significantly although the interval includes 0: it is by max-|t|, the p-value by holm.",
    ),
    (
        comparison.Disagreement((("P@10", "a", "b"),), significant=False, test="sign"),
        "P@10: a and b do not differ significantly although the interval does not include 0: it is by Student's t, the p-value by the sign test.",
    ),
    (
        comparison.OnRepeats(split.CountedRepeats("only", 25, 100, 24, 24, 24)),
        "25.0 % of the test items are repeats (24 of 24 users have some); only they count here.",
    ),
    (
        comparison.Warned(scores.SameLists(("a", "b"))),
        "Warning: a and b hold the same lists, as if one file were given under several names.",
    ),
    (
        CLAIM,
        "P@10: undecided: new (0.2900) is 3.33 % worse than old (0.3000); it is at worst 5 % worse, not within 1 % (one-sided 95 % limit; p = 0.2; 300 users). If the difference stays as it is, no number of users would show it; if the two are equally good, it takes about 900 (power 0.8).",
    ),
    (
        gate.Claims("better than old", "undecided", 1, 3),
        "undecided: “better than old” is shown for 1 of 3 systems and metrics.",
    ),
    (
        segment.ByActivity(5, 7.0),
        "new users have fewer than 5 training ratings, light ones 5 to 7, and heavy ones more than 7",
    ),
    (
        segment.ByPopularity((("head", 0.2), ("mid", 0.6), ("tail", 0.2)), "ratings"),
        "items are grouped from most to least popular by their share of the training ratings: head 20 %, mid 60 % and tail 20 %",
    ),
    (
        segment.ByPeriod((("period 1", "2001-01-01", "2001-02-01"), ("period 2", "2001-02-01", "2001-03-01"))),
        "test ratings are grouped by their time (UTC): period 1 from 2001-01-01 to 2001-02-01 and period 2 from 2001-02-01 to 2001-03-01",
    ),
    (
        segment.ByRepeats(20, 80),
        "repeated items are in their user's training ratings: 20 of 80 (25.0 %)",
    ),
    (segment.WarmAndCold("users", 0), "cold users have no training rating, warm ones more"),
    (segment.WarmAndCold("items", 3), "cold items have 3 training ratings or fewer, warm ones more"),
    (
        segment.WithoutGroup("users.csv:age", "users", 2, 4000),
        "2 of 4,000 lists have users without a group in users.csv:age: they are in the group unknown",
    ),
    (
        segment.WithoutGroup("items.csv", "items", 2, 4),
        "2 of 4 test ratings have items without a group in items.csv: they are in the group unknown",
    ),
    (segment.RatingsOfGroup(), "lists are measured as if the test set held only the ratings of the group"),
    (segment.InGroup("age", "old", "1", TRAINED), f"age, old (1 user): {TRAINED}"),
    (
        segment.InGroup("age", "old", "12", None),
        "age, old (12 users): nothing can be said, since nothing is measured there.",
    ),
    (REVERSED, "b leads a in old, not elsewhere (P@10, p = 0.004)"),
    (
        segment.Reversals("age", 3, (REVERSED, REVERSED), 2, 0.3, "P@10"),
        "By age, b leads a in old, not elsewhere (P@10, p = 0.004).",
    ),
    (
        segment.Reversals("age", 3, (REVERSED, replace(REVERSED, systems=("a", "c"))), 2, 0.3, "P@10"),
        "By age, a changes places with b and c between groups by P@10.",
    ),
    (
        segment.Reversals("age", 3, (REVERSED, replace(REVERSED, systems=("c", "d"))), 2, 0.3, "P@10"),
        "By age, 2 pairs of systems change places between groups by P@10.",
    ),
    (
        segment.Reversals("age", 3, (REVERSED,), 2, 0.3, "nDCG@10"),
        "By age, no order by nDCG@10 is shown to be reversed in a group; by P@10 some are.",
    ),
    (segment.Reversals("age", 2, (), 0), "By age, systems have the same order in both groups."),
    (segment.Reversals("age", 3, (), 2, 0.3), "By age, no order is shown to be reversed in a group (smallest p 0.3)."),
    (
        WINDOWS,
        "P@10: the latest window disagrees: a leads over all windows and in 1 of 2, but b leads from 2020-02-01 on. The test over users applies to these windows only; for other times, a is ahead of b in 1 of 2 windows and behind in 1 (no p-value with fewer than 6 windows).",
    ),
    (
        TIPPING,
        "P@10: if 25 % more of b's unjudged items than of a's are liked, the order is reversed: 20 of the 80 that only b lists.",
    ),
    (
        CONTEST,
        "P@10: not settled. a is ahead of b with probability 0.830, if the 12 unjudged pairs that matter are liked as the test ratings of their items are (difference -0.0100, between -0.1000 and +0.2000). By the judged items alone b is ahead.",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words(fact, said):
    assert str(fact) == fact.sentence == said


@pytest.mark.parametrize("fact", [fact for fact, _ in SAID if fact is not CLAIM], ids=lambda fact: type(fact).__name__)
def test_a_fact_comes_back_from_json(fact):
    again = Fact.read(json.loads(json.dumps(fact.as_dict())))
    assert type(again) is type(fact)
    assert again.sentence == fact.sentence


def test_what_matters_most_is_said_in_a_few_words():
    served = comparison.Served({"a": 75, "b": 90}, lists=100, users=100, alike=False, common=COMMON)
    assert served.brief == "10 to 25 % of users get no list"
    assert replace(served, among_them=BETTER).brief.endswith("; without them the answer is another one")
    assert TRAINED.brief == "mf and bpr were trained once"
    assert BETTER.brief == BETTER.sentence


def test_every_fact_has_a_sentence_here_and_no_field_that_is_one():
    modules = {module.__name__ for module in (comparison, gate, segment, unjudged)}  # others have their files
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ in modules and "sentence" in _shown(kind)}
    assert {type(fact) for fact, _ in SAID} == kinds
    for fact, _ in SAID:
        assert is_dataclass(fact)
        held = [getattr(fact, field.name) for field in fields(fact)]
        assert not [text for text in held if isinstance(text, str) and text.endswith(".")], fact


def _shown(kind: type[Fact]) -> set[str]:
    return {"sentence"} if kind._said is not Fact._said else set()
