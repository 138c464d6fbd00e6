"""In a world whose truth is known, systems beat chance, and those that know the user beat popularity."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from cranfield import simulate
from cranfield.rankings.recommending import recommend
from cranfield.recommenders import SYSTEMS
from cranfield.recommenders.networks import NetworkModel

# Systems that rank (nearly) the same for all users: the published uir is popularity with a small correction.
IMPERSONAL = {"random", "popularity", "average", "useraverage", "uir", "topfreq"}

# The defaults are for MovieLens 1M; profiles are five times shorter here.
SPELLED = {
    **{
        name: name
        for name, system in SYSTEMS.items()
        if name != "spark-als" and (not issubclass(system, NetworkModel) or find_spec("jax"))
    },
    "topfreq": "topfreq(scope=both)",
    "tifu-knn": "tifu-knn(k=50, within=1, across=1)",  # tastes do not change here
    "wrmf": "wrmf(alpha=1, regularization=10)",
    "ials": "ials(factors=8, regularization=0.05)",
    "mf-pointwise": "mf-pointwise(factors=16, epochs=30, rate=0.02)",
    **(
        {
            "gmf": "gmf(factors=16, rate=0.01, epochs=15)",
            "bpr-triplet": "bpr-triplet(others=unrated, target=ranking, positive=1, rate=0.005)",
        }
        if find_spec("jax")
        else {}
    ),
}


@pytest.fixture(scope="module")
def values():
    """The true P@10 of every system: what share of its lists the users really like, seen or not in any test set."""
    # Items are seen more often if they are liked, so that popularity is a baseline worth beating.
    world = simulate.world(users=600, items=150, ratings=15_000, popularity_bias=0, relevance_bias=1.5, seed=3)
    runs = recommend(world.ratings, SPELLED, 10, fill="random")
    return {run.name: world.true_value(run, "P@10", exclude=world.ratings).mean() for run in runs}


@pytest.mark.parametrize("name", sorted(set(SYSTEMS) - {"random", "useraverage"}))
def test_better_than_chance(values, name):
    assert values[name] > 1.5 * values["random"]


@pytest.mark.parametrize("name", sorted(set(SYSTEMS) - IMPERSONAL))
def test_knowing_the_user_is_better_than_popularity(values, name):
    assert values[name] > 1.02 * values["popularity"]
