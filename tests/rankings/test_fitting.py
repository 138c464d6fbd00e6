"""Systems are trained in this process or in others, one or several at a time, with the same result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import cranfield as cf
from cranfield import CranfieldError, InputError, SettingError
from cranfield._errors import MissingExtraError
from cranfield.rankings import Ranking, Serving, fit_each, rank
from cranfield.rankings.fitting import _raised, jobs_for, movable, run_in_workers
from cranfield.rankings.recommending import timed_each
from cranfield.recommenders import Model, recommender, register

SYSTEMS = ["popularity", "knn(k=5)", "random", "puresvd(factors=4)", "bprmf(epochs=3)"]


@pytest.fixture(scope="module")
def split():
    return cf.splits.random(cf.simulate.world(80, 60, 1_500).ratings, train=0.7, seed=2)


def _told(run):
    arrays = {name: value.tobytes() for name, value in vars(run).items() if isinstance(value, np.ndarray)}
    return run.name, arrays, dict(run.counts), [step.as_dict() for step in run.history], run.one_relevant


@pytest.mark.parametrize(
    ("systems", "asked"),
    [
        (SYSTEMS[:3], {"seed": 3, "length": 7, "fill": "popularity", "sample": 0.5, "candidates": "test"}),
        (SYSTEMS, {"relevant": "one", "nonrelevant": 10, "threshold": 4}),
    ],
)
@pytest.mark.slow  # the next test is a fast version
def test_the_runs_are_the_same_and_in_the_same_order_for_any_number_of_jobs(split, systems, asked):
    one = cf.recommend(split, systems, jobs=1, **asked)
    two = cf.recommend(split, systems, jobs=2, **asked)
    assert [run.name for run in two] == systems
    assert [_told(run) for run in one] == [_told(run) for run in two]
    assert all(run.user_ids is split.train.user_ids for run in two)


class Mine:
    """A system that no other process can know."""

    process = 0

    def fit(self, train):
        self.process = os.getpid()
        return self

    def score(self, users):
        return np.tile(np.arange(60.0), (len(users), 1))


def test_a_system_of_ones_own_is_trained_here_and_the_others_beside(split):
    mine = Mine()
    ours = recommender("knn(k=5)")
    systems = {
        "ours": ours,
        "mine": mine,
        "popularity": "popularity",
        "function": lambda _, users: mine.score(users),
        "random": "random",
    }
    options = {"seed": 3, "length": 7, "fill": "popularity", "sample": 0.5}
    one, two = (cf.recommend(split, systems, jobs=jobs, **options) for jobs in (1, 2))
    assert [run.name for run in two] == list(systems)
    assert [_told(run) for run in one] == [_told(run) for run in two]
    assert all(run.user_ids is split.train.user_ids for run in two)
    assert mine.process == os.getpid()
    assert ours.score([0]).shape == (1, 60)


@pytest.mark.slow  # the tests below pass an error through a worker and check the result
def test_an_error_in_a_worker_is_the_error_that_it_would_be_here(split):
    negative = split.train.keep(np.ones(len(split.train), dtype=bool))
    object.__setattr__(negative, "values", negative.values - 10)
    for jobs in (1, 2):
        with pytest.raises(InputError, match="uses ratings as weights, and the training set holds -9"):
            cf.recommend(negative, ["random", "rm1"], jobs=jobs)


def _fails(name, thing):
    if name == "missing":
        raise MissingExtraError("slim", library="numba", extra="recommend")
    if name == "bug":
        return [][1]
    if name == "large":
        return np.empty(1 << 50)
    if name == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    print("a library that prints")
    return thing, cf.settings.workers


@pytest.fixture
def importable(monkeypatch):
    """Make this file a module that a worker can import too."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    import test_fitting as module

    return module


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("missing", MissingExtraError, "slim needs numba, which is not installed"),
        ("large", MemoryError, "Unable to allocate 8.00 PiB"),
    ],
)
def test_an_error_is_as_good_as_one_that_was_raised_here(name, kind, said):
    # What a worker sends for an error, and what is made of it here; the next test uses a real worker.
    with pytest.raises(kind, match=said) as raised:
        _fails(name, 2)
    again = _raised(type(raised.value), str(raised.value), "where it was raised")
    assert (type(again), str(again)) == (kind, str(raised.value))


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("bug", IndexError, "list index out of range"),
        ("dies", CranfieldError, r"to train dies ended with signal 9; if memory is short, .*"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_told_here(importable, name, kind, said):
    with pytest.raises(kind, match=said) as raised:
        list(run_in_workers(importable._fails, [("good", 1), (name, 2)], 1))
    if name == "bug":
        assert "return [][1]" in raised.value.__notes__[0]


def test_what_a_library_prints_does_not_come_between(importable, monkeypatch):
    monkeypatch.setattr(cf.settings, "threads", 1)
    tasks = [(f"task {k}", k) for k in range(3)]
    start = time.perf_counter()
    done = list(run_in_workers(importable._fails, tasks, 1))
    assert sorted((one.place, one.result) for one in done) == [(k, (k, 1)) for k in range(3)]
    # Each is assigned its share of the time.
    assert 0 <= sum(one.seconds for one in done) <= time.perf_counter() - start


def _notes(name, folder):
    (Path(folder) / name).touch()


def test_results_wait_until_the_caller_takes_them(importable, tmp_path):
    done = run_in_workers(importable._notes, [(f"task {k}", str(tmp_path)) for k in range(12)], 1)
    next(done)
    time.sleep(0.3)
    # One was taken, one is ready, and one is being processed by the worker or its thread here.
    assert len(list(tmp_path.iterdir())) <= 4
    assert len(list(done)) == 11
    assert len(list(tmp_path.iterdir())) == 12


def _limits(name, thing):
    import numba
    import polars
    from threadpoolctl import threadpool_info

    return [cf.settings.workers, numba.config.NUMBA_NUM_THREADS, polars.thread_pool_size()] + [
        one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
    ]


@pytest.mark.slow
def test_workers_share_the_threads(importable, monkeypatch):
    monkeypatch.setattr(cf.settings, "threads", 5)
    done = list(run_in_workers(importable._limits, [("a", 0), ("b", 0)], 2))
    assert {number for one in done for number in one.result} == {2}


def test_leaving_ends_the_workers(split):
    made = timed_each(split, ["bprmf(epochs=1000000)", "popularity"], jobs=2)
    assert next(made).result.name == "popularity"
    made.close()
    assert _children(os.getpid()) == []


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    if not listed.exists():
        pytest.skip("this system does not list the children of a process")
    return [int(one) for one in listed.read_text().split() if b"rankings.fitting" in _command(int(one))]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("deadly", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
def test_workers_do_not_outlive_a_parent_that_is_stopped(deadly):
    code = """
import signal
import cranfield as cf
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it aside
ratings = cf.simulate.world(80, 60, 1_500).ratings
print("go", flush=True)
cf.recommend(ratings, ["ease", "lda(iterations=1000000)", "lda(iterations=1000000, topics=20)"], jobs=2)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    try:
        parent.stdout.readline()
        for _ in range(100):
            if len(workers := _children(parent.pid)) == 2:
                break
            time.sleep(0.1)
        assert len(workers) == 2
        if deadly == signal.SIGINT:
            time.sleep(1)
            os.killpg(parent.pid, deadly)  # as a terminal does
        else:
            os.kill(parent.pid, deadly)
        said = parent.communicate(timeout=30)[1]
    finally:
        # Stop everything, whatever failed above; workers end with their parent.
        parent.kill()
        parent.wait()
    assert said.count("KeyboardInterrupt") == (deadly == signal.SIGINT)
    for _ in range(100):
        if not any(_command(one) for one in workers):
            break
        time.sleep(0.1)
    assert not any(_command(one) for one in workers)


def test_jobs_follow_from_threads_memory_and_size(monkeypatch):
    module = sys.modules["cranfield.rankings.fitting"]
    monkeypatch.setattr(cf.settings, "threads", 8)
    monkeypatch.setattr(module, "available_memory", lambda: float("inf"))
    assert jobs_for(items=3_706, ratings=800_000, systems=21) == 8
    assert jobs_for(items=3_706, ratings=800_000, systems=3) == 3
    assert jobs_for(items=3_706, ratings=10_000, systems=21) == 1
    monkeypatch.setattr(module, "available_memory", lambda: 2.0 * 2**30)
    assert jobs_for(items=3_706, ratings=800_000, systems=21) == 3
    assert jobs_for(items=66_055, ratings=1_500_000, systems=21) == 1
    monkeypatch.setattr(cf.settings, "threads", 2)
    assert jobs_for(items=3_706, ratings=800_000, systems=21) == 2
    monkeypatch.setattr(cf.settings, "threads", 1)
    assert jobs_for(items=3_706, ratings=800_000, systems=21) == 1


def test_wrong_numbers_of_jobs_are_refused(split):
    with pytest.raises(SettingError, match="jobs=0"):
        cf.recommend(split, "popularity", jobs=0)


def _arrays(run):
    return {name: value.tobytes() for name, value in vars(run).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_fitting_then_ranking_is_recommending(split, jobs):
    options = {"min_ratings": 8, "sample": 0.5, "length": 7, "fill": "average", "candidates": "test", "seed": 3}
    serving = Serving(options["min_ratings"], options["sample"])
    ranking = Ranking(length=7, fill="average", candidates="test")
    whole = cf.recommend(split, [*SYSTEMS, "rm1"], jobs=1, **options)
    done = sorted(fit_each(split.train, [*SYSTEMS, "rm1"], seed=3, jobs=jobs), key=lambda one: one.place)
    for one, system, run in zip(done, [*SYSTEMS, "rm1"], whole, strict=True):
        again = rank(one.result, split, serving=serving, ranking=ranking, seed=3, name=system)
        assert again.name == run.name
        assert _arrays(again) == _arrays(run)
        assert again.history == run.history
        assert one.seconds >= 0
        # A system fitted in another process refers to the ratings of this one.
        assert one.result.train is split.train
        if system == "knn(k=5)":
            assert np.shares_memory(one.result._ratings.indices, split.train.items)


def test_one_model_is_ranked_in_many_ways_and_keeps_its_name(split):
    model = recommender("knn(k=5)").fit(split.train)
    assert rank(model, split).name == "knn"
    assert len(rank(model, split.train, ranking=Ranking(length=3)).items) <= 3 * 80
    one = rank(model, split, ranking=Ranking(relevant="one", threshold=4), name="mine")
    assert (one.name, one.one_relevant) == ("mine", True)
    with pytest.raises(SettingError, match="is not fitted yet"):
        rank(recommender("knn"), split)


def test_a_registered_system_that_other_processes_do_not_know_is_trained_here(split):
    @register("mine")
    @dataclass
    class Own(Model):
        def _fit(self, train):
            self._scores = train.item_counts.astype(float)

        def _score(self, users):
            return np.tile(self._scores, (len(users), 1))

    systems = ["mine", "popularity", "random"]
    assert movable(systems, {name: recommender(name) for name in systems}) == [False, True, True]
    one, two = (cf.recommend(split, systems, jobs=jobs, fill="mine") for jobs in (1, 2))
    assert [_arrays(run) for run in one] == [_arrays(run) for run in two]


@pytest.mark.slow
def test_results_wait_for_the_caller_and_leaving_early_ends_all(split):
    made = fit_each(split.train, [f"knn(k={k})" for k in range(1, 5)], jobs=2)
    next(made)
    made.close()


@pytest.mark.parametrize(
    ("train", "systems", "options", "said"),
    [
        (None, "knnn", {}, "did you mean 'knn'"),
        (None, "knn", {"seed": -1}, "seed=-1"),
        (None, "knn", {"jobs": 0}, "jobs=0"),
        ([], "knn", {}, "holds no ratings"),
    ],
)
def test_mistakes_are_told_at_once(split, train, systems, options, said):
    ratings = split.train if train is None else split.train.keep(np.zeros(len(split.train), dtype=bool))
    with pytest.raises((SettingError, InputError), match=said):
        fit_each(ratings, systems, **options)
