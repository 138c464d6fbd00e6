"""What a reader should know of how the cells of an audit were chosen."""

from __future__ import annotations

from math import prod

from cranfield._numbers import percent_text
from cranfield.audits.crossing import Crossing


def notes_on(crossing: Crossing) -> list[str]:
    """Return a sentence about options that are declared invalid, and one about a sample of cells."""
    openings = crossing.menu.openings
    declared = [
        f"{opening.name} {option} ({reason})" for opening in openings for option, reason in opening.invalid.items()
    ]
    notes = []
    if declared:
        kept = prod(len(opening.values) for opening in openings)
        left_out = prod(len(opening.values) + len(opening.invalid) for opening in openings) - kept
        notes.append(f"Declared invalid here, with {left_out:,} combinations: {'; '.join(declared)}.")
    if crossing.complete:
        return notes
    return [
        *notes,
        f"The {len(crossing.cells):,} cells are a balanced sample of all combinations; the counts of pairs of options "
        f"differ from equal ones by {percent_text(crossing.imbalance, ' %')} on average.",
    ]
