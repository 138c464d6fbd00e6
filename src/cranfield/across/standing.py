"""`OverDatasets`: how systems stand over several datasets by one metric, and the facts about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from cranfield._numbers import DASH, number_text
from cranfield.across.effects import DatasetEffects, Floats
from cranfield.across.families import members
from cranfield.across.pooling import FEWEST_FOR_LIKE, DatasetAverages, pooled, shrunken, without_each
from cranfield.across.ranks import DatasetRanks, dataset_ranks, ranks_of, wilcoxon_p
from cranfield.across.rules import rules_of
from cranfield.comparisons import holm, users_needed
from cranfield.facts import Fact, gain_percent
from cranfield.facts import across as across_facts

_TOO_ROUNDED = 0.02
_FEW = 5  # from this number of datasets on nothing is added about there being few
# The fields of `DatasetAverages` that `frame` shows, by column.
_COLUMNS = {
    "datasets": "k", "effect": "mean", "users_error": "users_error", "error": "error", "these": "these_mean",
    "these_lower": "these_lower", "these_upper": "these_upper", "lower": "lower", "upper": "upper", "p": "p",
    "tau": "tau", "tau_lower": "tau_lower", "tau_upper": "tau_upper", "q": "q", "i2": "i2", "new_lower": "new_lower",
    "new_upper": "new_upper", "chance": "chance",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class OverDatasets:
    """How systems stand over several datasets by one metric."""

    by_dataset: DatasetEffects
    families: Mapping[str, str]
    known: Mapping[str, str]
    baseline: str | None
    weights: str
    margin: float | None
    alpha: float
    several: bool  # whether there are other metrics

    @cached_property
    def table(self) -> DatasetEffects:
        """The effects, with the datasets of a family as one."""
        return self.by_dataset.by_family(self.families)

    def pool(self, table: DatasetEffects | None = None, weights: str | None = None) -> DatasetAverages:
        """Return the averages over datasets."""
        own = self.table if table is None else table
        options = {"alpha": self.alpha, "weights": weights or self.weights, "margin": self.margin}
        return pooled(own.effects, own.errors, **options)  # type: ignore[arg-type]

    @cached_property
    def pools(self) -> DatasetAverages:
        """The averages over datasets."""
        return self.pool()

    @cached_property
    def corrected(self) -> Floats:
        """The p-values of all pairs, corrected by Holm's procedure."""
        return holm(self.pools.p)

    @property
    def significant(self) -> Any:
        """Which pairs are settled for datasets like these."""
        return self.corrected < self.alpha

    @cached_property
    def without(self) -> list[DatasetAverages]:
        """The averages without each of the datasets."""
        return without_each(self.table.effects, self.table.errors, alpha=self.alpha, weights=self.weights)

    @cached_property
    def ranks(self) -> DatasetRanks:
        """The ranks over the datasets that all systems have."""
        return dataset_ranks(self.table, self.alpha)

    @cached_property
    def rules(self) -> list[across_facts.LeaderByRule]:
        """Who leads by each rule over the datasets that all systems have."""
        complete = ~np.isnan(self.table.means).any(axis=0)
        values = self.table.means[:, complete]
        return rules_of(self.table.systems, values, lower_is_better=self.table.lower_is_better)

    @cached_property
    def order(self) -> list[int]:
        """The systems from best to worst: by the geometric mean over datasets that all have, otherwise by mean rank."""
        values = self.table.means
        complete = values[:, ~np.isnan(values).any(axis=0)]
        if complete.shape[1] and (complete > 0).all():
            scores = np.log(complete).mean(axis=1) * (-1 if self.table.lower_is_better else 1)
            return [int(place) for place in np.argsort(-scores, kind="stable")]
        ranks, known = ranks_of(self._filled, lower_is_better=self.table.lower_is_better), ~np.isnan(values)
        mean_ranks = np.where(known, ranks, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        return [int(place) for place in np.argsort(np.where(known.any(axis=1), mean_ranks, np.inf), kind="stable")]

    @property
    def _filled(self) -> Floats:
        """The averages, with a missing one as the worst."""
        return np.where(np.isnan(self.table.means), np.inf if self.table.lower_is_better else -np.inf, self.table.means)

    @property
    def reference(self) -> str:
        """The system that the others are shown against: the baseline, or the best one; of two the other one."""
        place = self.order[1 if len(self.order) == 2 else 0]
        return self.baseline or self.table.systems[place]

    def pair(self, first: str, second: str) -> tuple[int, int]:
        """Return the place of a pair, and 1 if it is in this order, otherwise −1."""
        a, b = (self.table.systems.index(name) for name in (first, second))
        for sign, (left, right) in ((1, (a, b)), (-1, (b, a))):
            places = np.flatnonzero((self.table.first == left) & (self.table.second == right))
            if len(places):
                return int(places[0]), sign
        raise KeyError((first, second))

    def mark(self, system: str) -> str:
        """Return † for a system that is better than the reference for datasets like these, ‡ for a worse one."""
        if system == self.reference:
            return ""
        place, sign = self.pair(system, self.reference)
        return "" if not self.significant[place] else "†" if sign * self.pools.mean[place] > 0 else "‡"

    @property
    def key_to_marks(self) -> str:
        """What the marks mean, if there are any."""
        if not any(map(self.mark, self.table.systems)):
            return ""
        return f"; † significantly better, ‡ worse than {self.reference} for datasets like these"

    @cached_property
    def main(self) -> tuple[str, str]:
        """The pair that the answer is about, the leader first: the best two, or the best and the baseline."""
        names = [self.table.systems[place] for place in self.order]
        if self.baseline is None or self.baseline == names[0]:
            return names[0], names[1]
        return names[0], self.baseline

    def lead(self, first: str, second: str, pools: DatasetAverages | None = None) -> across_facts.LeadOverDatasets:
        """Return by how much the first of two systems leads; the one that leads on these datasets comes first.

        With other averages, the systems stay in their order.
        """
        place, sign = self.pair(first, second)
        own = self.pools if pools is None else pools
        if sign * own.these_mean[place] < 0 and pools is None:
            first, second, sign = second, first, -sign

        def ends(name: str) -> tuple[float, float] | None:
            lower, upper = sorted(sign * float(getattr(own, f"{name}{end}")[place]) for end in ("lower", "upper"))
            return None if np.isnan(lower) else (lower, upper)

        of_pair = sign * self.table.effects[place]
        return across_facts.LeadOverDatasets(
            self.table.metric,
            (first, second),
            self.table.scales[place],
            int(own.k[place]),
            sign * float(own.mean[place]) if pools is not None else sign * float(own.these_mean[place]),
            ends("these_"),
            ends(""),
            None if np.isnan(self.corrected[place]) else float(self.corrected[place]),
            len(self.pools.k),
            bool(self.significant[place]),
            int((of_pair > 0).sum()),
            int((of_pair < 0).sum()),
            self.several,
        )

    @cached_property
    def answer(self) -> across_facts.LeadOverDatasets:
        """By how much the best system leads."""
        return self.lead(*self.main)

    def facts(self) -> list[Fact]:
        """Return the answer, what would settle it, and what to keep in mind."""
        lead, (place, sign) = self.answer, self.pair(*self.answer.systems)
        if not lead.k:
            return [lead, *self.doubts]
        said: list[Fact] = [lead]
        if not lead.significant:
            with np.errstate(divide="ignore", invalid="ignore"):
                size = self.pools.mean[place] / self.pools.spread[place]
            needed = float(users_needed(size if np.isfinite(size) else 1e6 * (size != 0), self.alpha)[0])
            said.append(across_facts.WouldSettle(lead.systems, lead.k, max(needed, lead.k + 1.0)))
        if len(self.pools.k) > 1 and lead.k >= FEWEST_FOR_LIKE:
            said.append(self._settled)
        said += self._on_new(lead, place, sign)
        if lead.k >= FEWEST_FOR_LIKE:
            said.append(self._influence(lead, place, sign))
        if self.rules and len(self.table.systems) > 2:
            said.append(across_facts.ByRules(tuple(self.rules)))
        return [*said, *self.doubts]

    @property
    def _settled(self) -> across_facts.SettledPairs:
        pairs = []
        for place in np.flatnonzero(self.significant):
            a, b = (self.table.systems[side[place]] for side in (self.table.first, self.table.second))
            pairs.append((*((a, b) if self.pools.mean[place] > 0 else (b, a)), float(self.corrected[place])))
        return across_facts.SettledPairs(tuple(sorted(pairs, key=lambda pair: pair[2])), len(self.pools.k))

    def _on_new(self, lead: across_facts.LeadOverDatasets, place: int, sign: int) -> list[Fact]:
        own = self.pools
        lower, upper = sorted(sign * float(end[place]) for end in (own.new_lower, own.new_upper))
        chance, tau = (None if np.isnan(part[place]) else float(part[place]) for part in (own.chance, own.tau))
        if chance is None and np.isnan(lower):
            return []
        split = None
        if self.margin is not None and chance is not None:
            parts = (own.new_better, own.new_equal, own.new_worse)[::sign]
            split = (float(parts[0][place]), float(parts[1][place]), float(parts[2][place]))
        ends = None if np.isnan(lower) else (lower, upper)
        return [across_facts.OnANewDataset(lead, chance, ends, tau, split, self.margin)]

    def _influence(self, lead: across_facts.LeadOverDatasets, place: int, sign: int) -> across_facts.WithoutADataset:
        own, names = self.table.effects[place], self.table.datasets
        known = np.flatnonzero(~np.isnan(own))
        means = np.array([sign * part.mean[place] for part in self.without])
        most = known[np.argmax(np.abs(means - sign * self.pools.mean[place])[known])]
        turned = [names[d] for d in known if means[d] * sign * self.pools.mean[place] < 0]
        # Without one of three datasets there is no p-value.
        p = np.array([holm(part.p)[place] for part in self.without])
        changed = [names[d] for d in known if not np.isnan(p[d]) and (p[d] < self.alpha) != lead.significant]
        return across_facts.WithoutADataset(lead, names[most], float(means[most]), tuple(turned), tuple(changed))

    @property
    def doubts(self) -> list[Fact]:
        """What to keep in mind: sources, missing results, few datasets, users."""
        table, k = self.by_dataset, len(self.table.datasets)
        doubts = self._sources
        absent = np.isnan(table.means)
        missing = {
            system: tuple(name for name, none in zip(table.datasets, row) if none)
            for system, row in zip(table.systems, absent) if row.any()
        }  # fmt: skip
        left_out = set(table.without_error)
        missing = {system: tuple(name for name in names if name not in left_out) for system, names in missing.items()}
        missing = {system: names for system, names in missing.items() if names}
        if missing:
            worst = ranks_of(self._filled, lower_is_better=table.lower_is_better).mean(axis=1)
            first = tuple(system for system, rank in zip(table.systems, worst) if rank <= worst.min() + 1e-9)
            complete = int((~np.isnan(self.table.means).any(axis=0)).sum())
            doubts.append(across_facts.MissingResults(missing, complete, k, first))
        if table.thin or table.without_error:
            doubts.append(across_facts.TooFewUsers(table.thin, table.without_error))
        no_ratio = [pair for pair, scale in enumerate(self.table.scales) if scale == "difference"]
        if no_ratio and "ratio" in self.table.scales:
            pairs = tuple((table.systems[table.first[p]], table.systems[table.second[p]]) for p in no_ratio)
            doubts.append(across_facts.AsDifferences(pairs, table.metric))
        doubts += self._weighting
        if FEWEST_FOR_LIKE <= k < _FEW:
            doubts.append(across_facts.FewDatasets(k))
        if not table.users.any():
            doubts.append(across_facts.WithoutUsers(table.bounded))
        return doubts

    @property
    def _sources(self) -> list[Fact]:
        """Datasets of one source: those counted as one, and those that should be."""
        doubts: list[Fact] = []
        if self.families and (given := members(self.families)):
            doubts.append(across_facts.OneSource(given, counted_as_one=True))
        names = [name for name in self.by_dataset.datasets if name not in self.families]
        if several := members({name: self.known[name] for name in names if name in self.known}):
            alike = {name: family for family, group in several.items() for name in group}
            as_one = replace(self, families={**self.families, **alike})
            lead = as_one.lead(*self.main) if len(as_one.table.datasets) >= FEWEST_FOR_LIKE else None
            doubts.append(across_facts.OneSource(several, counted_as_one=False, lead=lead))
        return doubts

    @property
    def _weighting(self) -> list[Fact]:
        """The answer with the other weights, if it differs in sign or significance."""
        place, sign = self.pair(*self.answer.systems)
        if np.isnan(self.pools.tau[place]) or np.isnan(self.pools.p[place]):
            return []
        weights = "equal" if self.weights == "precision" else "precision"
        other = self.pool(weights=weights)
        same_sign = sign * other.mean[place] * self.answer.gain >= 0
        if same_sign and (holm(other.p)[place] < self.alpha) == self.answer.significant:
            return []
        return [across_facts.OtherWeighting(self.lead(*self.answer.systems, pools=other), weights)]

    def frame(self) -> pl.DataFrame:
        """Return one row per pair."""
        table, pools = self.table, self.pools
        a, b = ([table.systems[place] for place in side] for side in (table.first, table.second))
        above, below = (table.effects > 0).sum(axis=1), (table.effects < 0).sum(axis=1)
        p_wilcoxon, wilcoxon_corrected = wilcoxon_p(table)
        columns: dict[str, Any] = {name: getattr(pools, field) for name, field in _COLUMNS.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = pools.mean / pools.spread
            needed = users_needed(np.where(np.isfinite(sizes), sizes, np.nan), self.alpha)
        columns |= {
            "p_corrected": self.corrected,
            "significant": self.significant,
            "better": [
                (x if up > 0 else y) if sure else None for x, y, up, sure in zip(a, b, pools.mean, self.significant)
            ],
            "wins": above,
            "ties": pools.k - above - below,
            "losses": below,
            "datasets_needed": needed,
            "p_wilcoxon": p_wilcoxon,
            "p_wilcoxon_corrected": wilcoxon_corrected,
        }
        if self.margin is not None:
            columns |= {name.name: getattr(pools, name.name) for name in fields(pools)[-3:]}
        names = {"metric": [table.metric] * len(a), "system_a": a, "system_b": b, "scale": list(table.scales)}
        return pl.DataFrame({**names, **columns}, schema_overrides={"better": pl.String})

    def effects(self) -> pl.DataFrame:
        """Return one row per pair and dataset."""
        table, k = self.table, len(self.table.datasets)
        shape, reach = table.effects.shape, interval_reach(table.errors, self.alpha)
        of_pairs, of_datasets = np.repeat(np.arange(shape[0]), k), np.tile(np.arange(k), shape[0])
        a, b = (side[of_pairs] for side in (table.first, table.second))
        return pl.DataFrame(
            {
                "metric": [table.metric] * len(a),
                "system_a": [table.systems[place] for place in a],
                "system_b": [table.systems[place] for place in b],
                "dataset": [table.datasets[place] for place in of_datasets],
                "users": table.users[of_datasets],
                "mean_a": table.means[a, of_datasets],
                "mean_b": table.means[b, of_datasets],
                "effect": table.effects.ravel(),
                "error": table.errors.ravel(),
                "lower": (table.effects - reach).ravel(),
                "upper": (table.effects + reach).ravel(),
                "shrunken": shrunken(table.effects, table.errors, self.pools).ravel(),
                "without": np.stack([part.mean for part in self.without], axis=1).ravel(),
            }
        )


def interval_reach(errors: Floats, alpha: float) -> Floats:
    """Return the half width of intervals over users: z times the error."""
    from scipy.special import ndtri

    return np.asarray(-ndtri(alpha / 2) * errors)


def effect_text(effect: float, scale: str) -> str:
    """Return an effect with its sign, in percent for a ratio."""
    if np.isnan(effect):
        return DASH
    return (
        gain_percent(across_facts.share_of_effect(effect), "+") if scale == "ratio" else number_text(effect, sign="+")
    )
