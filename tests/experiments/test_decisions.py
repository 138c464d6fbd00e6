from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cranfield
from cranfield._errors import SettingError
from cranfield.comparisons import compare
from cranfield.experiments import Decisions, read_experiment, run, schema
from cranfield.experiments.decisions import DECISIONS, GROUPS
from cranfield.measures import measure
from cranfield.measures.scores import Scores
from cranfield.rankings import recommend

# For each decision, some values that are compatible with all values of the others.
VALUES = {
    "filters": [(), ("k_core(k=5)",), ("k_core(k=5)", "positives(threshold=3)")],
    "split": ["random(train=0.5)", "random(train=0.8)", "random(train=0.801)", "k_fold(k=5)", "leave_out(l=1)"],
    "validation": ["like the test", "random(train=0.8)", "temporal(train=0.9)"],
    "validation_windows": [1, 3],
    "refit": [True, False],
    "min_ratings": [0, 1, 5],
    "sample": ["all", 100, 0.5],
    "new_users": ["unserved", "served"],
    "fill": ["none", "popularity", "random"],
    "lists": ["full", "condensed"],
    "candidates": ["all", "test"],
    "relevant": ["all", "one"],
    "repeats": ["exclude", "allow", "only"],
    "keep_seen": [False, True],
    # A catalogue is not compatible with relevant="one".
    "catalogue": ["none"],
    "length": [100, 150, "all"],
    "metrics": [("P@10",), ("nDCG@10",), ("nDCG(gain=exp)@10",), ("nDCG(gain=binary)@10", "P@10"), ("RBP(p=0.8)",)],
    "threshold": ["auto", 3.0, 3.5, 4.25],
    "levels": ["none", "all"],
    "undefined": ["zero", "leave out"],
    "average": ["mean", "weighted(by=judged)", "weighted(by=relevant)"],
    "groups": ["pooled", "equal"],
    "coverage": ["full", "reduced"],
    "significance": ["student", "permutation", "permutation(method=monte-carlo)"],
    "correction": ["max_t", "holm", "none", "bonferroni"],
    "alpha": [0.05, 0.01, 0.049999999],
    "baseline": ["none", "knn"],
    "unjudged": ["check", "ignore"],
    "segment": [(), ("activity",), ("activity(new=10)", "period")],
}
some = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})


def test_the_defaults_are_those_of_commands_and_functions():
    start = Decisions()
    assert start.filters == ()
    assert start.split == "random(train=0.8)"
    assert (start.min_ratings, start.new_users, start.fill, start.lists) == (0, "unserved", "none", "full")
    assert start.metrics == ("P@10", "Recall@10", "nDCG@10", "nDCG@100", "AP@100", "RR@100")
    assert (start.threshold, start.undefined, start.average, start.coverage) == ("auto", "zero", "mean", "full")
    assert (start.significance, start.correction) == ("permutation", "max_t")


@given(some, some)
@settings(max_examples=50)
def test_equal_decisions_have_one_hash_and_different_ones_different_phrases(one, other):
    first, second = Decisions(**one), Decisions(**other)
    assert (first == second) == (str(first) == str(second))
    assert (first == second) <= (hash(first) == hash(second))
    assert (first == second) == (not first.differences(second))


@given(some)
def test_decisions_survive_their_dictionary_and_pickle(changes):
    decisions = Decisions(**changes)
    assert Decisions(**{k: tuple(v) if isinstance(v, list) else v for k, v in decisions.as_dict().items()}) == decisions
    assert pickle.loads(pickle.dumps(decisions)) == decisions


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({"split": "random(train=0.8)", "metrics": "nDCG(gain=exp)@10"},
         "a random 20 % of ratings as test, full lists, nDCG@10 with exponential gain, plain mean"),
        ({"split": "k_fold(k=5)", "lists": "condensed", "metrics": "P@5", "coverage": "reduced"},
         "5-fold cross-validation, condensed lists, P@5, plain mean, only users that every system serves"),
        ({"relevant": "one", "nonrelevant": 100, "metrics": "Recall@10", "significance": "student"},
         "a random 20 % of ratings as test, full lists, one relevant item per list, 100 non-relevant items drawn, "
         "Recall@10, plain mean, tested by student"),
        ({"metrics": ("P@10", "nDCG@10"), "threshold": 4},
         "a random 20 % of ratings as test, full lists, P@10 and nDCG@10, plain mean, relevant from 4 (P); nDCG: "
         "gain = rating"),
        ({"metrics": "nDCG@10", "threshold": 4},
         "a random 20 % of ratings as test, full lists, nDCG@10, plain mean, nDCG: gain = rating, no metric uses the "
         "threshold, 4"),
    ],
)  # fmt: skip
def test_a_phrase_says_what_a_paper_would_say(changes, phrase):
    assert str(Decisions(**changes)) == phrase


def test_a_spelling_has_one_form():
    one = Decisions(split="random( exact=true,train=0.5 )", metrics=["ndcg@10", "nDCG@10"], average=" mean ")
    assert one.split == "random(train=0.5, exact=true)"
    assert one.metrics == ("nDCG@10",)
    assert one.average == "mean"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lists": "condensd"}, "lists='condensd' is not one of full, condensed; did you mean 'condensed'?"),
        ({"split": "randm(train=0.5)"}, "did you mean 'random'?"),
        ({"split": "random(trian=0.5)"}, "split='random(trian=0.5)': random has no parameter 'trian'; did you"),
        ({"split": "train_per_item"}, "split='train_per_item': train_per_item needs l; write train_per_item(l=..."),
        ({"filters": ("kcore(k=5)",)}, "did you mean 'k_core'?"),
        ({"filters": "positives"}, "filters='positives': positives needs threshold; write positives(threshold=...)"),
        ({"filters": 5}, "filters=5 is not a list of names"),
        ({"metrics": ()}, "metrics is empty"),
        ({"split": "k_fold(k=abc)"}, "split='k_fold(k=abc)': k=abc of k_fold is not a whole number"),
        ({"filters": ["k_core(k=x)"]}, "filters='k_core(k=x)': k=x of k_core is not a whole number"),
        ({"metric": "P@5"}, "there is no decision 'metric'; did you mean 'metrics'?"),
        ({"metrics": "nDCG(gain=foo)@10"}, "gain=foo of nDCG is not one of rating, binary"),
        ({"metrics": "Precison@10"}, "did you mean 'Precision'?"),
        ({"metrics": "P@200"}, "length=100 is too short for P@200; set length=200"),
        ({"fill": "populrity"}, "did you mean 'popularity'?"),
        ({"threshold": "four"}, "threshold='four' is not a number"),
        ({"threshold": True}, "threshold=True is not a number"),
        ({"alpha": 5}, "alpha=5 is not a share"),
        ({"min_ratings": -1}, "min_ratings=-1 is not a whole number of at least 0"),
        ({"sample": 1.0}, "neither 'all' nor a number of users nor a share below 1"),
        ({"sample": 1.5}, "neither 'all' nor a number of users nor a share"),
        ({"nonrelevant": 0}, "nonrelevant=0 is neither 'all' nor a whole number"),
        ({"average": "meen"}, "did you mean 'mean'?"),
        ({"significance": "tt"}, "there is no significance test 'tt'"),
        ({"significance": "studnt"}, "did you mean 'student'?"),
        ({"correction": "hom"}, "did you mean 'holm'?"),
        ({"lists": "condensed", "nonrelevant": 100}, "lists='condensed' keeps only rated items"),
        ({"unrated": -1}, "unrated=-1 is neither 'all' nor a whole number of at least 0"),
        ({"lists": "condensed", "unrated": 9}, "unrated=9 ranks all test items of a user and items that"),
        ({"candidates": "group"}, "set relevant='one'"),
        ({"candidates": "group", "relevant": "one"}, "which split='random(train=0.8)' does not make; set split='perc"),
        ({"candidates": "group", "relevant": "one", "split": "predefined"}, "which split='predefined' does not make"),
        ({"split": "predefined(overlp=test)"}, "did you mean 'overlap'?"),
        ({"split": "predefined(overlap=tst)"}, "overlap='tst' is not one of error, test, train"),
        ({"validation": "temporl"}, "validation='temporl': there is no split 'temporl'; did you mean 'temporal'?"),
        ({"validation": "k_fold(k=5)"}, "validation='k_fold(k=5)' does not make one validation part; set validation="),
        ({"validation": "predefined"}, "does not make one validation part"),
        ({"validation": "random(validation=0.1)"}, "a validation part has no validation part itself"),
        ({"validation": "random", "split": "random(validation=0.1)"}, "sets a validation part aside, so validation="),
        ({"refit": "no"}, "refit='no'"),
        ({"validation_windows": 0}, "validation_windows=0 is not a whole number of at least 1"),
        ({"split": "predefind"}, "did you mean 'predefined'?"),
        ({"fill": 5}, "fill=5 is not text; write it in quotes"),
        ({"split": "predefined", "filters": ("k_core(k=5)",)}, "split='predefined' takes data that are already"),
        ({"significance": "log_student"}, "set average='geometric(form=adjusted, epsilon=1e-05)'"),
        (
            {"significance": "log_student(epsilon=0.1)", "average": "geometric(form=adjusted, epsilon=0.01)"},
            "a different average",
        ),
        ({"average": "median"}, "set significance='sign'"),
        ({"significance": "tukey", "correction": "bonferroni"}, "would correct twice; set correction='none'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_key_and_the_remedy(changes, said):
    with pytest.raises(SettingError) as error:
        Decisions(**changes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_log_form_and_the_sign_test_go_with_their_averages():
    Decisions(average="geometric(form=adjusted, epsilon=0.01)", significance="log_student(epsilon=0.01)")
    assert Decisions(average="median", significance="sign").tested.average == "mean"
    assert Decisions(average="geometric", significance="student").tested.average == "geometric"  # as in compare


def test_an_unknown_decision_names_the_nearest():
    with pytest.raises(SettingError, match="there is no decision 'metric'; did you mean 'metrics'"):
        Decisions().with_(metric="P@5")


def test_the_settings_are_those_of_the_functions():
    start = Decisions()
    for groups, function in (
        ((start.serving, start.ranking), recommend),
        ((start.measuring,), measure),
        ((start.averaging,), Scores.frame),
        ((start.comparing, start.tested), compare),
    ):
        settings_of = {name for group in groups for name in group.as_dict()}
        assert settings_of <= set(inspect.signature(function).parameters)


def test_every_decision_is_declared_by_one_group_in_the_order_of_the_paper():
    letters = [declared.metadata["letter"] for declared in DECISIONS.values()]
    assert letters == sorted(letters)
    assert len(DECISIONS) == sum(len(group.decisions()) for group in GROUPS)
    assert list(Decisions().as_dict()) == list(DECISIONS)


def test_every_value_of_the_property_is_of_a_decision():
    assert set(VALUES) | {"nonrelevant", "unrated", "draws", "calibration"} == set(DECISIONS)


@pytest.mark.parametrize("name", list(DECISIONS))
def test_the_schema_admits_the_values_and_refuses_others(name):
    import jsonschema

    about = schema()["properties"]["decisions"]["properties"][name]
    words = {"calibration": ["none", "linear", "isotonic"], "draws": ["sampled", "exact"]}
    for value in {**VALUES, **words}.get(name, ["all", 7]):
        jsonschema.validate(list(value) if isinstance(value, tuple) else value, about)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"not": "this"}, about)


def test_every_decision_is_used():
    source = Path(cranfield.__file__).parent
    text = "\n".join(file.read_text(encoding="utf-8") for file in source.rglob("*.py"))
    assert [name for name in DECISIONS if not re.search(rf"\w\.{name}\b", text)] == []


def test_a_label_stands_in_place_of_the_words_of_a_decision(tiny, tmp_path):
    labels = {"random(train=0.8)": "a fifth <held out>"}
    results = run(tiny(labels=labels), tmp_path)
    assert str(results.experiment).startswith("popularity, random and near on tiny: a fifth <held out>, full lists")
    assert "Averages on tiny: a fifth" in (tmp_path / "tables" / "tiny-averages.tex").read_text()
    assert results.card()["phrase"].startswith("a fifth <held out>, ")
    assert read_experiment(tmp_path / "experiment.toml").labels == labels
    with pytest.raises(SettingError, match=r"labels\.split"):
        tiny(labels={"split": 3})
