"""Which documentation page helps with an error: the page of the stage that raised it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType

_PAGES: Mapping[str, str] = {
    "data": "data",
    "datasets": "datasets",
    "data.filters": "splits",
    **dict.fromkeys(("tables.ranges", "tables.spark", "rankings.ranged", "measures.ranged", "measures.spark"), "scale"),
    "simulate": "simulate",
    "splits": "splits",
    "recommenders": "recommenders",
    "rankings": "ranking",
    **dict.fromkeys((f"rankings.{module}" for module in (
        "columns", "layouts", "lists", "qrels", "reading", "run", "sources", "text",
    )), "runs"),
    "judgments": "evaluate",
    "metrics": "metrics/README",
    **dict.fromkeys(("metrics.dialects", "metrics.tools"), "dialects"),
    "measures": "evaluate",
    "measures.other_tools": "dialects",
    **dict.fromkeys((f"measures.{module}" for module in ("segments", "segmenting")), "segments"),
    "comparisons": "compare",
    "comparisons.by_segment": "segments",
    "comparisons.gate": "gate",
    **dict.fromkeys((f"comparisons.{module}" for module in ("suggestions", "tipping")), "unjudged"),
    "biases": "bias",
    "assessments": "assess",
    "store": "experiment",
    "experiments": "experiment",
    "audits": "audit",
    "reports": "report",
    "studies": "replications",
    **{f"cli.{module}": module for module in ("assess", "audit", "bias", "compare", "data", "evaluate", "experiment")},
    "cli.compare.suggest_judgments_command": "unjudged",
    "cli.demo": "report",
    "cli.evaluate.dialects_command": "dialects",
    "cli.recommend": "ranking",
    "cli.recommend.calibrate_command": "metrics/error",
    "cli.replicate": "replications",
    "cli.split": "splits",
}  # fmt: skip
"""The page of each stage, and of each module or function whose page is another one."""


def page_for(error: BaseException) -> str | None:
    """Return the page that helps with an error, as a path from the root of the repository; None if there is none.

    It is the page of the innermost stage that the error was raised through. Tables are read by several stages, and an
    error there has the page of the stage that reads them. An error raised from another one, to say
    where it came from, has the page of that other one.
    """
    cause = error.__cause__
    if isinstance(cause, type(error)) and (page := page_for(cause)) is not None:
        return page
    for place in reversed(list(_places(error.__traceback__))):
        while place:
            if place in _PAGES:
                return f"docs/{_PAGES[place]}.md"
            place = place.rpartition(".")[0]
    return None


def _places(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the functions of the package that an error was raised through, outermost first, as ``module.function``."""
    while traceback is not None:
        frame = traceback.tb_frame
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("cranfield."):
            yield f"{name.removeprefix('cranfield.')}.{frame.f_code.co_name}"
        traceback = traceback.tb_next
