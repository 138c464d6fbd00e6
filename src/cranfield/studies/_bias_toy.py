"""Figure 1 of Bellogín et al. (2017): target sets of a toy example, made by this package."""

from __future__ import annotations

import numpy as np
import polars as pl

from cranfield._table import Table
from cranfield.data import Ratings
from cranfield.rankings import Ranking, Targets
from cranfield.splits import predefined
from cranfield.studies._study import Exhibit

_USER, _THRESHOLD = "u", 5
_TRAIN = [("u", "f", 5), ("u", "g", 2), ("v", "a", 5), ("v", "d", 4), ("w", "a", 3), ("w", "e", 5), ("w", "b", 1)]
_TEST = [("u", "d", 5), ("u", "e", 5), ("u", "c", 1), ("v", "b", 5), ("v", "c", 4), ("w", "f", 5)]
_DESIGNS = {
    "AI-AR-AN": {"candidates": "all"},
    "TI-AR-AN": {"candidates": "test"},
    "TI-AR-NN": {"candidates": "test", "nonrelevant": 1},
    "AI-1R-AN": {"candidates": "all", "relevant": "one"},
    "TI-1R-AN": {"candidates": "test", "relevant": "one"},
    "TI-1R-NN": {"candidates": "test", "relevant": "one", "nonrelevant": 1},
}


def toy_example() -> Exhibit:
    """Return Figure 1: the items in the lists of user u in each design."""
    train, test = (Ratings.of(*zip(*rows)) for rows in (_TRAIN, _TEST))
    split = predefined(train, test)
    user = np.flatnonzero(split.train.user_ids.all == _USER).astype(np.int32)
    names = np.array(split.train.item_ids.all.to_list())
    relevant = split.test.items[(split.test.users == user) & (split.test.values >= _THRESHOLD)]
    rows = []
    for design, decisions in _DESIGNS.items():
        ranking = Ranking(threshold=_THRESHOLD, **decisions)  # type: ignore[arg-type]
        targets = Targets(split.train, split.test, ranking).drawn_for(user)
        pool = targets.pool(user)[0]
        others = names[np.setdiff1d(np.flatnonzero(pool), relevant)]
        parts = np.split(relevant, len(relevant)) if ranking.one_relevant else [relevant]
        for number, wanted in enumerate(parts, start=1):
            sets = f"T_u^{number}" if ranking.one_relevant else "T_u"
            rows.append([design, sets, " ".join(names[wanted]), " ".join(others)])
    header = ["design", "set", "relevant", "non-relevant"]
    caption = "Figure 1: target items of the user u on a toy example"
    notes = [
        f"training: {_row_text(_TRAIN)}; test: {_row_text(_TEST)}; threshold {_THRESHOLD}",
        "u has rated f and g in training; a has no test rating, so only AI contains it",
    ]
    return Exhibit("figure-01", caption, pl.DataFrame(rows, schema=header, orient="row"),
                   Table(header, rows, caption, notes))  # fmt: skip


def _row_text(rows: list[tuple[str, str, int]]) -> str:
    return ", ".join(f"{user} {item} {value}" for user, item, value in rows)
