"""``cranfield recommend`` writes what the Python function makes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.cli import main
from cranfield.data import read
from cranfield.rankings.recommending import recommend
from cranfield.rankings.sources import file_name
from cranfield.recommenders.model import Model


@pytest.fixture
def files(tmp_path):
    draw = np.random.default_rng(0)
    user, item = np.nonzero(draw.random((20, 15)) < 0.6)
    frame = pl.DataFrame({"user": user, "item": item, "rating": draw.integers(1, 6, len(user))})
    held_out = pl.Series(draw.random(len(user)) < 0.3)
    frame.filter(~held_out).write_csv(tmp_path / "train.csv")
    frame.filter(held_out).write_csv(tmp_path / "test.csv")
    return tmp_path


def test_the_files_are_the_runs_of_the_function(files, cranfield):
    systems = ["popularity", "knn(k=3, overlap=2)"]
    asked = ["-s", systems[0], "-s", systems[1], "--length", 5, "--fill", "average"]
    found = cranfield("recommend", "--train", files / "train.csv", *asked, "--out", files / "r")
    assert found.code == 0
    made = recommend(read(files / "train.csv"), systems, length=5, fill="average")
    for run, name in zip(made, ["popularity", "knn(k=3,overlap=2)"], strict=True):
        assert pl.read_parquet(files / "r" / f"{name}.parquet").rows() == run.frame().rows()
    assert "popularity.parquet: 20 users, 100 items" in found.out


def test_evaluate_reads_what_recommend_writes(files, cranfield):
    for ending in ("parquet", "tsv", "csv", "trec"):
        out = files / ending
        found = cranfield(
            "recommend", "--train", files / "train.csv", "-s", "rw", "--out", out, "--format", ending, "--quiet"
        )
        assert found.code == 0
        found = cranfield("evaluate", "--test", files / "test.csv", out / f"rw.{ending}", "--threshold", 4)
        assert "rw" in found.out


def test_evaluate_reads_one_relevant_lists_too(files, cranfield):
    asked = ["--test", files / "test.csv", "--relevant", "one", "--nonrelevant", 3, "--threshold", 4]
    found = cranfield(
        "recommend", "--train", files / "train.csv", *asked, "-s", "knn(k=3)", "--out", files / "one", "--quiet"
    )
    assert found.code == 0
    path = files / "one" / "knn(k=3).parquet"
    found = cranfield("evaluate", "--test", files / "test.csv", path, "-m", "Recall@2", "--threshold", 4)
    assert "Recall@2" in found.out
    assert pl.read_parquet(path).columns == ["user", "item", "rank", "length"]


def test_calibrated_lists_carry_their_map_and_are_kept_on_resuming(files, cranfield):
    asked = ["--train", files / "train.csv", "--test", files / "test.csv", "-s", "knn(k=3)", "--out", files / "c"]
    assert cranfield("recommend", *asked, "--calibration", "linear", "--length", "all").code == 0
    path, metrics = files / "c" / "knn(k=3).parquet", ["-m", "SDCSE@5", "-m", "UpSell(margin=spread)@5"]
    run = cf.read_run(path)
    assert run.calibration.method == "linear"
    np.testing.assert_array_equal(run.predictions, run.calibration(run.scores))
    found = cranfield("evaluate", "--test", files / "test.csv", path, *metrics, "--levels", "all", "--format", "csv")
    assert found.code == 0
    assert "SDCSE(rel=4)@5" in found.out
    again = cranfield("recommend", *asked, "--calibration", "linear", "--length", "all", "--resume")
    assert "1 of 1 runs already existed" in again.out
    assert cranfield("recommend", *asked, "--length", "all").code == 0
    refused = cranfield("evaluate", "--test", files / "test.csv", path, "-m", "RMSE@5")
    assert refused.code == 2
    assert "knn(k=3) gives scores that only rank" in refused.err
    assert refused.err.count("\n") == 1


def test_lists_of_ones_own_are_calibrated_by_held_out_ones(files, cranfield):
    lists = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "score": [9.0, 1.0, 5.0]})
    lists.write_csv(files / "mine.csv")
    pl.DataFrame({"user": [3, 3, 3], "item": [1, 2, 3], "score": [10.0, 0.0, 5.0]}).write_csv(files / "on-held-out.csv")
    pl.DataFrame({"user": [3, 3, 3], "item": [1, 2, 3], "rating": [5, 1, 3]}).write_csv(files / "held-out.csv")
    asked = [files / "mine.csv", "--by", files / "on-held-out.csv", "--validation", files / "held-out.csv"]
    done = cranfield("calibrate", *asked, "--method", "linear", "--out", files / "calibrated.csv")
    assert "linear calibration on 3 ratings, spread of the residuals 0" in done.out
    assert pl.read_csv(files / "calibrated.csv")["prediction"].to_list() == pytest.approx([4.6, 1.4, 3.0])
    assert cf.read_run(files / "calibrated.csv").calibration.spread == pytest.approx(0, abs=1e-9)
    for name, words in (("mine.csv", "would replace a file that is read"), ("a.trec", "cannot hold a column")):
        refused = cranfield("calibrate", *asked, "--out", files / name)
        assert refused.code == 2
        assert words in refused.err


def test_resuming_makes_only_what_is_missing(files, cranfield):
    options = ["--train", files / "train.csv", "-s", "popularity", "--out", files / "r", "--format", "tsv"]
    assert cranfield("recommend", *options).code == 0
    before = (files / "r" / "popularity.tsv").stat()
    found = cranfield("recommend", *options, "-s", "random", "--resume", "--jobs", 2)
    assert found.code == 0
    assert (files / "r" / "popularity.tsv").stat() == before
    assert (files / "r" / "random.tsv").exists()
    assert "1 of 2 runs already existed and were kept" in found.out


def test_a_file_of_somebody_else_is_replaced_and_that_is_said(files, cranfield):
    out = files / "r"
    out.mkdir()
    (out / "popularity.tsv").write_text("mine\n")
    options = ["--train", files / "train.csv", "-s", "popularity", "-s", "random", "--out", out, "--format", "tsv"]
    found = cranfield("recommend", *options)
    assert found.code == 0
    assert (out / "popularity.tsv").read_text() != "mine\n"
    assert "popularity.tsv: 20 users, 177 items (replaced)" in found.out


def test_the_ratings_are_not_replaced_by_lists(files, cranfield):
    mine = (files / "train.csv").rename(files / "popularity.csv")
    before = mine.read_text()
    found = cranfield("recommend", "--train", mine, "-s", "popularity", "--out", files, "--format", "csv")
    assert found.code == 2
    assert "popularity.csv is one of the input files; choose another folder with --out" in found.err
    assert mine.read_text() == before


def test_the_test_set_restricts_candidates(files, cranfield):
    options = ["--train", files / "train.csv", "--test", files / "test.csv", "-s", "popularity", "--length", "all"]
    assert cranfield("recommend", *options, "--lists", "condensed", "--out", files / "r", "--quiet").code == 0
    pairs = set(pl.read_parquet(files / "r" / "popularity.parquet").select("user", "item").rows())
    assert pairs == set(pl.read_csv(files / "test.csv").select("user", "item").rows())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no system is given"),
        (["-s", "knnn"], "did you mean 'knn'?"),
        (["-s", "knn(k=0)"], "k=0 of knn is out of range"),
        (["-s", "knn", "-s", "knn"], "give each system once"),
        (["-s", "knn", "--candidates", "test"], "needs the test ratings"),
        (["-s", "knn", "--length", "many"], "length='many' "),
        (["-s", "knn", "--sample", "1.5"], "sample=1.5 is neither 'all' nor a number of users nor a share below 1"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(files, cranfield, options, message):
    found = cranfield("recommend", "--train", files / "train.csv", "--out", files / "r", *options)
    assert found.code == 2
    assert message in found.err
    assert not (files / "r").exists()


def test_a_folder_that_cannot_be_is_told_before_anything_is_trained(files, cranfield, monkeypatch):
    monkeypatch.setattr(Model, "fit", None)
    found = cranfield("recommend", "--train", files / "train.csv", "-s", "knn", "--out", files / "train.csv")
    assert found.code == 2
    assert "train.csv is a file; name a folder" in found.err


def test_pairs_in_both_files_stay_where_the_option_says(files, cranfield):
    asked = ["--train", files / "train.csv", "--test", files / "train.csv", "-s", "knn", "--out", files / "r"]
    found = cranfield("recommend", *asked)
    assert found.code == 2
    assert "--overlap test" in found.err
    (files / "other.csv").write_text((files / "train.csv").read_text().split("\n", 2)[0] + "\n0,0,5\n19,14,5\n")
    asked[3] = files / "other.csv"
    assert cranfield("recommend", *asked, "--overlap", "train").code == 0
    alone = cranfield("recommend", *asked[:2], *asked[4:], "--overlap", "train")
    assert alone.code == 2
    assert "--overlap goes with --test" in alone.err


def test_file_names_are_safe_and_distinct():
    assert file_name(["a/b(x=../c)"]) == {"a/b(x=../c)": "a_b(x=.._c)"}


@pytest.mark.slow  # tests/rankings/test_fitting.py and tests/experiments/test_run.py check the same
def test_systems_trained_side_by_side_write_the_same_files(files, cranfield):
    asked = ["--train", files / "train.csv", "-s", "random", "-s", "knn(k=3)", "-s", "puresvd(factors=2)", "-q"]
    for jobs in (1, 2):
        assert cranfield("recommend", *asked, "--jobs", jobs, "--out", files / f"jobs-{jobs}").code == 0
    for path in (files / "jobs-1").glob("*.parquet"):
        assert (files / "jobs-2" / path.name).read_bytes() == path.read_bytes()


def test_a_file_of_the_average_is_spelled_and_its_results_say_item_mean(files, cranfield):
    asked = ["-s", "average", "-s", "popularity", "--length", 5]
    assert cranfield("recommend", "--train", files / "train.csv", *asked, "--out", files / "r").code == 0
    runs = sorted((files / "r").glob("*.parquet"))
    assert [path.name for path in runs] == ["average.parquet", "popularity.parquet"]
    found = cranfield("compare", "--test", files / "test.csv", *runs, "-m", "P@5", "--baseline", "average")
    assert found.code == 0
    assert "item mean" in found.out
    # A file of that name that cranfield did not write keeps the name that its owner gave it.
    runs[0].rename(files / "average.parquet")
    found = cranfield("evaluate", "--test", files / "test.csv", files / "average.parquet", "-m", "P@5")
    assert "item mean" not in found.out


OWN = """
from dataclasses import dataclass

import numpy as np

from cranfield.recommenders import Model, setting


@dataclass
class Mine(Model):
    power: float = setting(1.0, above=0)

    def _fit(self, train):
        self._scores = train.item_counts.astype(float) ** self.power

    def _score(self, users):
        return np.tile(self._scores, (len(users), 1))


class Wrong(Mine):
    def _score(self, users):
        return {}["nothing"]
"""


@pytest.fixture
def own(files, monkeypatch):
    (files / "typed_in.py").write_text(OWN)
    monkeypatch.chdir(files)
    return ("recommend", "--train", "train.csv", "--out", "own", "-s")


def test_a_system_of_ones_own_is_named_by_its_module(own, files, cranfield):
    found = cranfield(*own, "typed_in:Mine(power=2)")
    assert found.code == 0
    expected = recommend(read(files / "train.csv"), "popularity")[0].frame()
    made = pl.read_parquet(files / "own" / "typed_in_Mine(power=2).parquet")
    assert made.select("user", "item", "rank").equals(expected.select("user", "item", "rank"))


def test_lists_of_own_code_are_kept_until_it_changes(own, files, cranfield):
    cranfield(*own, "typed_in:Mine(power=2)")
    assert "1 of 1 runs already existed" in cranfield(*own, "typed_in:Mine(power=2)", "--resume").out
    (files / "typed_in.py").write_text(OWN.replace("** self.power", "* self.power"))
    found = cranfield(*own, "typed_in:Mine(power=2)", "--resume")
    assert "made again: the existing file differs in parameters" in found.out


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("typed_in:Wrong", "typed_in.py, line 22, in _score: KeyError: 'nothing' (return {}[\"nothing\"])"),
        ("typed_in:Mine(power=0)", "power=0 of typed_in:Mine is out of range; give a number above 0"),
        ("os:system(command=ls)", "os:system is not a class with fit(train) and score(users)"),
    ],
)
def test_what_is_wrong_with_own_code_is_said_in_one_line(own, cranfield, system, message):
    found = cranfield(*own, system)
    assert found.code == 2
    assert message in found.err
    assert found.err.count("\n") == 1


def test_users_who_are_held_out_whole_are_served_from_their_profiles(tmp_path, capsys):
    rows = [(user, item) for user in range(20) for item in range(12) if (user * 5 + item * 7) % 4]
    ratings = cf.Ratings.of(*zip(*rows))
    split = cf.splits.strong_generalisation(ratings, given=0.5)
    cf.splits.write(split, tmp_path)
    parts = {name: str(tmp_path / f"{name}.parquet") for name in ("train", "test", "profiles")}
    files = ["--train", parts["train"], "--test", parts["test"], "--profiles", parts["profiles"]]
    main(["recommend", *files, "-s", "ease", "--out", str(tmp_path / "runs")])
    (ours,) = cf.recommend(split, "ease")
    assert cf.read_run(tmp_path / "runs" / "ease.parquet").frame().rows() == ours.frame().rows()
    with pytest.raises(SystemExit):
        main(["recommend", *files, "-s", "bprmf", "--out", str(tmp_path / "runs")])
    assert "bprmf cannot score from a profile alone" in capsys.readouterr().err
    cf.write(cf.Ratings.of(split.train.user_ids.ids(split.train.users[:1]), [99]), tmp_path / "known.parquet")
    with pytest.raises(SystemExit):
        main(["recommend", *files[:5], str(tmp_path / "known.parquet"), "-s", "ease", "--out", str(tmp_path / "runs")])
    assert "1 users of profiles are in the training part too" in capsys.readouterr().err


def test_the_validation_part_of_a_split_leaves_the_lists_or_is_named(cranfield, tmp_path):
    ratings = cf.simulate.world(60, 40, 1500, seed=2).ratings
    split = cf.splits.temporal(ratings, train=0.8, validation=0.3)
    cf.splits.write(split, tmp_path / "parts", format="csv")
    train, test, validation = (str(tmp_path / "parts" / f"{name}.csv") for name in ("train", "test", "validation"))
    plain = cranfield("recommend", "--train", train, "-s", "popularity", "--out", str(tmp_path / "plain"))
    assert "validation.csv is not used, so that its items may be recommended" in plain.err
    own = set(split.validation.frame().select("user", "item").rows())
    for name, more in {"alone": [], "tested": ["--test", test]}.items():
        out = tmp_path / name
        made = cranfield(
            "recommend", "--train", train, "--validation", validation, *more, "-s", "popularity", "--out", out
        )
        assert (made.code, made.err) == (0, "")
        run = cf.read_run(out / "popularity.parquet")
        assert not own & set(run.frame().select("user", "item").rows())
        (here,) = cf.recommend(split, "popularity")
        assert set(run.frame().select("user", "item").rows()) >= set(here.frame().select("user", "item").rows()) or more


SPELLED = ["tifu-knn(k=5)", "topfreq(ties=recent)", "sknn(k=9)", "vsknn(k=9)", "itemknn-decay(step=0.5)"]


def _baskets(folder):
    draw = np.random.default_rng(5)
    days = draw.integers(0, 400, 1500)
    frame = {"user": draw.integers(0, 30, 1500), "item": draw.integers(0, 40, 1500), "time": days * 86_400}
    pl.DataFrame({**frame, "basket": days // 5}).write_csv(folder / "log.csv")
    return cf.splits.temporal(read(folder / "log.csv", basket="basket"), train=0.8, validation=0.2)


@pytest.mark.parametrize("with_test", [False, True])
def test_baskets_of_training_and_validation_files_stay_apart(cranfield, tmp_path, with_test):
    split = _baskets(tmp_path)
    cf.splits.write(split, tmp_path / "parts")
    parts = {name: tmp_path / "parts" / f"{name}.parquet" for name in ("train", "validation", "test")}
    given = [text for name, path in parts.items() if with_test or name != "test" for text in (f"--{name}", path)]
    systems = [text for system in SPELLED for text in ("-s", system)]
    made = cranfield("recommend", *given, *systems, "--repeats", "allow", "--out", tmp_path / "lists")
    assert (made.code, made.err) == (0, "")
    for run in cf.recommend(split, SPELLED, repeats="allow"):
        lists = cf.read_run(tmp_path / "lists" / f"{file_name(SPELLED)[run.name]}.parquet").frame()
        assert lists.select("user", "item").rows() == run.frame().select("user", "item").rows(), run.name


def test_baskets_that_were_numbered_apart_are_different_ones():
    parts = [{"user": [1, 1], "item": [7, 8], "time": times, "basket": [1, 2]} for times in ([1, 2], [3, 4])]
    whole = cf.data.together(cf.data.over_one_vocabulary([read(part, basket="basket") for part in parts]))
    assert whole.events.baskets.tolist() == [0, 2, 1, 3]
