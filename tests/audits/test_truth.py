"""An audit against a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

import cranfield as cf
from cranfield import CranfieldError, Ratings, SettingError, datasets
from cranfield.audits import Audit, read_audit
from cranfield.audits.auditing import audit_runs
from cranfield.audits.enumeration import enumerate_universes
from cranfield.audits.parsing import audit_settings
from cranfield.audits.truth import check_truth, true_values
from cranfield.experiments import Source, System
from cranfield.experiments.searching import Tuning
from cranfield.facts import audit as audit_facts

TRUE = {"knn": 0.3, "mf": 0.5, "pop": 0.1}
THREE = (System("popular", "popularity"), System("near", "knn(k=5)"), System("any", "random"))


@pytest.fixture(scope="module")
def found(grid, terms):
    averages = terms.values.mean(axis=2, dtype=np.float64)
    return Audit.of(grid, list(TRUE), averages, terms, draws=250, resamples=40, truth=TRUE)


def test_tau_of_an_option_is_the_mean_over_the_other_decisions(found):
    taus = np.array([kendalltau(list(TRUE.values()), column).statistic for column in found.averages.T])
    frame = found.truth()
    assert frame["tau"][0] == pytest.approx(taus[found.grid.universe].mean())
    for place, opened in enumerate(found.grid.varied):
        for number, option in enumerate(opened.options):
            (row,) = frame.filter(decision=opened.name, option=option).rows(named=True)
            cells = found.grid.cells[:, place] == number
            assert row["tau"] == pytest.approx(taus[found.grid.universe[cells]].mean())
            assert row["lower"] - 1e-12 <= row["tau"] <= row["upper"] + 1e-12
            assert row["cells"] == cells.sum()


def test_the_share_led_by_the_truly_better_system_is_that_of_the_frame(found):
    (row,) = found.truth("pairs").filter(system_a="knn", system_b="mf").rows(named=True)
    frame = found.frame().filter(system_a="knn", system_b="mf")
    assert row["truly_better"] == "mf"
    assert row["right"] == pytest.approx((frame["leader"] == "mf").mean())
    wrong = frame.filter(leader="knn", significant=True).height / frame.height
    assert row["wrong_significantly"] == pytest.approx(wrong)


def test_the_verdict_says_whether_the_share_agrees_and_which_option_is_nearest(found):
    lead, order = found.pair_facts("knn", "mf")[-2:]
    assert isinstance(lead, audit_facts.TrueLead)
    assert (lead.source, lead.row["truly_better"]) == ("the given values", "mf")
    assert lead.row["right"] > 0.5
    assert isinstance(order, audit_facts.TrueOrderReached)
    assert (order.best["decision"], order.worst["option"]) == ("split", "random(train=0.2)")


def test_a_truth_that_orders_them_the_other_way_has_the_opposite_tau(grid, terms, found):
    averages = terms.values.mean(axis=2, dtype=np.float64)
    turned = {name: -value for name, value in TRUE.items()}
    other = Audit.of(grid, list(TRUE), averages, terms, draws=250, resamples=40, truth=turned)
    assert other.truth()["tau"].to_list() == pytest.approx((-found.truth()["tau"]).to_list())
    assert other.pair_facts("knn", "mf")[-2].row["right"] < 0.5


def test_the_truth_is_a_file_and_reads_back(found, tmp_path):
    assert "truth.csv" in [path.name for path in found.save(tmp_path)]
    again = read_audit(tmp_path)
    assert again.truth().equals(found.truth())
    assert again.truth("pairs").equals(found.truth("pairs"))
    assert again.verdict == found.verdict


def test_without_a_truth_there_is_none(audit):
    assert audit.truth().is_empty()
    assert audit.truth("pairs").is_empty()


def test_a_world_knows_the_value_of_lists_from_all_ratings(tiny):
    experiment = tiny(systems=THREE, audit={"vary": {"cutoff": [5, 10]}, "systems": {"near": {"k": [5, 2]}}})
    values = true_values("nDCG@10", audit_settings(experiment))
    assert values.by == ("systems.near.k",)
    world = cf.simulate.world(users=60, items=40, ratings=900)
    for k in ("5", "2"):
        run = cf.recommend(world.ratings, [f"knn(k={k})"], 10)
        expected = np.nanmean(world.true_value(run[0], "nDCG@10", exclude=world.ratings))
        assert values.table[(k,)][1] == pytest.approx(expected)


def test_an_audit_of_a_world_holds_its_universes_against_it(tiny, tmp_path):
    vary = {"split": ["random(train=0.5)", "random(train=0.8)"], "cutoff": [5, 10]}
    found = cf.audit(tiny(systems=THREE), tmp_path / "out", vary=vary, truth="nDCG@10")
    assert (tmp_path / "out" / "audit" / "truth.csv").is_file()
    assert found.known.source == "nDCG@10 on all true preferences"
    assert set(found.truth()["decision"].drop_nulls()) == {"split", "cutoff"}


def test_cells_with_other_parameters_than_those_of_the_values_are_left_out(tiny):
    experiment = tiny(audit={"vary": {"cutoff": [5, 10]}, "systems": {"near": {"k": [5, 2]}}})
    settings = audit_settings(experiment)
    values = true_values({"popular": 0.2, "near": 0.1}, settings)
    enumeration = enumerate_universes(settings)
    grid, _ = enumeration.grid([str(number) for number in range(len(enumeration.universes))], {})
    known = ~np.isnan(values.of_cells(grid)).any(axis=0)
    assert [grid.words(cell)["systems.near.k"] == "5" for cell in range(grid.n_cells)] == known.tolist()


def test_true_values_of_given_lists_come_from_a_file(tmp_path):
    split = cf.splits.random(cf.simulate.world(60, 40, 900).ratings, train=0.6)
    runs = cf.recommend(split, ["popularity", "knn(k=5)"], length=10)
    (tmp_path / "truth.csv").write_text("system,value\nknn(k=5),0.3\npopularity,0.4\n")
    found = audit_runs(runs, split.test, vary={"cutoff": [5, 10]}, truth=str(tmp_path / "truth.csv"))
    assert found.truth("pairs")["truly_better"].to_list() == ["popularity"]
    with pytest.raises(SettingError, match="truth=P@5 needs systems that are trained here"):
        audit_runs(runs, split.test, vary={"cutoff": [5, 10]}, truth="P@5")


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ({"popular": 0.1, "neer": 0.2}, "audit.truth: there is no system 'neer'; did you mean 'near'?"),
        ({"popular": 0.1}, "audit.truth: near has no true value; give one for every system"),
        ({"popular": 0.1, "near": "much"}, "the value of near is 'much'; give a number"),
        ({"popular": 0.1, "near": float("nan")}, "the value of near is nan; give a number"),
        (3, "is not a table of true values"),
        ("nowhere.csv", "the true values cannot be read (No such file or directory)"),
        ("P", "'P' is not a metric with a cut-off and no parameters; write P@10"),
    ],
)
def test_a_truth_that_is_none_is_refused_before_anything_starts(tiny, truth, words):
    with pytest.raises(CranfieldError) as caught:
        check_truth(truth, tiny())
    assert words in str(caught.value)


def test_data_without_a_truth_and_systems_that_are_searched_are_named(tiny):
    source = Source("flat", simulate="popularity(users=60, items=40, ratings=900)")
    with pytest.raises(SettingError, match="needs data whose truth is known"):
        check_truth("P@10", tiny(data=(source,)))
    searched = System("best", "knn", tuning=Tuning({"k": (2, 5)}))
    with pytest.raises(SettingError, match=r"the parameters of systems.best are searched"):
        check_truth("P@10", tiny(systems=(*THREE, searched)))


def test_a_file_of_true_values_needs_its_columns_and_each_system_once(tiny, tmp_path):
    path = tmp_path / "truth.csv"
    for text, words in (("name,value\nnear,1\n", "lacks the columns"), ("system,value\nnear,1\nnear,2\n", "twice")):
        path.write_text(text)
        with pytest.raises(CranfieldError, match=words):
            check_truth(str(path), tiny())


@pytest.mark.parametrize("overlap", [False, True])
def test_ratings_of_random_items_tell_the_true_precision(monkeypatch, tiny, overlap):
    rng = np.random.default_rng(0)
    places = np.argsort(rng.random((60, 30)), axis=1)[:, :20]
    users, items = np.repeat(np.arange(60), 20), places.ravel()
    everything = Ratings.of(users, items, np.where(rng.random(1200) < 0.1 + 0.025 * items, 5, 1))
    observed = rng.random(1200) < 0.3
    known, judged = everything.keep(observed), everything if overlap else everything.keep(~observed)
    monkeypatch.setattr(datasets, "load_pair", lambda name: (known, judged))
    systems = (System("liked", "average"), System("dice", "random"))
    experiment = tiny(data=(Source("coats", dataset="coat"),), systems=systems, audit={"vary": {"cutoff": [5, 10]}})
    found = true_values("P@5", audit_settings(experiment))
    liked, dice = found.table[()]
    assert found.source == "P@5 by ratings of random items"
    assert liked > dice + 0.1
    assert dice == pytest.approx(0.1 + 0.025 * 14.5, abs=0.15)
    with pytest.raises(SettingError, match="tell the true precision; write P@10"):
        check_truth("nDCG@5", experiment)
