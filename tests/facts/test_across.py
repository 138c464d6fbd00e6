"""The facts of a comparison over several datasets in words."""

# ruff: noqa: E501
import json
from dataclasses import replace

import numpy as np
import pytest

from cranfield.facts import Fact, across

LOG = np.log
LEAD = across.LeadOverDatasets(
    "nDCG@10", ("ease", "wrmf"), "ratio", 5, LOG(1.136), (LOG(1.107), LOG(1.165)), (LOG(0.873), LOG(1.478)), 0.951, 10,
    False, 3, 2,
)  # fmt: skip
SETTLED = replace(LEAD, like=(LOG(1.05), LOG(1.21)), p=0.004, significant=True, wins=5, losses=0)
RULE = across.LeaderByRule("mean", ("ease",), (0.3, 0.2), 5, 5, 16, 16)

SAID = [
    (
        LEAD,
        "On these five datasets ease is 14 % above wrmf; for datasets like these it is not settled (-13 to 48 %).",
    ),
    (
        replace(LEAD, these=None, several=True),
        "On these five datasets ease is 14 % above wrmf by nDCG@10; for datasets like these it is not settled (-13 to 48 %).",
    ),
    (
        SETTLED,
        "On these five datasets ease is 14 % above wrmf; for datasets like these, too (5 to 21 %, p = 0.004).",
    ),
    (
        replace(SETTLED, like=(LOG(0.8), LOG(0.9))),
        "On these five datasets ease is 14 % above wrmf; for datasets like these it is the other way round (-20 to -10 %).",
    ),
    (
        replace(LEAD, like=(LOG(1.223), LOG(4.157)), p=0.189),
        "On these five datasets ease is 14 % above wrmf; for datasets like these it is not settled (p = 0.189 over 10 pairs).",
    ),
    (
        replace(LEAD, k=2, like=None, p=None, wins=2, losses=0),
        "On these two datasets ease is 14 % above wrmf (11 to 17 %); ahead on both, and two say nothing of others.",
    ),
    (
        replace(LEAD, k=1, like=None, p=None, wins=1, losses=0),
        "On this dataset ease is 14 % above wrmf (11 to 17 %); one dataset says nothing of others.",
    ),
    (replace(LEAD, k=0), "No dataset has both ease and wrmf."),
    (replace(LEAD, k=0, several=True), "No dataset has both ease and wrmf by nDCG@10."),
    (
        replace(LEAD, gain=0.0, these=None),
        "On these five datasets ease is level with wrmf; for datasets like these it is not settled (-13 to 48 %).",
    ),
    (
        replace(LEAD, scale="difference", gain=0.0123, these=None, like=(-0.01, 0.03)),
        "On these five datasets ease is 0.0123 above wrmf; for datasets like these it is not settled (-0.0100 to 0.0300).",
    ),
    (
        across.OnANewDataset(LEAD, 0.69, (LOG(0.55), LOG(2.36)), 0.21),
        "On a new dataset ease leads wrmf with a chance of about 0.69 (3 of 5 here); the lead would be -45 to 136 %. The lead differs between datasets, typically by a factor of 1.23.",
    ),
    (
        across.OnANewDataset(LEAD, 0.69, None, 0.0, (0.6, 0.1, 0.3), LOG(1.02)),
        "On a new dataset ease leads wrmf with a chance of about 0.69 (3 of 5 here). By more than 2.0 % it is better with a chance of 0.6, worse with 0.3, and neither with 0.1. The lead differs between datasets no more than their users explain.",
    ),
    (
        across.OnANewDataset(LEAD, None, (LOG(0.55), LOG(2.36)), None),
        "On a new dataset the measured lead would be -45 to 136 %.",
    ),
    (
        across.WouldSettle(("ease", "wrmf"), 5, 24.0),
        "About 24 such datasets would settle ease against wrmf alone (power 0.8).",
    ),
    (
        across.WouldSettle(("ease", "wrmf"), 5, 9752.0),
        "More than 1,000 such datasets would be needed to settle ease against wrmf.",
    ),
    (
        across.WouldSettle(("ease", "wrmf"), 2, 24.0),
        "At least three datasets are needed to say anything about others, and five are better.",
    ),
    (
        across.WouldSettle(("ease", "wrmf"), 5, float("inf")),
        "ease and wrmf are level on average, so no number of datasets would settle it.",
    ),
    (across.WithoutADataset(LEAD, "book-crossing", LOG(1.036)), "Without book-crossing ease is 3.6 % above wrmf."),
    (
        across.WithoutADataset(SETTLED, "x", LOG(1.05), ("y", "z"), ("x",)),
        "Without x ease is 5.0 % above wrmf; the order turns without y and z; for datasets like these it is not settled without x.",
    ),
    (
        across.WithoutADataset(LEAD, "x", LOG(0.9), ("x", "y"), ("z",)),
        "Without x wrmf is 10 % above ease; the order also turns without y; for datasets like these it is settled without z.",
    ),
    (across.SettledPairs((), 10), "None of 10 pairs is settled for datasets like these (Holm)."),
    (
        across.SettledPairs((("ease", "popularity", 0.012),), 10),
        "For datasets like these 1 of 10 pairs is settled (Holm): ease above popularity (p = 0.012).",
    ),
    (RULE, "ease by mean"),
    (
        across.ByRules((RULE, replace(RULE, rule="rank", stays=3))),
        "ease is first by all 2 rules; the lead by mean rank is the least firm: it stays in 3 of 5 tables without one dataset and 16 of 16 subsets.",
    ),
    (
        across.ByRules(
            (RULE, replace(RULE, rule="wins", leaders=("ease", "wrmf"), stays=4, subsets=0, decisive=("knn", "slim")),
             replace(RULE, rule="copeland", leaders=("wrmf",)))
        ),
        "ease is first by 1 of 3 rules; wrmf is level with it by wins, wrmf is first by Copeland; the lead by wins is the least firm: it stays in 4 of 5 tables without one dataset; by wins, leaving out knn or slim, which does not lead, changes the leader.",
    ),
    (
        across.OneSource({"MovieLens": ("ml-1m", "ml-100k")}, True),
        "ml-1m and ml-100k come from one source (MovieLens): counted as one dataset.",
    ),
    (
        across.OneSource({"MovieLens": ("ml-1m", "ml-100k")}, False, LEAD),
        "Warning: ml-1m and ml-100k come from one source (MovieLens), so they are not independent; name their family to count them as one dataset. Then ease is -13 to 48 % above wrmf for datasets like these.",
    ),
    (
        across.MissingResults({"slim": ("x", "y")}, 3, 5, ("ease",)),
        "There is no result of slim on x and y; a pair is compared on the datasets that both have; order, ranks and rules are over the 3 of 5 that all have; with a missing result as last, ease is first by mean rank.",
    ),
    (across.FewDatasets(4), "Four datasets are few: intervals for datasets like these are wide."),
    (
        across.AsDifferences((("a", "b"),), "P@5"),
        "a and b: an average of P@5 is not above 0, so they are compared by differences, in which datasets with large values weigh most.",
    ),
    (
        across.OtherWeighting(SETTLED, "precision"),
        "With weights by precision the answer differs: ease is 14 % above wrmf (5 to 21 %).",
    ),
    (
        across.OneTraining(),
        "With one split and seed per dataset, their noise counts as a difference between datasets, which is then too large; the interval for datasets like these stays right.",
    ),
    (across.RoundedTable(0.05), "Warning: half a printed digit is 5.0 % of a value; use more digits."),
    (
        across.WithoutUsers(True),
        "Errors come from those of each system, an upper bound where users' values correlate positively.",
    ),
    (
        across.WithoutUsers(False),
        "The table has no standard errors, so nothing is said about other users on these datasets.",
    ),
    (
        across.TooFewUsers(("x",), ("y",)),
        "Warning: y is left out: fewer than two users have a value from every system; on x fewer than 20 users have a value other than 0, so ratios there are biased.",
    ),
    (across.NothingOverDatasets("there is x"), "There is no verdict over all datasets: there is x."),
    (
        across.RankTest(5, {"ease": 1.6, "wrmf": 2.2}, 0.03, True, 2.728),
        "Mean ranks over five datasets: ease 1.60 and wrmf 2.20 (p = 0.03, exact; critical difference 2.73).",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))).sentence == said


def test_every_fact_over_datasets_has_a_sentence_here():
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ == across.__name__}
    assert {type(fact) for fact, _ in SAID} == kinds


@pytest.mark.parametrize("fact", [fact for fact, _ in SAID if isinstance(fact, across.LeadOverDatasets)])
def test_an_answer_has_at_most_25_words(fact):
    assert len(str(fact).split()) <= 25
