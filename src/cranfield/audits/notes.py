"""Notes for the reader on how the cells of an audit were chosen."""

from __future__ import annotations

from math import prod

from cranfield._numbers import percent_text
from cranfield.audits.crossing import Crossing


def notes_on(crossing: Crossing) -> list[str]:
    """Return sentences about options declared invalid, about repetitions and about a sample of cells."""
    openings = crossing.menu.openings
    declared = [
        f"{opening.name} {option} ({reason})" for opening in openings for option, reason in opening.invalid.items()
    ]
    notes = []
    if declared:
        kept = prod(len(opening.values) for opening in openings)
        left_out = prod(len(opening.values) + len(opening.invalid) for opening in openings) - kept
        notes.append(f"Declared invalid here, with {left_out:,} combinations: {'; '.join(declared)}.")
    times = crossing.menu.experiment.repetitions
    if times > 1:
        notes.append(
            f"A user's values are averaged over {times} repetitions, and no p-value of the audit includes the "
            "spread between these: open split_seed and training_seed, which the joint test includes."
        )
    if crossing.complete:
        return notes
    return [
        *notes,
        f"The {len(crossing.cells):,} cells are a balanced sample of all combinations; the counts of pairs of options "
        f"differ from equal counts by {percent_text(crossing.imbalance, ' %')} on average.",
    ]
