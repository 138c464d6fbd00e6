"""What a reader should know of how the cells of an audit were chosen."""

from __future__ import annotations

from cranfield._numbers import percent_text
from cranfield.audits.crossing import Crossing


def notes_on(crossing: Crossing) -> list[str]:
    """Return one sentence about a sample of cells; none where every cell is there."""
    if crossing.complete:
        return []
    return [
        f"The {len(crossing.cells):,} cells are a balanced sample of all combinations; the counts of pairs of options "
        f"differ from equal ones by {percent_text(crossing.imbalance)} on average."
    ]
