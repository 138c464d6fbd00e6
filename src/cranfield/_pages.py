"""Which documentation page helps with an error: the page of the stage that raised it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType

_PAGES: Mapping[str, str] = {
    "data": "data",
    "data.datasets": "datasets",
    "data.filters": "splits",
    "data.filtering": "splits",
    **dict.fromkeys(("data.ranges", "data.spark", "rankings.ranged", "measures.ranged", "measures.spark"), "scale"),
    "data.simulate": "simulate",
    "splits": "splits",
    "recommenders": "recommenders",
    "rankings": "ranking",
    **dict.fromkeys((f"rankings.{module}" for module in (
        "cells", "dicts", "encode", "files", "frames", "layouts", "lists", "names", "numbers", "qrels", "read", "roles",
        "run", "several", "table", "trec", "write",
    )), "runs"),
    "measures": "evaluate",
    "measures.definition": "metrics/README",
    "measures.metrics": "metrics/README",
    "measures.dialects": "dialects",
    **dict.fromkeys((f"measures.{module}" for module in ("segments", "segmenting", "segment_groups")), "segments"),
    "comparisons": "compare",
    "comparisons.by_segment": "segments",
    "comparisons.gate": "gate",
    **dict.fromkeys((f"comparisons.{module}" for module in ("labelling", "tipping", "unjudged_pairs")), "unjudged"),
    "biases": "bias",
    "assessments": "assess",
    "experiments": "experiment",
    "audits": "audit",
    "reports": "report",
    "studies": "replications",
    **{f"cli.{command}": command for command in ("assess", "audit", "bias", "compare", "dialects", "evaluate")},
    **{f"cli.{command}": "experiment" for command in ("checklist", "clean", "diff", "new", "run", "show")},
    "cli.calibrate": "metrics/error",
    "cli.check_split": "splits",
    "cli.data": "data",
    "cli.demo": "report",
    "cli.label": "unjudged",
    "cli.recommend": "ranking",
    "cli.replicate": "replications",
    "cli.split": "splits",
}  # fmt: skip
"""The page of each stage, of each module whose page differs from that of its stage, and of each command."""

_SHARED = tuple(f"data.{module}" for module in ("sources", "compressed", "text", "columns", "frames", "layout"))
"""Modules that read both ratings and runs; their errors have the page of the module that called them."""


def page_for(error: BaseException) -> str | None:
    """Return the page that helps with an error, as a path from the root of the repository; None if there is none.

    It is the page of the innermost stage that the error was raised through. An error raised from another one, to say
    where it came from, has the page of that other one.
    """
    cause = error.__cause__
    if isinstance(cause, type(error)) and (page := page_for(cause)) is not None:
        return page
    for module in reversed(list(_modules(error.__traceback__))):
        while module and module not in _SHARED:
            if module in _PAGES:
                return f"docs/{_PAGES[module]}.md"
            module = module.rpartition(".")[0]
    return None


def _modules(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the modules of the package that an error was raised through, outermost first, without its name."""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name.startswith("cranfield."):
            yield name.removeprefix("cranfield.")
        traceback = traceback.tb_next
