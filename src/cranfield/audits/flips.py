"""The smallest change that changes the winner."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.audits.grid import Change, Grid, OptionKind
from cranfield.audits.leads import Leads


@dataclass(frozen=True)
class Swap:
    """One decision changed: its name and kind, its option at the starting point, and the new one."""

    decision: str
    kind: OptionKind
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.decision} {self.after} instead of {self.before}"


@dataclass(frozen=True)
class Flip:
    """A cell that differs from the starting point in one decision or two, and its results.

    Parameters
    ----------
    swaps
        What is changed.
    cell
        The cell.
    lead
        1 if the first system leads there, −1 if the second does, 0 if they are equal.
    difference, d_z, p, significant
        As in `Leads`.
    turns_winner
        Whether the winner is not that of the starting point.
    turns_significance
        Whether the difference is significant there and not under the starting point, or the reverse.
    """

    swaps: tuple[Swap, ...]
    cell: int
    lead: int
    difference: float
    d_z: float
    p: float
    significant: bool
    turns_winner: bool
    turns_significance: bool


@dataclass(frozen=True)
class Flips:
    """What changes of one decision, or of two, do to the winner of the starting point.

    Parameters
    ----------
    lead, significant
        Which system leads under the starting point (1, −1 or 0 as in `Flip`), and whether significantly.
    singles
        All single changes in the grid, whether they change a result or not.
    possible
        The number of single changes that the options allow; a sample or a grid with invalid cells has fewer.
    pairs
        The changes of two decisions that change the winner if no single one does; otherwise none.
    """

    lead: int
    significant: bool
    singles: tuple[Flip, ...]
    possible: int
    pairs: tuple[Flip, ...]

    @property
    def turning(self) -> list[Flip]:
        """The smallest changes that change the winner: single ones or, if there are none, pairs."""
        return [flip for flip in self.singles if flip.turns_winner] or list(self.pairs)

    @property
    def turning_significance(self) -> list[Flip]:
        """The single changes that change the significance but not the winner."""
        return [flip for flip in self.singles if flip.turns_significance and not flip.turns_winner]


def flips_of(grid: Grid, leads: Leads) -> Flips:
    """Return the effects of small changes of the starting point, with its chance options."""
    start = grid.universe[grid.start]
    singles = tuple(_flip(grid, leads, change) for change in grid.changes())
    pairs: tuple[Flip, ...] = ()
    if not any(flip.turns_winner for flip in singles):
        changed = (_flip(grid, leads, change) for change in grid.changes(n=2))
        pairs = tuple(flip for flip in changed if flip.turns_winner)
    possible = int(sum(grid.sizes[place] - 1 for place in grid.decisions))
    return Flips(int(leads.lead[start]), bool(leads.significant[start]), singles, possible, pairs)


def _flip(grid: Grid, leads: Leads, change: Change) -> Flip:
    start, universe = grid.universe[grid.start], grid.universe[change.cell]
    swaps = []
    for place in change.decisions:
        opened = grid.opened[place]
        before, after = (opened.options[grid.cells[cell, place]] for cell in (grid.start, change.cell))
        swaps.append(Swap(opened.name, opened.kind, before, after))
    return Flip(
        tuple(swaps),
        change.cell,
        int(leads.lead[universe]),
        float(leads.difference[universe]),
        float(leads.d_z[universe]),
        float(leads.p[universe]),
        bool(leads.significant[universe]),
        bool(leads.lead[universe] * leads.lead[start] < 0),
        bool(leads.significant[universe] != leads.significant[start]),
    )
