"""Whether levels hold: how often p-values, intervals and advice are wrong in simulated worlds whose truth is known.

    python benchmarks/levels.py [--only repetitions --only groups] [--runs 1000] [--seed 0]

One table with a row per simulation: what should happen how often (at most α of false findings, at least 1 − α of
intervals that hold, about 80 % of differences found), and how often it did. A row is marked if it is further than three
standard errors on the wrong side. A function with `@simulation` above it is one named simulation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield import Ratings, Scores, check_split, compare, compare_segments, splits
from cranfield._settings import settings
from cranfield.assessments.advice import Evidence, advise
from cranfield.audits import Grid, VariedDecision
from cranfield.audits.joint import STATISTICS, Question, SeedSpread, joint_tests
from cranfield.comparisons import Sample, as_scores
from cranfield.comparisons.errors import crossed_test
from cranfield.simulate import world

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """How often something happened in so many runs, and how often it should: ``at most``, ``at least`` or ``about``."""

    what: str
    setting: str
    side: str
    nominal: float
    observed: float
    runs: int

    @property
    def holds(self) -> bool:
        """Whether it is within three standard errors of what it should be, or on the right side."""
        away = (self.observed - self.nominal) / np.sqrt(self.nominal * (1 - self.nominal) / self.runs)
        return {"at most": away <= 3, "at least": away >= -3, "about": abs(away) <= 3, "for information": True}[
            self.side
        ]


Simulation = Callable[[np.random.Generator, int], Iterator[Row]]
SIMULATIONS: dict[str, Simulation] = {}
ALPHA = 0.05


def simulation(function: Simulation) -> Simulation:
    """Register a simulation under the name of its function."""
    SIMULATIONS[function.__name__] = function
    return function


def scores_of(values: Floats) -> Scores:
    """Return values of systems × users as scores of a metric that has a name."""
    named = as_scores({f"s{system}": row for system, row in enumerate(values)})
    return replace(named, metrics=("nDCG@10",))


def crossed(rng: np.random.Generator, shape: tuple[int, int, int], ratio: float, residual: float) -> Floats:
    """Return systems × users × repetitions of equal systems.

    The variance of a system's mean is 1 from users, ``residual`` from what is left, and ``ratio`` times both together
    from repetitions.
    """
    systems, n, m = shape
    user, repetition = rng.normal(size=(systems, n, 1)) * np.sqrt(n), rng.normal(size=(systems, 1, m)) * np.sqrt(m)
    rest = rng.normal(size=shape) * np.sqrt(n * m * residual) if residual else 0.0
    return np.asarray(user + repetition * np.sqrt(ratio * (1 + residual)) + rest)


def significant(cells: Floats) -> NDArray[np.bool_]:
    """Return which pairs of systems differ significantly, from systems × users × repetitions."""
    parts = [scores_of(cells[:, :, r]) for r in range(cells.shape[2])]
    return compare(parts).rows["significant"].to_numpy()


@simulation
def repetitions(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Users crossed with repetitions: any false finding among the pairs of several equal systems."""
    for systems, m, ratio, residual in [
        *((systems, m, ratio, 0.0) for systems in (5, 10) for m in (3, 5) for ratio in (3, 10, 30)),
        *((5, m, ratio, 0.0) for m in (2, 10) for ratio in (3, 100)),
        *((2, m, ratio, 1.0) for m in (3, 10) for ratio in (0, 10)),
    ]:
        false = sum(significant(crossed(rng, (systems, 200, m), ratio, residual)).any() for _ in range(runs))
        setting = f"{systems} systems, {m} repetitions, ratio {ratio}" + ", residuals" * (residual > 0)
        yield Row("repetitions: any false finding", setting, "at most", ALPHA, false / runs, runs)


def of_pairs(rng: np.random.Generator, pairs: int, m: int, ratio: float, residual: float, ahead: float = 0.0) -> Floats:
    """Return p-values of pairs of two systems whose means differ by ``ahead`` standard errors over users."""
    cells = crossed(rng, (pairs, 100, m), ratio, residual) + ahead * np.sqrt(1 + residual)
    both = np.concatenate([cells, np.zeros_like(cells)])
    names, first = tuple(map(str, range(2 * pairs))), np.arange(pairs)
    return crossed_test([Sample("x", names, both.mean(axis=2), first, first + pairs, cells=both)])[0].p


@simulation
def pairs(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """One pair over users crossed with repetitions: small p-values, and the power that is lost where they are alike."""
    for m, ratio, residual in ((3, 10, 0.0), (3, 100, 0.0), (2, 10, 1.0), (2, 100, 0.0), (5, 10, 1.0), (10, 3, 0.0)):
        p = np.concatenate([of_pairs(rng, 500, m, ratio, residual) for _ in range(max(1, runs // 100))])
        setting = f"{m} repetitions, ratio {ratio}" + ", residuals" * (residual > 0)
        for level in (0.05, 0.005):
            yield Row(f"one pair: p < {level}", setting, "at most", level, float((p < level).mean()), len(p))
    for m, residual in ((3, 0.1), (3, 1.0), (5, 0.1), (5, 1.0), (10, 1.0)):
        p = of_pairs(rng, 2 * runs, m, 0.0, residual, ahead=2.83)
        setting = f"{m} repetitions that are alike, residuals {residual}"
        yield Row("one pair: power .80 over users", setting, "for information", 0.8, float((p < ALPHA).mean()), len(p))


@simulation
def retrained(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """`p_retrained` of an audit with five seeds and three cut-offs, by each of its statistics."""
    seeds, users = 5, 200
    grid = Grid.product(
        [
            VariedDecision("cutoff", "equivalent", ("5", "10", "20")),
            VariedDecision("seed", "chance", tuple(map(str, range(seeds)))),
        ]
    )
    question, counts = Question(np.arange(grid.n_cells), grid.weights), np.full(grid.n_cells, users)
    for ratio in (0, 1, 5, 20):
        p = []
        for run in range(runs):
            training = np.sqrt(ratio / users) * rng.normal(size=(1, seeds, 1))
            x = training + rng.normal(size=users) + 0.3 * rng.normal(size=(3, seeds, users))
            x = x.reshape(grid.n_cells, users).astype(np.float32)
            spread = SeedSpread.of(grid, x, counts)
            test = joint_tests(x, counts, [question], spread=spread, draws=499, seed=run)[0]
            assert test.retrained is not None
            p.append([test.retrained[name] for name in STATISTICS])
        for name, share in zip(STATISTICS, (np.array(p) <= ALPHA).mean(axis=0)):
            setting = f"{name}, seed variance {ratio} times the users'"
            yield Row("p_retrained ≤ .05", setting, "at most", ALPHA, float(share), runs)


def with_zeros(rng: np.random.Generator, systems: int, users: int) -> Floats:
    """Return values of equal systems, of which 40 % are 0."""
    return np.where(rng.random((systems, users)) < 0.4, 0.0, rng.beta(2, 3, (systems, users)))


@simulation
def geometric(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Geometric means of four systems with 40 % zeros: any false finding, and three true differences."""
    for users in (60, 300):
        for correction in ("max_t", "holm"):
            false = all_three = agree = 0
            for _ in range(runs):
                values = with_zeros(rng, 4, users)
                false += (
                    compare(scores_of(values), average="geometric", correction=correction).rows["significant"].any()
                )
                values[0] = np.where(rng.random(users) < 0.1, 0.0, values[0] + (values[0] == 0) * rng.beta(2, 3, users))
                rows = compare(scores_of(values), average="geometric", correction=correction).rows
                all_three += rows.filter(system_a="s0")["significant"].all()
                agree += (rows["significant"] == ((rows["lower"] > 0) | (rows["upper"] < 0))).all()
            setting = f"4 systems, 40 % zeros, {users} users, {correction}"
            yield Row("geometric: any false finding", setting, "at most", ALPHA, false / runs, runs)
            yield Row("geometric: three true differences", setting, "for information", 0.8, all_three / runs, runs)
            if correction == "max_t":
                yield Row("geometric: p and interval agree", setting, "at least", 0.999, agree / runs, runs)


def evidence(rng: np.random.Generator, noise: Floats, systems: int, samples: int = 20) -> Evidence:
    """Return the evidence on metrics that order systems with so much noise."""
    truth = rng.normal(size=systems)
    first, second = np.triu_indices(systems, 1)

    def signs(values: Floats) -> NDArray[np.int8]:
        return np.sign(values[..., first] - values[..., second]).astype(np.int8)

    whole = truth + noise[:, None] * rng.normal(size=(1, len(noise), systems))
    smaller = whole + noise[:, None] * rng.normal(size=(samples, len(noise), systems))
    apart = (np.abs(whole[0][:, first] - whole[0][:, second]) > 2 * noise[:, None]).astype(np.float64)
    candidates = tuple(("mean", f"m{place}") for place in range(len(noise)))
    return Evidence(
        candidates, systems, apart, signs(whole), {"users": signs(smaller)}, {"users": np.zeros(samples, int)}
    )


@simulation
def advice(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """The advice on metrics: a clear choice among equal ones, and among metrics one of which is better."""
    runs = max(100, runs // 3)
    for systems in (8, 14, 20):
        clear = sum(not advise(evidence(rng, np.full(6, 0.3), systems), seed=run).fact.unclear for run in range(runs))
        yield Row("advice: a clear choice among equals", f"{systems} systems", "at most", 0.01, clear / runs, runs)
    noise = np.array([0.12, *np.full(5, 0.45)])
    sure, clear = 0, 0
    for run in range(runs):
        fact = advise(evidence(rng, noise, 20), seed=run).fact
        if fact.candidates[0].first >= 0.99:
            sure, clear = sure + 1, clear + (not fact.unclear)
    setting = "first in 99 % of draws, 20 systems"
    yield Row("advice: a clear choice of the better", setting, "at least", 0.8, clear / max(sure, 1), max(sure, 1))


@simulation
def groups(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Groups of a segment: any pair significant in any group, with no difference anywhere."""
    runs = max(200, runs // 2)
    for number in (3, 10, 25):
        false = 0
        group_of = {user: f"g{user % number}" for user in range(210 * number)}
        for _ in range(runs):
            segments = scores_of(rng.normal(size=(2, len(group_of)))).segments(group_of)
            false += compare_segments(segments, significance="student").frame(detail=True)["significant"].any()
        yield Row("groups: any false finding", f"2 systems, {number} groups", "at most", ALPHA, false / runs, runs)


@simulation
def smallest(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """The smallest difference that a pilot of the same size says can be shown with power .80."""
    for systems, correction in ((2, None), (5, None), (5, "holm"), (5, "none")):
        shown = 0
        for _ in range(runs):
            pilot = compare(scores_of(rng.normal(size=(systems, 200))), correction=correction, significance="student")
            values = rng.normal(size=(systems, 200))
            values[0] += pilot.power(0.1).row(0, named=True)["smallest_difference"]
            frame = compare(scores_of(values), correction=correction, significance="student").rows
            shown += frame["significant"][0]
        setting = f"one pair of {systems} systems, {correction or 'max_t'}"
        # Holm's steps find a little more than the level of a single pair, if other pairs differ.
        yield Row("power at the smallest difference", setting, "about", 0.8, shown / runs, runs)


@simulation
def clean_splits(_: np.random.Generator, runs: int) -> Iterator[Row]:
    """Splits of data without drift: a shift that needs attention, and a p-value below .05 of any shift."""
    runs = max(60, runs // 10)
    kinds: dict[str, Callable[[Ratings, int], splits.Split]] = {
        "random": lambda data, seed: splits.random(data, seed=seed),
        "per_user": lambda data, seed: splits.per_user(data, seed=seed),
        "k_fold": lambda data, seed: splits.k_fold(data, seed=seed)[0],
        "temporal": lambda data, _: splits.temporal(data),
        "leave_out": lambda data, seed: splits.leave_out(data, seed=seed),
        "cold_users": lambda data, seed: splits.cold_users(data, seed=seed),
        "strong_generalisation": lambda data, seed: splits.strong_generalisation(data, seed=seed),
    }
    for size, (users, items, ratings) in {"small": (100, 60, 1_500), "large": (1_000, 300, 30_000)}.items():
        for kind, split in kinds.items():
            flagged, below = 0, np.zeros(3)
            for run in range(runs):
                data = world(users, items, ratings, seed=run).ratings
                data = replace(data, times=np.random.default_rng(run).permutation(data.times))
                checked = check_split(split(data, run))
                shifts = [finding for finding in checked.findings if finding.about.startswith("shift")]
                flagged += any(finding.level != "fine" for finding in shifts)
                below += [shift["p"] < ALPHA for shift in checked.counts["shift"].values()]
            yield Row("clean splits: attention to a shift", f"{kind}, {size}", "at most", ALPHA, flagged / runs, runs)
            for (name, shift), share in zip(checked.counts["shift"].items(), below / runs):
                # Users without a test rating are light: a shift, though no fault of the split.
                is_null = name != "activity" or not shift["same_users"] or not share
                setting = f"{kind}, {size}, {name}" + ("" if is_null else " (light users have no test rating)")
                side = "at most" if is_null else "for information"
                yield Row("clean splits: p < .05", setting, side, ALPHA, float(share), runs)


@simulation
def gate_users(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """The users that a gate needs, from a pilot of 200: whether the range includes the number that is needed."""
    from cranfield.comparisons.effects import users_needed

    true = 0.05
    needed, inside = float(users_needed(true, 2 * ALPHA)[0]), 0
    numbers = []
    for _ in range(runs):
        values = rng.normal(size=(2, 200))
        values[0] += true * np.sqrt(2)
        row = compare(scores_of(values), significance="student").better("s0", than="s1").rows.row(0, named=True)
        numbers.append(row["users_needed"])
        inside += (
            row.get("users_needed_lower", row["users_needed"])
            <= needed
            <= row.get("users_needed_upper", row["users_needed"])
        )
    low, high = np.sort(numbers)[[runs // 10, runs - 1 - runs // 10]]
    setting = f"pilot of 200, {needed:,.0f} needed; the number is {low:,.0f} to {high:,.0f} in 80 % of pilots"
    yield Row("gate: the range includes the users needed", setting, "at least", 0.8, inside / runs, runs)


@simulation
def relative(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Simultaneous intervals of relative differences, where some users are undefined for some systems."""
    means = np.array([0.30, 0.30, 0.32, 0.33, 0.36])
    true = np.array([means[a] / means[b] - 1 for a, b in combinations(range(5), 2)])
    for users, undefined, heavy in ((60, 0.0, 1.0), (150, 0.1, 1.0), (150, 0.2, 1.0), (400, 0.1, 0.5), (400, 0.0, 0.5)):
        held = 0
        for _ in range(runs):
            user = rng.gamma(2 * heavy, 1 / (2 * heavy), users)
            values = means[:, None] * user * rng.gamma(4 * heavy, 1 / (4 * heavy), (5, users))
            values[rng.random(values.shape) < undefined] = np.nan
            rows = compare(scores_of(values), undefined="leave out", significance="student").rows
            lower, upper = rows["relative_lower"].to_numpy(), rows["relative_upper"].to_numpy()
            held += ((lower <= true) & (true <= upper) | np.isnan(lower)).all()
        setting = f"{users} users, {undefined:.0%} undefined by system, gamma({4 * heavy:g})"
        yield Row("relative intervals: all hold", setting, "at least", 0.95, held / runs, runs)


def alike_on_average(rng: np.random.Generator, users: int, skewed: bool) -> Floats:
    """Return values from 0 to 1 of five systems with a mean of .2, of different spread, and skew if they are skewed."""
    size = np.array([0.5, 1, 2, 8, 32])[:, None]
    if skewed:
        return rng.beta(0.2 * size, 0.8 * size, (5, users))
    return np.asarray(0.2 + (rng.beta(2, 2, (5, users)) - 0.5) * 0.4 / np.sqrt(size / 0.5))


@simulation
def skewed(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    """Five systems with equal means, but different spread and skew: any false finding, by test; and a true one."""
    tests, runs = ("permutation", "bootstrap", "tukey"), max(200, runs // 2)
    for users in (10, 30, 100, 300):
        for kind, skew in (("spread and skew", True), ("spread", False)):
            false, shown = dict.fromkeys(tests, 0), dict.fromkeys(tests, 0)
            for _ in range(runs):
                values = alike_on_average(rng, users, skew)
                ahead = values.copy()
                ahead[2] += 3.7 * np.sqrt((values[1].var() + values[2].var()) / users)
                for test in tests:
                    false[test] += compare(scores_of(values), significance=test).rows["significant"].any()
                    rows = compare(scores_of(ahead), significance=test).frame()
                    shown[test] += rows.filter(system_a="s1", system_b="s2")["significant"].item()
            for test in tests:
                setting = f"{test}, {users} users, 5 systems of different {kind}"
                # Signs cannot be exchanged where differences are skewed, nor systems where their spread differs.
                assumed = {"permutation": users >= 100 or not skew, "bootstrap": True, "tukey": False}[test]
                side = "at most" if assumed else "for information"
                yield Row("equal means: any false finding", setting, side, ALPHA, false[test] / runs, runs)
                yield Row("one pair differs: found", setting, "for information", 0.8, shown[test] / runs, runs)


def table(rows: list[Row]) -> str:
    """Return rows as a table in Markdown."""
    lines = ["| what | setting | | nominal | observed | runs | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        mark = "" if row.holds else "**no**"
        lines.append(
            f"| {row.what} | {row.setting} | {row.side} | {row.nominal:g} "
            f"| {row.observed:.4f} | {row.runs:,} | {mark} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=SIMULATIONS, help="a simulation; may be repeated")
    parser.add_argument("--runs", type=int, default=1_000, help="data sets per row; slow simulations take fewer")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    settings.quiet = True
    print(table([]))
    for name in options.only or SIMULATIONS:
        for row in SIMULATIONS[name](np.random.default_rng(options.seed), options.runs):
            print(table([row]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
