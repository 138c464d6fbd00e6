"""The table [audit]: what it opens, and what it refuses."""

from __future__ import annotations

import pytest

from cranfield import SettingError
from cranfield.audits.options import _CLOSED, OF_TESTS, PRESETS
from cranfield.audits.parsing import audit_settings
from cranfield.audits.universes import MEASURED
from cranfield.comparisons import Comparing
from cranfield.experiments import Decisions, Source, System
from cranfield.judgments import Cataloguing
from cranfield.measures import Measuring, Segmenting


def values(settings):
    return {decision.name: decision.values for decision in settings.varied}


def test_without_a_table_the_usual_decisions_are_opened(tiny):
    assert set(audit_settings(tiny()).names) == set(PRESETS["usual"])


def test_a_table_that_opens_decisions_opens_no_others(tiny):
    assert values(audit_settings(tiny(audit={"vary": {"lists": ["full", "condensed"]}}))) == {
        "lists": ("full", "condensed")
    }


def test_what_is_varied_takes_the_place_of_the_options_of_the_preset(tiny):
    opened = values(audit_settings(tiny(audit={"preset": "measuring", "vary": {"cutoff": [3, 10]}})))
    assert opened["cutoff"] == (3, 10)
    assert set(opened) == set(PRESETS["measuring"])


def test_a_preset_does_not_split_data_that_come_divided(tiny):
    data = (Source("divided", train="train.csv", test="test.csv"),)
    settings = audit_settings(tiny(data=data, decisions=Decisions(split="predefined"), audit={"preset": "usual"}))
    assert set(settings.names) == set(PRESETS["usual"]) - {"split"}


def test_the_value_of_the_experiment_is_always_an_option(tiny):
    (decision,) = audit_settings(tiny(audit={"vary": {"split": ["random(train=0.8)", "random(train=0.9)"]}})).varied
    assert decision.values == ("random(train=0.5)", "random(train=0.8)", "random(train=0.9)")
    assert decision.start == 0


def test_an_automatic_threshold_is_one_of_the_thresholds(tiny):
    (decision,) = audit_settings(tiny(audit={"vary": {"threshold": [3, 4, 5]}}), scale=(1.0, 5.0)).varied
    assert (decision.values, decision.start) == ((3.0, 4.0, 5.0), 1)
    (decision,) = audit_settings(tiny(audit={"vary": {"threshold": ["auto", 6, 10]}}), scale=(1.0, 10.0)).varied
    assert (decision.values, decision.start) == ((8.0, 6.0, 10.0), 0)


def test_the_first_metric_is_the_starting_point(tiny):
    experiment = tiny(
        decisions=Decisions(metrics="nDCG(gain=exp)@20"),
        audit={"vary": {"metrics": ["P", "nDCG"], "cutoff": [5, 20], "gain": ["binary", "exp"]}},
    )
    settings = audit_settings(experiment)
    assert {decision.name: decision.values[decision.start] for decision in settings.varied} == {
        "metrics": "nDCG",
        "cutoff": 20,
        "gain": "exp",
    }


def test_a_number_of_seeds_is_so_many_seeds_from_that_of_the_experiment(tiny):
    (decision,) = audit_settings(tiny(seed=3, audit={"vary": {"split_seed": 5}})).varied
    assert decision.values == (3, 4, 5, 6, 7)
    assert decision.kind == "chance"


def test_parameters_of_systems_can_be_opened(tiny):
    (decision,) = audit_settings(tiny(audit={"systems": {"near": {"k": [5, 10]}}})).varied
    assert (decision.name, decision.values, decision.kind) == ("systems.near.k", (5, 10), "question")


def test_kinds_and_weights_can_be_stated(tiny):
    table = {"vary": {"cutoff": [5, 10]}, "kinds": {"cutoff": "question"}, "weights": {"cutoff": [1, 3]}}
    (decision,) = audit_settings(tiny(audit=table)).varied
    assert (decision.kind, decision.weights) == ("question", (1.0, 3.0))


def test_several_sets_of_ratings_are_another_question(tiny):
    world = "world(users=60, items=40, ratings=900, seed={})"
    data = tuple(Source(name, simulate=world.format(seed)) for seed, name in enumerate("ab"))
    settings = audit_settings(tiny(data=data, audit={"vary": {"cutoff": [5, 10]}}))
    assert values(settings)["data"] == ("a", "b")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"vary": {"cutof": [5]}}, "no decision 'cutof'; did you mean 'cutoff'?"),
        ({"vary": {"lists": ["condensd"]}}, "did you mean 'condensed'?"),
        ({"vary": {"split": ["randon(train=0.1)"]}}, "did you mean 'random'?"),
        ({"vary": {"split": ["random(train=1.5)"]}}, "split='random(train=1.5)': train=1.5 is not a share"),
        ({"vary": {"split": ["k_fold(k=1)"]}}, "split='k_fold(k=1)': k=1 is not a whole number of at least 2"),
        ({"vary": {"split": ["rolling(horizon=soon)"]}}, "horizon='soon' is not a duration"),
        ({"vary": {"filters": [[], ["sample(share=1.5)"]]}}, "filters='sample(share=1.5)': share=1.5 is not a share"),
        ({"vary": {"split": "random(train=0.1)"}}, "is not a list of options"),
        ({"vary": {"cutoff": [10]}}, "cutoff has one option, 10"),
        ({"vary": {"metrics": ["P@5"], "cutoff": [5, 10]}}, "cutoff is opened; leave out one"),
        ({"vary": {"metrics": ["nDCG(gain=exp)@10"], "gain": ["exp"]}}, "gain is opened; leave out one"),
        ({"vary": {"metrics": ["Coverage", "AP"]}}, "Coverage needs a cut-off"),
        ({"vary": {"metrics": ["ItemCoverage@10"]}}, "one value for a whole system"),
        ({"vary": {"split_seed": 3}}, "give at least 5"),
        ({"vary": {"length": [10]}}, "open cutoff instead"),
        ({"vary": {"significance": ["student", "sign"]}}, "change only what is significant; open another decision"),
        ({"vary": {"cutoff": [5, 10], "significance": ["tukey"]}}, "looks at all systems at once"),
        ({"vary": {"cutoff": [5, 10], "significance": ["log_student"]}}, "open a geometric average"),
        ({"vary": {"cutoff": [5, 10], "significance": ["studnt"]}}, "did you mean 'student'?"),
        ({"vary": {"cutoff": [5, 10], "significance": ["permutation"]}}, "significance has one option"),
        ({"vary": {"cutoff": [5, 10], "correction": ["none"]}}, "correction changes nothing with two systems"),
        (
            {"vary": {"cutoff": [5, 10], "significance": ["student"]}, "weights": {"significance": [1, 1]}},
            "significance changes only what is significant and has no weights",
        ),
        ({"vary": {"cutoff": [5, 10], "alpha": [0.01]}}, "alpha cannot be opened"),
        ({"vary": {"tset": ["student"]}}, "no decision 'tset'"),
        ({"preset": "usua"}, "did you mean 'usual'?"),
        ({"systems": {"neer": {"k": [5]}}}, "no system 'neer'; did you mean 'near'?"),
        ({"systems": {"near": {"kk": [5]}}}, "no parameter 'kk'"),
        ({"vary": {"cutoff": [5, 10]}, "kinds": {"cutof": "question"}}, "'cutof' is not opened"),
        ({"vary": {"cutoff": [5, 10]}, "kinds": {"cutoff": "questions"}}, "did you mean 'question'?"),
        ({"vary": {"cutoff": [5, 10]}, "kinds": {"cutoff": "invalid"}}, "in [audit.invalid], with the reason"),
        ({"vary": {"split_seed": 5}, "kinds": {"split_seed": "equivalent"}}, "a seed is chance, never a decision"),
        ({"vary": {"cutoff": [5, 10, 20]}, "budget": 2}, "less than one universe for each of the 3 options"),
        ({"vary": {"average": ["mean", "weighted(by=users.csv:spend)"]}}, "is not computed in an audit"),
        ({"vary": {"average": ["mean", "urisk(baseline=neer)"]}}, "there is no system 'neer'; did you mean 'near'?"),
        ({"vary": {"data": ["tony"]}}, "did you mean 'tiny'?"),
        ({"vary": {"cutoff": [5, 10]}, "weights": {"cutoff": [1, 2, 3]}}, "cutoff has 2 options and 3 weights"),
        ({"vary": {"cutoff": [5, 10]}, "weights": {"cutoff": [1, 0]}}, "must be numbers above 0"),
        ({"vary": {"cutoff": [5, 10]}, "weights": {"cutoff": [1, "x"]}}, "audit.weights.cutoff='x' is not a number"),
        ({"vary": {"cutoff": [5, 10]}, "invalid": {"cutof": {"5": "no"}}}, "'cutof' is not opened"),
        ({"vary": {"cutoff": [5, 10]}, "invalid": {"cutoff": {"6": "no"}}}, "'6' is not an option"),
        ({"vary": {"cutoff": [5, 10]}, "invalid": {"cutoff": {"10": "no"}}}, "10 is the starting point"),
        ({"vary": {"cutoff": [5, 10]}, "invalid": {"cutoff": ["5"]}}, "has no reasons"),
        ({"vary": {"cutoff": "5"}}, "cutoff='5' is not a list of options"),
        ({"vary": {"split": ["randm(train=0.5)"]}}, "there is no split 'randm'; did you mean 'random'?"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(tiny, table, words):
    with pytest.raises(SettingError) as caught:
        audit_settings(tiny(audit=table))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_split_or_filter_that_only_some_ratings_allow_is_an_option(tiny):
    splits = ["random(train=0.5)", "leave_out(l=500)", "temporal(at=2001-01-01)", "percentiles(groups=999)"]
    filters = [[], ["k_core(k=500)"], ["time_window(start=2001-01-01)"]]
    varied = audit_settings(tiny(audit={"vary": {"split": splits, "filters": filters}})).varied
    assert {decision.name: len(decision.values) for decision in varied} == {"split": 4, "filters": 3}


def test_a_starting_point_may_have_an_average_of_all_systems(tiny):
    settings = audit_settings(
        tiny(decisions=Decisions(average="standardised"), audit={"vary": {"average": ["mean", "georisk"]}})
    )
    assert settings.varied[0].values == ("standardised", "mean", "georisk")


def test_one_system_cannot_be_audited(tiny):
    with pytest.raises(SettingError, match="at least two systems"):
        tiny(systems=(System("one", "popularity"),), audit={})


def test_an_audit_measures_or_refuses_every_decision_that_is_not_part_of_a_set_up():
    later = {*Measuring.decisions(), *Segmenting.decisions(), *Comparing.decisions(), *Cataloguing.decisions()}
    assert later <= {*MEASURED, *OF_TESTS, *_CLOSED}
