"""One verdict over several datasets, against other libraries, on real data, and on a published table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import cranfield as cf
from cranfield.across.pooling import pooled
from cranfield.across.ranks import rank_tests, ranks_of


@pytest.mark.parametrize("seed", range(5))
def test_weights_by_precision_are_the_hartung_knapp_intervals_of_statsmodels(seed):
    library = pytest.importorskip("statsmodels.stats.meta_analysis", reason="statsmodels is not installed")
    draws = np.random.default_rng(seed)
    y, s = draws.normal(0.1, 0.2, 7), draws.uniform(0.01, 0.1, 7)
    theirs = library.combine_effects(y, s**2, method_re="pm", use_t=True)
    ours = pooled(y[None], s[None], weights="precision")
    assert (ours.tau[0] ** 2, ours.q[0]) == pytest.approx((theirs.tau2, theirs.q), rel=1e-6)
    if ours.tau[0] > 0:  # otherwise their factor may be below 1, and ours never is
        assert (ours.mean[0], ours.error[0]) == pytest.approx(
            (theirs.mean_effect_re, theirs.sd_eff_w_re_hksj), rel=1e-6
        )


def test_critical_differences_are_those_of_scikit_posthocs_and_autorank():
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed")
    autorank = pytest.importorskip("autorank", reason="autorank is not installed")
    values = np.random.default_rng(0).random((8, 5))  # datasets × systems
    ranks = ranks_of(values.T)
    critical = rank_tests(ranks)[-1]
    p = posthocs.posthoc_nemenyi_friedman(values).to_numpy()
    apart = np.abs(ranks.mean(axis=1)[:, None] - ranks.mean(axis=1)) > critical
    assert np.array_equal(apart, (p < 0.05) & ~np.eye(5, dtype=bool))
    theirs = autorank.autorank(pd.DataFrame(values), force_mode="nonparametric", verbose=False)
    assert theirs.cd == pytest.approx(critical, abs=1e-4)
    assert theirs.rankdf["meanrank"].sort_index().to_numpy() == pytest.approx(ranks.mean(axis=1))


@pytest.fixture
def printed(real_data):
    """Return the published precision of LibRec's systems on CM100k, on the observed and on the true test set."""
    path = real_data("cm100k.parquet").parent.parent / "oracles" / "mena-maldonado2021-cm100k.csv"
    if not path.exists():
        pytest.skip("the published numbers are not beside the data")
    rows = pl.read_csv(path).filter(metric="precision")
    return rows.filter(~pl.col("system").str.starts_with("optimal")).drop("metric")


def test_a_published_table_has_its_leader_by_every_rule_and_says_nothing_of_others(printed):
    """The most popular items lead by observed and by true precision (Mena-Maldonado 2021)."""
    result = cf.compare_datasets(printed, metrics="P@10")
    assert result.datasets == ("cm100k_observed", "cm100k_true")
    first, second = result.standings[0].main
    means = {name: printed.filter(system=name).sort("dataset")["value"].to_numpy() for name in (first, second)}
    gain = np.sqrt(np.prod(means[first] / means[second])) - 1
    assert (first, f"is {100 * gain:.0f} % above {second};" in result.verdict[0]) == ("mostpopular", True)
    assert "ahead on both, and two say nothing of others" in result.verdict[0]
    assert any("one source (CM100k)" in said for said in result.verdict)
    assert result.rules().filter("leads")["system"].to_list() == ["mostpopular"] * 5


@pytest.mark.slow
def test_on_real_data_the_users_settle_these_datasets_and_nothing_settles_others(real_data):
    """ease and popularity on three small datasets: the interval over datasets is many times that over users."""
    data = {}
    for name, threshold, core in (("ml-100k", 4, 1), ("coat", 4, 1), ("hetrec2011-lastfm", 1, 2)):
        ratings = cf.read(
            pl.read_parquet(real_data(f"{name}.parquet")).select("user", "item", "rating"), repeated="last"
        )
        split = cf.splits.random(cf.filters.k_core(ratings, k=core), train=0.8, seed=7)
        runs = cf.recommend(split, ["ease", "itemknn", "popularity"], length=10)
        data[name] = cf.measure(runs, split.test, "nDCG@10", threshold=threshold, train=split.train)
    result = cf.compare_datasets(data)
    assert result.standings[0].main[0] == "ease"
    row = result.frame().filter(system_a="ease", system_b="popularity").row(0, named=True)
    assert row["these_lower"] > 0
    assert not row["significant"]
    assert row["upper"] - row["lower"] > 5 * (row["these_upper"] - row["these_lower"])
    alone = cf.compare(data["ml-100k"], baseline="popularity").frame().filter(system_a="ease").row(0, named=True)
    effect = result.effects().filter(dataset="ml-100k", system_a="ease", system_b="popularity").row(0, named=True)
    assert np.expm1(effect["effect"]) == pytest.approx(alone["relative"])
    # Fieller's interval, by its own route, is nearly that of the logarithm.
    fieller = np.log1p(alone["relative_upper"]) - np.log1p(alone["relative_lower"])
    assert effect["upper"] - effect["lower"] == pytest.approx(fieller, rel=0.25)
