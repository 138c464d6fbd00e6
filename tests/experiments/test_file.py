"""The experiment file, and the presets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import SettingError
from cranfield._errors import CranfieldError
from cranfield.experiments import (
    Decisions,
    Experiment,
    Range,
    Source,
    System,
    Tuning,
    new_experiment,
    read_experiment,
    run,
    schema,
)
from cranfield.experiments.file import experiment_of, moved, toml_of
from cranfield.experiments.inputs import load, origin
from cranfield.experiments.presets import PRESETS


def _read(tmp_path: Path, text: str) -> Experiment:
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    return read_experiment(path)


def test_an_empty_file_is_the_starting_configuration(tmp_path):
    assert _read(tmp_path, "") == Experiment()


def test_the_starting_file_states_every_decision_with_a_comment(tmp_path):
    path = new_experiment(tmp_path / "e.toml")
    assert read_experiment(path) == Experiment()
    text = path.read_text()
    for name in Decisions().as_dict():
        line = next(k for k, one in enumerate(text.splitlines()) if one.startswith(f"{name} = "))
        assert "#" in text.splitlines()[line] or text.splitlines()[line - 1].startswith("#")
    assert all(len(line) <= 130 for line in text.splitlines())


def test_a_file_that_is_there_stays_unless_forced(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text("mine")
    with pytest.raises(CranfieldError, match="force=True"):
        new_experiment(path)
    assert path.read_text() == "mine"
    new_experiment(path, force=True)
    assert read_experiment(path) == Experiment()


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(0, 2**31),
    st.dictionaries(st.sampled_from(["data", "tuning"]), st.text(st.characters(exclude_categories=["Cs"]))),
)
def test_what_is_written_reads_back(title, seed, notes):
    one = Experiment(
        title=title,
        seed=seed,
        repetitions=3,
        decisions=Decisions(filters=("k_core(k=5)",), threshold=3.5, sample=0.25),
        data=(
            Source("my films", file="r.csv", reading={"separator": "::", "header": False, "user": 1}),
            Source("b", simulate="world(users=60)"),
        ),
        systems=(
            System("a (best)", "knn(k=5)"),
            System("p", "popularity"),
            System("t", "wrmf", tuning=Tuning({"factors": (2, 4), "regularization": Range(0.1, 1, True)}, "P@5", 3)),
        ),
        notes=notes,
        assess={"samples": 5, "scenarios": ["ratings"]},
    )
    assert experiment_of(tomllib.loads(toml_of(one))) == one


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sed = 3", "the file: no key 'sed'; did you mean 'seed'?"),
        ("seed = -1", "seed=-1 is not a whole number"),
        ("repetitions = 0", "repetitions=0 is not a whole number"),
        ("repetitions = 2.0", None),
        ("title = 5", "title=5 is not text"),
        ("[decisions]\nthreshold = inf", "decisions: threshold=inf is not a rating; give a number"),
        ("decisions = 5", "decisions=5 is not a table"),
        ("[decisions]\nmetric = 'P@10'", "decisions: no key 'metric'; did you mean 'metrics'?"),
        ("[decisions]\nlists = 'ful'", "decisions: lists='ful' is not one of full, condensed"),
        ("[decisions]\nlists = 'condensed'\nnonrelevant = 100", "keeps only rated items"),
        ("[decisions]\nlists = 5", "lists=5 is not one of full, condensed"),
        ("[data.x]\nfil = 'a.csv'", "data.x: no key 'fil'; did you mean 'file'?"),
        ("[data.x]\n", "data.x does not say where the ratings come from; give one of file, dataset, simulate, train"),
        ("[data.x]\nfile = 'a'\ndataset = 'ml-1m'", "data.x has file and dataset"),
        ("[data.x]\nfile = 5", "data.x.file=5 is not text"),
        ("[data.x]\nfile = 'a'\nseparator = 3", "data.x.separator=3 is not possible; give text"),
        ("[data.x]\nfile = 'a'\nheader = 'no'", "data.x.header='no' is not possible; give true or false"),
        ("[data.x]\nfile = 'a'\nuser = true", "data.x.user=True is not possible; give text or a position"),
        ("[data.x]\ntrain = 'a'", "give both files"),
        ("[data.x]\ndataset = 'ml-1n'", "did you mean 'ml-1m'"),
        ("[data.x]\nsimulate = 'wrld()'", "did you mean 'world'?"),
        ("[data.x]\nsimulate = 'world(user=5)'", "did you mean 'users'?"),
        ("[data.x]\nsimulate = 'world(users=50)'\nseparator = ','", "is not a file, so separator does not apply"),
        ("[data.'../x']\nfile = 'a.csv'", "data has the name '../x'"),
        ("[data.x]\ntrain = 'a'\ntest = 'b'", "set split='predefined'"),
        ("[decisions]\nsplit = 'predefined'", "split='predefined' needs data that are already divided"),
        ("[decisions]\nsplit = 'temporal'\n[data.x]\nsimulate = 'world(times=false)'", "data.x has none; choose"),
        ("[decisions]\nsplit = 'temporal'\n[data.x]\nfile = 'a'\ntime = false", "needs times, and data.x has none"),
        ("[decisions]\nsplit = 'per_user(which=last)'\n[data.x]\nsimulate = 'popularity(users=50)'", "needs times"),
        ("[decisions]\nsplit = 'random(seed=3)'\n", None),
        ("repetitions = 2\n[decisions]\nsplit = 'random(seed=3)'", "would all be the same"),
        ("repetitions = 2\n[decisions]\nsignificance = 'wilcoxon'", "cannot include the spread between repetitions"),
        ("systems = ['knn(k=5)', 'popularty']", "systems.popularty: there is no system 'popularty'; did you mean"),
        ("systems = ['knn(']", "'knn(' cannot be read"),
        ("systems = ['knn(k=5)', 'knn( k=5 )']", "systems has 'knn(k=5)' twice"),
        ("systems = []", "systems is empty"),
        ("systems = [5]", "systems: 5 is not text"),
        ("[systems]\na = { rn = 'x' }", "systems.a: no key 'rn'; did you mean 'run'?"),
        ("[systems]\na = { run = 'x.tsv' }", "it may have seen the test part"),
        ("[decisions]\nbaseline = 'knn'\n[systems]\nknm = 'knn'", "baseline='knn' is not one of the systems; did you"),
        ("[decisions]\naverage = 'urisk(baseline=knn)'\n[systems]\nknm = 'knn'", "(baseline=knn)' is not a system"),
        ("[systems]\na = { system = 'knm' }", "systems.a: there is no system 'knm'"),
        ("[systems]\na = { system = 'knn', search = { kk = [1] } }", "knn has no parameter 'kk'; did you mean 'k'?"),
        ("[systems]\na = { system = 'knn', search = { k = [1, 0] } }", "systems.a: search: k=0 of knn is out of range"),
        ("[systems]\na = { system = 'knn', search = { k = 5 } }", "k=5 is neither a list of values nor a range"),
        ("[systems]\na = { system = 'knn', search = {} }", "systems.a: search is empty"),
        ("[systems]\na = { system = 'knn', search = 5 }", "systems.a: search=5 is not a table"),
        ("[systems]\na = { system = 'knn(k=5)', search = { k = [1] } }", "k is already fixed in 'knn(k=5)'"),
        ("[systems]\na = { system = 'knn', search = { k = { low = 1, high = 9 } } }", "k is a range, so not"),
        ("[systems]\na = { system = 'knn', search = { k = { low = 9, high = 1 } }, trials = 2 }", "is not a range"),
        ("[systems]\na = { system = 'knn', search = { k = [1] }, trials = 0 }", "trials=0 is not a whole number"),
        ("[systems]\na = { system = 'knn', search = { k = [1] }, metric = 'nDGC@5' }", "did you mean 'nDCG'?"),
        ("[systems]\na = { system = 'knn', search = { k = [1] }, metric = 'P@500' }", "too short for P@500"),
        ("[systems]\na = { system = 'knn', metric = 'P@5' }", "systems.a: metric belongs to a search; add one"),
        ("[systems]\na = { run = 'x.tsv', gaps = 'shut' }", "systems.a.gaps='shut'"),
        ("[systems]\na = { system = 'knn', gaps = 'close' }", "gaps is for ranked lists, run = 'file'; leave it out"),
        ("[systems]\na = { run = 'x.tsv', search = { k = [1] } }", "is a file, so there is nothing to search"),
        ("[systems]\na = { search = { k = [1] } }", "needs a recommender"),
        ("[notes]\ndata = 5", "notes.data=5 is not text"),
        ("[notes]\ntunning = 'x'", "notes: no key 'tunning'; did you mean 'tuning'?"),
        ("[assess]\nsample = 5", "assess: no key 'sample'; did you mean 'samples'?"),
        ("[assess]\naverages = [5]", "assess: averages=[5] is not a list of names"),
        ("seed = ", "it is not TOML"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_the_file_the_key_and_what_to_do(tmp_path, text, said):
    if said is None:
        _read(tmp_path, text)
        return
    with pytest.raises(CranfieldError) as error:
        _read(tmp_path, text)
    assert said in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "experiment.toml"))
    assert "\n" not in str(error.value)


def test_a_byte_order_mark_is_no_part_of_the_file(tmp_path):
    assert _read(tmp_path, "\ufeffseed = 3").seed == 3


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(CranfieldError, match="cranfield new"):
        read_experiment(tmp_path / "no.toml")


def test_file_names_start_from_the_experiment_file_wherever_it_goes(tmp_path):
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "e.toml"
    path.write_text("[data.x]\nfile = '../ratings.csv'")
    here = read_experiment(path)
    assert here.path("../ratings.csv").resolve() == (tmp_path / "ratings.csv").resolve()
    there = moved(here, tmp_path / "b" / "c")
    assert there.data[0].file == "../../ratings.csv"


def test_the_schema_accepts_what_the_reader_accepts_and_refuses_misspellings():
    jsonschema = pytest.importorskip("jsonschema")
    rules = schema()
    jsonschema.Draft202012Validator.check_schema(rules)
    full = Experiment(
        decisions=Decisions(sample=0.5, nonrelevant=100, length="all"),
        assess={"samples": 5},
        notes={"data": "x"},
        systems=(
            System("p", "popularity"),
            System("t", "wrmf", tuning=Tuning({"factors": (2, 4), "alpha": Range(1, 9)}, "P@5", 3)),
        ),
    )
    for good in ("", toml_of(Experiment()), toml_of(full), "systems = ['knn']\n[decisions]\nmetrics = 'P@10'"):
        jsonschema.validate(tomllib.loads(good), rules)
    for bad in ("sed = 3", "[decisions]\nlists = 'ful'", "[data.x]\n", "[systems]\na = { rn = 'x' }",
                "[systems]\na = { system = 'knn', trials = 3 }"):  # fmt: skip
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(tomllib.loads(bad), rules)


def test_a_table_of_opened_decisions_reads_back_as_it_was():
    table = {
        "budget": 100,
        "vary": {
            "split": ["random(train=0.5)", "k_fold(k=5)"],
            "keep_seen": [False, True],
            "filters": [[], ["k_core(k=5)"]],
        },
        "systems": {"knn(k=100)": {"k": [50, 100]}},
    }
    experiment = Experiment(audit=table)
    assert experiment_of(tomllib.loads(toml_of(experiment))) == experiment


def test_a_listed_average_is_called_item_mean_and_may_be_the_baseline_as_it_is_spelled(tmp_path):
    listed = _read(tmp_path, "systems = ['average', 'knn']\n[decisions]\nbaseline = 'average'")
    assert [one.name for one in listed.systems] == ["item mean", "knn"]
    named = _read(tmp_path, "[systems]\nmine = 'average'\naverage = 'average'\n[decisions]\nbaseline = 'average'")
    assert [one.name for one in named.systems] == ["mine", "item mean"]


def test_tukeys_test_needs_no_correction_and_refuses_one_as_compare_does(tmp_path):
    path = tmp_path / "tukey.toml"
    path.write_text('[decisions]\nsignificance = "tukey"\n')
    assert read_experiment(path).decisions.comparing.correction == "none"
    path.write_text('[decisions]\nsignificance = "tukey"\ncorrection = "holm"\n')
    with pytest.raises(CranfieldError, match="correction='holm' would correct twice; set correction='none', or leave"):
        read_experiment(path)


def test_files_of_features_are_stated_moved_and_read(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\n1,1,5\n1,2,3\n2,1,4\n")
    (tmp_path / "u.csv").write_text("user,age\n1,30\n2,40\n")
    experiment = _read(tmp_path, '[data.mine]\nfile = "r.csv"\nuser_features = "u.csv"\n[systems]\na = "popularity"\n')
    assert 'user_features = "../u.csv"' in toml_of(moved(experiment, tmp_path / "out"))
    ratings = load(experiment, experiment.data[0], None)["ratings"]
    assert ratings.user_features.rows(ratings.user_ids)["age"].to_list() == [30, 40]
    assert ratings.history[-1].settings["source"] == "u.csv"


def test_other_features_are_other_data(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\n1,1,5\n")
    (tmp_path / "u.csv").write_text("user,age\n1,30\n")
    experiment = Experiment(data=(Source("mine", file="r.csv", user_features="u.csv"),), base=tmp_path)
    before = origin(experiment, experiment.data[0], fetching=False)
    (tmp_path / "u.csv").write_text("user,age\n1,31\n")
    assert origin(experiment, experiment.data[0], fetching=False) != before


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_written_as_a_file_that_states_it(name, tmp_path):
    path = new_experiment(tmp_path / "experiment.toml", preset=name)
    assert read_experiment(path) == PRESETS[name].experiment


_LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("valcarce2018", "valcarce2020")]


@pytest.mark.parametrize("name", ["canamares2020", "bellogin2017", "aftab2022", *_LONG])
def test_a_preset_runs(name, tmp_path):
    path = new_experiment(tmp_path / "experiment.toml", preset=name)
    small = re.sub(r"world\(.*?\)", "world(users=60, items=40, ratings=900)", path.read_text(encoding="utf-8"))
    # Compiling and training learned systems would take longer than everything else.
    learned = "^(MF|BPR-MF|slim|ht|svd|bprmf|wrmf|lda|plsa|rm2|uir) = .*$"
    small = re.sub(learned, r'\1 = "puresvd(factors=4)"', small, flags=re.MULTILINE)
    small = re.sub(r"^\[assess\]$", "[assess]\nsamples = 2\nsizes = [0.5]", small, flags=re.MULTILINE)
    path.write_text(small, encoding="utf-8")
    assert run(path).finished


def test_the_one_relevant_design_of_bellogin_is_averaged_over_lists_as_in_equation_1(tmp_path):
    path = new_experiment(tmp_path / "experiment.toml", preset="bellogin2017")
    text = path.read_text(encoding="utf-8").replace("items=500, ratings=50000", "items=200, ratings=9000")
    kept = re.sub("^(plsa|svd|wrmf|knn) = .*\n", "", text.replace("users=1000", "users=150"), flags=re.MULTILINE)
    path.write_text(kept, encoding="utf-8")
    results = run(path)
    whole = results.averages().filter(pl.col("fold").is_null(), metric="P@10")
    means = whole.select("system", "mean").rows()
    scores = results.findings("world").scores
    assert dict(means) == pytest.approx(dict(zip(scores.systems, scores.average(by="list")[:, 0])))
    assert dict(means)["random"] == pytest.approx(0.01, abs=0.003)  # 1/t, equation 5


def test_the_starting_configuration_of_canamares_castells_and_moffat():
    stated = PRESETS["canamares2020"].experiment.decisions
    assert stated.split == "random(train=0.5)"
    assert (stated.min_ratings, stated.fill, stated.lists, stated.coverage) == (1, "none", "full", "full")
    assert (stated.metrics, stated.threshold) == (("P@10", "nDCG(gain=binary)@10"), 4.0)
    assert (stated.average, stated.undefined, stated.significance) == ("mean", "zero", "student")


def test_a_preset_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    with pytest.raises(SettingError, match="preset='canamares' is not one of canamares2020, valcarce2018"):
        new_experiment(tmp_path / "experiment.toml", preset="canamares")
    assert not (tmp_path / "experiment.toml").exists()


@pytest.mark.parametrize("stated", [{"title": None}, {"notes": {"data": None}}])
def test_a_title_and_notes_are_text(stated):
    with pytest.raises(SettingError, match="=None is not text; write it in quotes"):
        Experiment(**stated)
