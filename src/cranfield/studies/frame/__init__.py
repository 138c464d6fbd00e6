"""What all studies share: the study and its claims, units of work in a store, and tables and figures."""

from cranfield.studies.frame.claims import (
    ClaimFindings,
    Floats,
    Saying,
    each,
    finding,
    finding_over_splits,
    findings,
    points,
)
from cranfield.studies.frame.exhibits import HERE, CellRow, Exhibit, Printed, bars, curve, exhibit, marked
from cranfield.studies.frame.study import (
    PanelNumbers,
    Study,
    StudyFiles,
    StudyResults,
    StudyUnit,
    ValueRows,
    data_names,
    measured,
    recognised,
    size_of,
)

__all__ = [
    "HERE",
    "CellRow",
    "ClaimFindings",
    "Exhibit",
    "Floats",
    "PanelNumbers",
    "Printed",
    "Saying",
    "Study",
    "StudyFiles",
    "StudyResults",
    "StudyUnit",
    "ValueRows",
    "bars",
    "curve",
    "data_names",
    "each",
    "exhibit",
    "finding",
    "finding_over_splits",
    "findings",
    "marked",
    "measured",
    "points",
    "recognised",
    "size_of",
]
