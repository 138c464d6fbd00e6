"""How long an audit takes: its universes on MovieLens 1M, and its answers on random terms.

    python benchmarks/audit.py --universes ml-1m.parquet    # kNN and WRMF, nine train shares, 2,016 universes
    python benchmarks/audit.py              # 2,016 universes, 6,040 users, 10,000 draws, 200 resamples
    python benchmarks/audit.py --large      # 33,388 users
    python benchmarks/audit.py --scaling    # joint test and influence for more and more users and universes
    python benchmarks/audit.py --quick      # a tenth of the users and draws
    python benchmarks/audit.py --threads 1

The terms are random, and as similar between universes as those of real universes.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cranfield._settings import settings
from cranfield.audits import Audit, Grid, UserContributions, VariedDecision
from cranfield.audits.contributions import leads_of, resampled, user_counts
from cranfield.audits.flips import rule_of
from cranfield.audits.joint import Question, joint_tests
from cranfield.audits.measured_lists import Measurement, SetupLists
from cranfield.audits.pair import influence_rows
from cranfield.audits.setup_runs import SetupRuns
from cranfield.audits.universes import UserPlaces, compute
from cranfield.experiments import Experiment, Source, System
from cranfield.experiments.pipeline import Pipeline
from cranfield.experiments.stages import DATA
from cranfield.judgments.judged import Judged
from cranfield.measures.averaging import Averaging
from cranfield.rankings import Run
from cranfield.store.store import open_store

# The project's targets on two cores, in seconds.
BARS = {
    "training and ranking": 90.0,
    "universes": 8.0,
    "a universe": 0.015,
    "an average": 0.001,
    "joint test": 5.0,
    "influence": 5.0,
}


def grid(shares: int = 9) -> Grid:
    """Return 2,016 cells: nine train shares (or fewer), seven metrics, and so on."""
    return Grid.product(
        [
            VariedDecision("split", "question", tuple(f"random(train=0.{share})" for share in range(1, 1 + shares))),
            VariedDecision("metric", "equivalent", ("P", "R", "AP", "RR", "nDCG", "nDCG(gain=exp)", "RBP")),
            VariedDecision("cutoff", "equivalent", ("5", "10", "20", "50")),
            VariedDecision("average", "equivalent", ("mean", "weighted")),
            VariedDecision("coverage", "equivalent", ("full", "reduced")),
            VariedDecision("threshold", "equivalent", ("3", "4")),
        ]
    )


def random_terms(cells: Grid, users: int, seed: int = 0) -> UserContributions:
    """Draw terms of two systems in which the train share changes the winner."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((4, users), dtype=np.float32)
    loadings = 0.3 * rng.standard_normal((cells.n_cells, 4), dtype=np.float32)
    loadings[:, 0] += 1
    x = loadings @ shared
    x += 0.5 * rng.standard_normal(x.shape, dtype=np.float32)
    x += 0.02 * (cells.cells[:, [0]] - 3).astype(np.float32)
    return UserContributions(np.stack([x, np.zeros_like(x)]))


def processor_time() -> float:
    """Return the processor seconds of this process and of its setup_runs that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def timed(name: str, work: Callable[[], object], *, bar: bool = True) -> None:
    """Print how long some work takes, in clock and processor seconds, next to its target."""
    wall, processor = time.perf_counter(), processor_time()
    work()
    wall, processor = time.perf_counter() - wall, processor_time() - processor
    limit = f"   (bar {BARS[name]:g} s)" if bar and name in BARS else ""
    print(f"  {name:<28}{wall:8.2f} s {processor:8.2f} s of processor time{limit}")


def answers(users: int, draws: int, resamples: int) -> None:
    """Time the parts, then everything."""
    cells = grid()
    terms = random_terms(cells, users)
    averages = terms.values.mean(axis=2, dtype=np.float64)
    print(f"{cells.n_universes:,} universes, {users:,} users, {draws:,} draws, {resamples} resamples")
    x = terms.between(0, 1)
    leads = leads_of(x, terms, averages, np.zeros(cells.n_universes, dtype=bool))
    scopes = [Question(np.arange(cells.n_universes), cells.weights)]

    def influence() -> None:
        influence_rows(cells, leads, resampled(x, terms, user_counts(users, resamples)))

    timed("joint test", lambda: joint_tests(x, terms.users, scopes, draws=draws))
    timed("influence", influence)
    timed("rule", lambda: rule_of(cells, leads.lead[cells.universe]))
    timed("all answers of a pair", lambda: Audit.of(cells, "ab", averages, terms, draws=draws, resamples=resamples))
    print(f"  largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def scaling(draws: int, resamples: int) -> None:
    """Time the joint test and the influence for more and more users and universes; both grow at most linearly."""
    everything = grid()
    print(f"{draws:,} draws, {resamples} resamples")
    for users in (6_040, 16_694, 33_388):
        terms = random_terms(everything, users)
        for shares in (2, 4, 9):
            cells = grid(shares)
            part = UserContributions(terms.values[:, : cells.n_cells])
            x, averages = part.between(0, 1), part.values.mean(axis=2, dtype=np.float64)
            leads = leads_of(x, part, averages, np.zeros(len(x), dtype=bool))
            print(f" {users:,} users, {cells.n_universes:,} universes")
            scope = Question(np.arange(len(x)), cells.weights)
            timed("joint test", partial(joint_tests, x, part.users, [scope], draws=draws), bar=False)
            drawn = partial(resampled, x, part, user_counts(users, resamples))
            timed("influence", lambda: influence_rows(cells, leads, drawn()), bar=False)  # noqa: B023


def menu_experiment(path: str) -> Experiment:
    """Return kNN and WRMF with 2,016 universes: nine train shares, full and condensed lists, and several measures."""
    return Experiment(
        data=(Source("ratings", file=str(Path(path).absolute())),),
        systems=(
            System("kNN", "knn(k=100)"),
            System("MF", "wrmf(factors=50, alpha=1, regularization=0.1, target=rating, binary=false)"),
        ),
        audit={
            "vary": {
                "split": [f"random(train=0.{share})" for share in range(1, 10)],
                "lists": ["full", "condensed"],
                "metrics": ["P", "Recall", "nDCG(gain=binary)", "nDCG(gain=exp)", "AP", "RR", "RBP(p=0.8)"],
                "cutoff": [5, 10, 20, 50],
                "threshold": [4, 5],
                "average": ["mean", "weighted(by=judged)"],
            }
        },
    )


def universes(path: str, folder: str | None) -> None:
    """Time the training and ranking of every set-up, then all universes, a single one, and a single average."""
    experiment = menu_experiment(path)
    with TemporaryDirectory() as temporary, open_store(Path(folder or temporary)) as store:
        line = Pipeline(experiment, store, (DATA,))
        line.go()
        setup_runs = SetupRuns(line)
        print(f"{len(setup_runs.enumeration.universes):,} universes in {len(setup_runs.lines)} set-ups")
        timed("training and ranking", lambda: setup_runs.go(lambda: None))
        timed("universes", lambda: compute(setup_runs.enumeration, setup_runs.lists))
        lists = setup_runs.lists(8, UserPlaces())  # train share 0.5, full lists
        for metric in ("P@10", "nDCG(gain=exp)@10", "AP@50"):
            lists.at(4.0).measured(Measurement(metric, 4.0))  # the first universe fills the caches of a test part
            repeated("a universe", metric, lambda metric=metric: one_universe(lists, metric))
        measured = lists.at(4.0).measured(Measurement("P@10", 4.0))
        for average in ("mean", "weighted(by=judged)", "geometric(form=adjusted, epsilon=0.01)"):
            kind = Averaging(average=average)
            repeated("an average", average, lambda kind=kind: measured.averaged(kind))
        beside_trec_eval(lists.parts[0], len(setup_runs.enumeration.universes))
    print(f"  largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def one_universe(lists: SetupLists, metric: str) -> object:
    """Measure and average from judged lists, from which nothing has been computed yet."""
    return lists.at(4.0).measured(Measurement(metric, 4.0)).averaged(Averaging())


def repeated(name: str, which: str, work: Callable[[], object], times: int = 20) -> None:
    """Print how long short work takes, in clock and processor seconds: the shortest of several times."""
    walls, processors = [], []
    for _ in range(times):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(1000 * (time.perf_counter() - wall))
        processors.append(1000 * (time.process_time() - processor))
    print(
        f"  {name + ', ' + which:<50}{min(walls):8.2f} ms {min(processors):8.2f} ms of processor time"
        f"   (bar {1000 * BARS[name]:g} ms)"
    )


def beside_trec_eval(part: Sequence[Judged], universes: int) -> None:
    """Time pytrec_eval on the same lists for three universes, and scale the time to all of them."""
    try:
        import pytrec_eval
    except ImportError:
        print("  pytrec_eval is not installed")
        return
    judgments = part[0].judgments
    qrels: dict[str, dict[str, int]] = {}
    for user, item, grade in zip(judgments.users[judgments.lists], judgments.items, judgments.grades):
        qrels.setdefault(str(user), {})[str(item)] = int(grade)
    ranked = [_scored(judged.run) for judged in part if judged.run is not None]
    wall, processor = time.perf_counter(), time.process_time()
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"P.10", "ndcg_cut.10", "map_cut.50"}, relevance_level=4)
    for run in ranked:
        evaluator.evaluate(run)
    wall, processor = (time.perf_counter() - wall) / 3, (time.process_time() - processor) / 3
    print(
        f"  pytrec_eval on dictionaries: {1000 * wall:.0f} ms ({1000 * processor:.0f} of processor time) per universe, "
        f"{wall * universes:.0f} s ({processor * universes:.0f}) for all"
    )


def _scored(run: Run) -> dict[str, dict[str, float]]:
    """Return the lists of a run as dictionaries, with scores that keep the ranks of items."""
    bounds = run.indptr.tolist()
    return {
        str(user): {str(item): float(-rank) for rank, item in enumerate(run.items[begin:end].tolist())}
        for user, begin, end in zip(run.users.tolist(), bounds, bounds[1:])
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the users and draws")
    parser.add_argument("--large", action="store_true", help="33,388 users")
    parser.add_argument("--scaling", action="store_true", help="more and more users and universes")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--universes", metavar="FILE", help="time the universes of these ratings instead")
    parser.add_argument("--folder", help="keep models and lists of --universes here, for another time")
    options = parser.parse_args()
    settings.threads = options.threads
    if options.universes is not None:
        universes(options.universes, options.folder)
        return
    if options.scaling:
        scaling(1_000 if options.quick else 10_000, 50 if options.quick else 200)
        return
    users = 33_388 if options.large else 6_040
    if options.quick:
        answers(users // 10, 1_000, 50)
    else:
        answers(users, 10_000, 200)


if __name__ == "__main__":
    main()
