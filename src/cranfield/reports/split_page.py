"""The page of a split check: findings, figures, and the counts side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._figures import ACCENT, altair, data_of, drawn_beside, look, series, themed, tips
from cranfield._files import write_text
from cranfield._numbers import listed
from cranfield.facts import experiment as experiment_facts
from cranfield.facts import sentences
from cranfield.reports.figures import QUANTILES, quantile_bars
from cranfield.reports.html_page import Section, page
from cranfield.reports.markup import downloads, figure, notes, paragraphs, text
from cranfield.splits import SplitCheck, gap_days, side_by_side
from cranfield.tables import day

_BINS, _LOOK = 40, look("screen")


def write_split_page(path: str | Path, checks: Sequence[SplitCheck]) -> Path:
    """Write the page of one or several split checks."""
    return write_text(path, split_page(checks))


@drawn_beside
def split_page(checks: Sequence[SplitCheck]) -> str:
    """Return the page as HTML: one section per split, and one with all of them side by side."""
    several = len(checks) > 1
    counts = f'<div class="scroll" tabindex="0" role="region" aria-label="counts">{side_by_side(checks).html()}</div>'
    findings = pl.concat([check.frame() for check in checks])
    wrong = experiment_facts.WrongSplits(tuple(check.name for check in checks if check.wrong))
    opening = Section("answer", "The answer", f'<p class="answer">{text(wrong)}</p>')
    sizes = [f"{check.name}: {_counted(check)}." for check in checks]
    sections = [
        *([opening] if several else []),
        *(_section(number, check, opening=not several) for number, check in enumerate(checks, start=1)),
        Section("counts", "How do the splits differ?" if several else "How large are the parts?",
                paragraphs(sizes), counts + downloads("findings"), {"findings": findings}),
    ]  # fmt: skip
    names = " · ".join(check.name for check in checks)
    return page(f"Check of {len(checks)} splits" if several else "Check of a split", sections, lead=names)


def _counted(check: SplitCheck) -> str:
    """Return the number of ratings of each part."""
    return listed([f"{len(ratings):,} ratings in {part}" for part, ratings in check.parts.items() if len(ratings)])


def _section(number: int, check: SplitCheck, *, opening: bool) -> Section:
    """Return what was found in a split: the verdict, a figure and what is not fine; the rest is folded."""
    verdict = f'<p class="{"answer" if opening else ""}">{text(check.sentences()[0])}</p>'
    drawings = [figure(f"split-{number}-{name}", chart, caption) for name, chart, caption in _charts(check)]
    serious = [finding for finding in check.findings if finding.level != "fine"]
    fine = [finding for finding in check.findings if finding.level == "fine"]
    html = verdict + drawings[0] + notes(sentences(serious))
    more = f"<h3>What is fine</h3>{notes(sentences(fine))}" + "".join(drawings[1:])
    return Section(f"split-{number}", check.name, html, more)


def _charts(check: SplitCheck) -> Iterator[tuple[str, Any, str]]:
    over_time = _over_time(check)
    if over_time is not None:
        yield "time", over_time, "Ratings of each part over time."
    gaps = gap_days(check.parts.get("profiles", check.parts["train"]), check.parts["test"])
    if gaps is not None and len(gaps):
        caption = (
            "Days from a user's last training rating to the first test rating; negative if training continues after it."
        )
        yield "gaps", _histogram(gaps, "days"), caption
    yield "ratings", _shares(check), "Share of each part's ratings by value."
    caption = "Ratings of a user in each part: 10 to 90 % of the users, the middle half, the median."
    yield "profiles", _sizes(check), caption


def _over_time(check: SplitCheck) -> Any | None:
    alt = altair()
    times = {name: part.times for name, part in check.parts.items()}
    if any(part is None for part in times.values()):
        return None
    known = {name: part for name, part in times.items() if part is not None}
    oldest, newest = (reduce([reduce(part) for part in known.values()]) for reduce in (min, max))
    edges = np.linspace(int(oldest), int(newest) + 1, _BINS + 1)
    rows = [
        {"part": name, "start": int(edge), "from": day(edge), "ratings": int(count)}
        for name, part in known.items()
        for edge, count in zip(edges, np.histogram(part, edges)[0])
    ]
    order = [day(edge) for edge in edges[:-1]]
    axis = alt.Axis(labelAngle=0, values=order[:: max(1, _BINS // 5)], labelExpr="slice(datum.value, 0, 10)")
    chart = (
        alt.Chart(data_of(rows))
        .mark_line(strokeWidth=2, interpolate="step-after")
        .encode(
            x=alt.X("from:O", sort=order, title=None, axis=axis),
            y=alt.Y("ratings:Q", title="ratings"),
            tooltip=tips(part="part", **{"from": "from"}, ratings=("ratings", ",d")),
            **series("part", list(known)),
        )
    )
    return _sized(chart)


def _histogram(values: Any, title: str) -> Any:
    alt = altair()
    low, high = np.quantile(values, [0.01, 0.99])
    counts, edges = np.histogram(np.clip(values, low, high), _BINS)
    frame = pl.DataFrame({"from": edges[:-1], "to": edges[1:], "users": counts})
    chart = (
        alt.Chart(data_of(frame))
        .mark_bar(color=ACCENT)
        .encode(
            x=alt.X("from:Q", title=title),
            x2="to:Q",
            y=alt.Y("users:Q", title="users"),
            y2=alt.datum(0),
            tooltip=tips(**{"from": ("from", ",.1f")}, to=("to", ",.1f"), users=("users", ",d")),
        )
    )
    return _sized(chart)


def _shares(check: SplitCheck) -> Any:
    alt = altair()
    values = np.unique(np.concatenate([np.unique(part.values) for part in check.parts.values()]))
    many = len(values) > _BINS
    edges = np.linspace(values.min(), values.max(), _BINS + 1) if many else None
    rows = []
    for name, part in check.parts.items():
        if edges is None:
            counts = np.bincount(np.searchsorted(values, part.values), minlength=len(values))
            at = values
        else:
            counts, at = np.histogram(part.values, edges)[0], edges[:-1]
        rows += [{"part": name, "rating": f"{value:g}", "share": count / len(part)} for value, count in zip(at, counts)]
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar()
        .encode(
            x=alt.X("rating:N", sort=None, title="rating", axis=alt.Axis(labelAngle=0)),
            xOffset="part:N",
            y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%")),
            tooltip=tips(part="part", rating="rating", share=("share", ".1%")),
            **series("part", list(check.parts), mark="point"),
        )
    )
    return _sized(chart)


def _sizes(check: SplitCheck) -> Any:
    alt = altair()
    rows = []
    for name, part in check.parts.items():
        sizes = part.user_counts[part.user_counts > 0]
        levels = np.quantile(sizes, list(QUANTILES.values())).tolist()
        rows.append({"part": name, **dict(zip(QUANTILES, levels))})
    y = alt.Y("part:N", sort=list(check.parts), title=None)
    base = alt.Chart(data_of(rows)).encode(
        tooltip=tips(part="part", median=("median", ",.0f"), q10=("10 % below", ",.0f"), q90=("90 % below", ",.0f"))
    )
    bars = quantile_bars(base, y, "ratings of a user")
    return themed(bars.properties(width=_LOOK["width"]), "screen")


def _sized(chart: Any) -> Any:
    return themed(chart.properties(width=_LOOK["width"], height=_LOOK["panel"][1]), "screen")
