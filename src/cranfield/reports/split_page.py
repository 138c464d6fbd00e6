"""The page of a split check: findings, figures, and the counts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from cranfield._figures import drawn_beside
from cranfield._files import write_text
from cranfield._numbers import listed
from cranfield.facts import experiment as experiment_facts
from cranfield.facts import sentences
from cranfield.reports.html_page import Section, page
from cranfield.reports.markup import downloads, figure, notes, paragraphs, text
from cranfield.splits import SplitCheck, side_by_side


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
    verdict = f'<p class="{"answer" if opening else ""}">{text(check.verdict[0])}</p>'
    drawings = [figure(f"split-{number}-{name}", check.plot(name), _CAPTIONS[name]) for name in check.figures]
    serious = [finding for finding in check.findings if finding.level != "fine"]
    fine = [finding for finding in check.findings if finding.level == "fine"]
    html = verdict + drawings[0] + notes(sentences(serious))
    more = f"<h3>What is fine</h3>{notes(sentences(fine))}" + "".join(drawings[1:])
    return Section(f"split-{number}", check.name, html, more)


_CAPTIONS = {
    "time": "Ratings of each part over time.",
    "gaps": "Days from a user's last training rating to the first test rating (below 0: training goes on).",
    "ratings": "Share of each part's ratings by value.",
    "profiles": "Ratings of a user in each part: 10 to 90 % of the users, the middle half, the median.",
}
