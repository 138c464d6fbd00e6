"""The numbers of the audit section: what its script needs to show any pair, option and cell."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cranfield._table import Table
from cranfield._terminal import shown
from cranfield.audits import VARIABLE_DECISIONS, Audit, PairView, option_words, pair_tables, ranks_of, share_text
from cranfield.facts import p_text

# Maximum size of all pairs in the page, in bytes.
_MOST_BYTES = 4_000_000
# Maximum rows of a table on the page; the files of the audit hold all rows.
MOST_ROWS = 60
# More systems would be hard to find in a list of choices, and a rank must fit in one byte.
_MOST_SYSTEMS = 100


@dataclass(frozen=True)
class ShownPair:
    """What a page shows of a pair of systems.

    Parameters
    ----------
    view
        The pair, the better system under the starting point first.
    sentences
        The verdict.
    facts
        Key numbers, each with its description.
    tables
        The tables of the pair by name, with at most `MOST_ROWS` rows.
    """

    view: PairView
    sentences: list[str]
    facts: list[tuple[str, str]]
    tables: Mapping[str, Table]

    @classmethod
    def of(cls, audit: Audit, view: PairView) -> ShownPair:
        """Return what a page shows of a pair."""
        tables = {name: shortened(table) for name, table in pair_tables(audit, view).items()}
        return cls(view, audit.sentences(*view.systems), facts_of(audit, view), tables)

    def as_dict(self, systems: Mapping[str, int]) -> dict[str, Any]:
        """Return it for JSON, with systems as indices."""
        leads = self.view.pair.leads
        return {
            "systems": [systems[system] for system in self.view.systems],
            "d_z": _packed(self.view.d_z, "<f4"),
            "p": _packed(leads.p, "<f4"),
            # 0, 1 or 2 if the second leads, both are equal, or the first leads; plus 3 if the difference is
            # significant.
            "result": _packed(self.view.lead + 1 + 3 * (self.view.better != 0), "u1"),
            "sentences": list(map(shown, self.sentences)),
            "facts": [list(map(shown, fact)) for fact in self.facts],
            "tables": {name: _table(table) for name, table in self.tables.items()},
            "influence": _influence(self.view),
        }


def audited(audit: Audit) -> tuple[list[ShownPair], dict[str, Any]]:
    """Return what a page shows of each pair of systems, the chosen one first, and everything its script needs.

    The pairs are those of the best systems under the starting point, as many as fit on a page.
    """
    order = audit.systems_at_start[:_MOST_SYSTEMS]
    numbers = {system: number for number, system in enumerate(order)}
    pairs: list[ShownPair] = []
    written: list[dict[str, Any]] = []
    size = 0
    for place in range(1, len(order)):
        added = [ShownPair.of(audit, PairView.of(audit, first, order[place])) for first in order[:place]]
        texts = [pair.as_dict(numbers) for pair in added]
        size += sum(len(json.dumps(text)) for text in texts)
        if pairs and size > _MOST_BYTES:
            order = order[:place]
            break
        pairs += added
        written += texts
    return pairs, {**_grid(audit, order), "pairs": written}


def shortened(table: Table) -> Table:
    """Return a table with at most `MOST_ROWS` rows; the caption says so if rows were cut."""
    if len(table.rows) <= MOST_ROWS:
        return table
    caption = f"{table.caption}. The first {MOST_ROWS} of {len(table.rows):,} rows"
    return Table(table.header, table.rows[:MOST_ROWS], caption, table.notes, table.label)


def facts_of(audit: Audit, view: PairView) -> list[tuple[str, str]]:
    """Return the key numbers: the share led, flips, the most influential decision, the joint test."""
    answer, flips = view.pair.answer(), view.pair.flips
    first = view.leader(view.sign * flips.lead) or view.first
    share = view.share(answer, "leads" if first == view.first else "trails")
    facts = [(share_text(share.share), f"of the cells are led by {first}, the winner of the starting point")]
    if flips.lead == 0:
        facts = [(share_text(share.share), f"of the cells are led by {first}; under the starting point they are equal")]
    if share.chance is not None and audit.grid.n_cells > 1:
        least = int(100 * share.chance + 1e-6)
        facts.append((f"{least} %", "is reached or exceeded by one of two equally good systems in 5 % of cases"))
    if flips.singles and flips.lead:
        turning = sum(flip.turns_winner for flip in flips.singles)
        facts.append((f"{turning} of {len(flips.singles)}", "single changes change the winner"))
    rows = [row for row in view.pair.influence if row["with_decision"] is None and row["answer"] == "d_z"]
    decided = [row for row in rows if row["kind"] != "chance" and row["variance"]]
    if decided:
        most = max(decided, key=lambda row: row["shapley"])
        facts.append((most["decision"], f"explains {share_text(most['shapley'])} of the variance of the effect size"))
    if answer.relied_on and audit.grid.n_cells > 1:
        p = p_text(answer.relied_on["either"])
        text = p if p.startswith("<") else f"= {p}"
        seeds = ", with the spread of seeds" if answer.corrected_retrained else ""
        facts.append((f"p {text}", f"joint test{seeds}: do they differ anywhere, one way or the other?"))
    return facts


def _influence(view: PairView) -> list[list[Any]]:
    """Return decision, kind, share of the variance of d_z and its interval; chance last."""
    rows = [row for row in view.pair.influence if row["with_decision"] is None and row["answer"] == "d_z"]
    rows = sorted(rows, key=lambda row: (row["kind"] == "chance", -row["shapley"]))
    return [
        [shown(row["decision"]), row["kind"], *(round(row[name], 4) for name in ("shapley", "lower", "upper"))]
        for row in rows
    ]


def _grid(audit: Audit, systems: tuple[str, ...]) -> dict[str, Any]:
    """Return the cells and everything else that all pairs share."""
    grid = audit.grid
    places = [audit.systems.index(system) for system in systems]
    ranks = ranks_of(np.where(audit.lower_is_better, -audit.averages, audit.averages))[places]
    even = all(opened.weights is None for opened in grid.varied)
    return {
        "systems": list(map(shown, systems)),
        "of_systems": len(audit.systems),
        "decisions": [
            {
                "name": shown(opened.name),
                "kind": opened.kind,
                "says": VARIABLE_DECISIONS[opened.name].says if opened.name in VARIABLE_DECISIONS else "",
                "options": list(map(shown, opened.options)),
                "words": [shown(option_words(opened.name, option)) for option in opened.options],
            }
            for opened in grid.varied
        ],
        "cells": _packed(grid.cells, "<u2"),
        "universe": _packed(grid.universe, "<u4"),
        "weights": None if even else _packed(grid.weights, "<f8"),
        "start": grid.start,
        "alpha": audit.effort.alpha,
        "users": _packed(audit.users, "<u4"),
        "averages": _packed(audit.averages[places], "<f8"),
        "ranks": _packed(np.minimum(ranks, 255), "u1"),
    }


def _table(table: Table) -> dict[str, Any]:
    rows = [[shown(cell) for cell in row] for row in table.rows]
    return {"caption": shown(f"{table.caption}."), "header": list(map(shown, table.header)), "rows": rows}


def _packed(values: ArrayLike, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()
