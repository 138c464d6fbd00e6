"""What installed packages offer by entry points."""

from __future__ import annotations

import sys

import pytest

import cranfield as cf
from cranfield.experiments import System
from cranfield.recommenders import recommender

MODULE = """
import numpy as np
import cranfield as cf


class Offered:
    def __init__(self, k=1):
        self.k = k
    def fit(self, train):
        self.n_items = train.n_items
        return self
    def score(self, users):
        return np.tile(np.arange(self.n_items), (len(users), 1))


@cf.metric("offered_hits")
def hits(judged):
    return judged.n_hits >= 1


def not_registered(judged):
    return judged.n_hits
"""
OFFERS = """[cranfield.recommenders]
offered = plugged_in:Offered
offered_function = plugged_in:not_registered
offered_nothing = plugged_in_elsewhere:Nothing
[cranfield.metrics]
offered_hits = plugged_in:hits
other_name = plugged_in:hits
offered_plain = plugged_in:not_registered
"""


@pytest.fixture
def _installed(tmp_path, monkeypatch):
    """Install a package that offers systems and metrics."""
    (tmp_path / "plugged_in.py").write_text(MODULE)
    about = tmp_path / "plugged_in-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged-in\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(OFFERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("plugged_in", None)


@pytest.mark.usefixtures("_installed")
def test_an_offered_system_is_known_by_its_name_and_needs_no_permission():
    assert recommender("offered(k=3)").k == 3
    assert System("mine", "offered(k=3)").spelling == "offered(k=3)"
    with pytest.raises(cf.SettingError, match="offered has no parameter 'q'"):
        recommender("offered(q=3)")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("name", ["offered_hits", "other_name"])
def test_an_offered_metric_is_known_by_its_name(name):
    test = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    scores = cf.measure({"mine": {"ann": ["x"], "bob": ["x"]}}, test, f"{name}@1")
    assert scores.metrics == (f"{name}@1",)
    assert scores.average().tolist() == [[0.5]]


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("offered_function", "'offered_function' of an installed package is not a class with fit"),
        ("offered_nothing", "'offered_nothing' of an installed package cannot be imported .ModuleNotFoundError"),
        ("offred", "there is no system 'offred'; did you mean 'offered'"),
    ],
)
def test_an_offer_that_is_no_system_is_refused(name, message):
    with pytest.raises(cf.SettingError, match=message):
        recommender(name)


@pytest.mark.usefixtures("_installed")
def test_an_offer_that_is_no_metric_is_refused():
    with pytest.raises(cf.SettingError, match="'offered_plain' of an installed package is not registered"):
        cf.Metric.of("offered_plain@1")
