"""The page of the demo: the table everyone publishes, where it misleads, and what holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cranfield import recommenders
from cranfield._figures import Style, drawn_beside, unchecked_charts
from cranfield._files import write_text
from cranfield._record import Step
from cranfield._table import csv_of
from cranfield.facts import demo as demo_facts
from cranfield.measures import PLAIN, Scores
from cranfield.reports import figures
from cranfield.reports.audit_page import begin_figures, write_tables
from cranfield.reports.demonstration import HELD_OUT, METRIC, METRICS, RANDOM_ITEMS, SYSTEMS, TRUTH, Demo
from cranfield.reports.html_page import Section, page
from cranfield.reports.markup import notes, paragraphs, percent, text
from cranfield.reports.sections.audit import audit_section
from cranfield.reports.sections.bias import bias_section
from cranfield.reports.sections.card import card
from cranfield.reports.sections.comparison import pairs
from cranfield.reports.sections.explorer import explore, explorer
from cranfield.reports.sections.groups import users
from cranfield.reports.sections.leaderboard import full_and_condensed, leaderboard
from cranfield.reports.sections.metrics import trust
from cranfield.reports.sections.truth import MeasuredProtocol, metrics_and_truth, orders, truth
from cranfield.reports.tables import leaderboard_frame, leaderboard_table

_WHY = (
    "This world is simulated, so we know what every user thinks of every item. Users rate what they come across, and "
    "more often what they like; a test set of such ratings rewards systems that recommend what many people have rated. "
    "Ratings of items drawn at random for each user have no such bias: every recommended item is equally likely to be "
    f"judged, so {METRIC} on them is the true {METRIC} times a constant, apart from chance in the draw."
)


@drawn_beside
def demo_page(demo: Demo) -> str:
    """Return the demo's report as HTML."""
    world = demo.world.ratings
    sizes = f"{world.n_users:,} users · {world.n_items:,} items · {len(world):,} ratings"
    lead = f"A simulated world, whose truth is known · {sizes} · {len(demo.systems)} systems"
    true = dict(zip(demo.systems, demo.averages(TRUTH).tolist()))
    protocols = [_measured(demo, test) for test in (HELD_OUT, RANDOM_ITEMS)]
    explored = explore(demo.variants)
    for test, comparison in demo.comparisons.items():
        explored = explored.with_comparison(comparison, test, demo.scores[test], PLAIN)
    start = explored.find(**explored.label(HELD_OUT, demo.scores[HELD_OUT], METRIC))
    published = demo.scores[HELD_OUT]
    sections = [
        _story(demo, orders(METRIC, true, protocols)),
        _leaderboard(demo, HELD_OUT, title="What would be published?"),
        full_and_condensed(published, _condensed(demo)),
        truth(METRIC, true, protocols, _WHY),
        _leaderboard(demo, RANDOM_ITEMS, name="what-holds", title="What holds on random items?"),
        explorer(explored, start, true),
        _audited(demo),
        bias_section(demo.bias, demo_facts.TrueOrder(demo.protocol_taus(), of_protocols=True)),
        pairs(demo.comparisons[HELD_OUT], title="Which systems differ, as published?"),
        users(published, comparison=demo.comparisons[HELD_OUT]),
        trust(demo.assessment),
        metrics_and_truth(
            METRIC,
            demo.assessment.advice(),
            {test: demo.metric_taus(test) for test in (HELD_OUT, RANDOM_ITEMS)},
            demo.advice_check(),
        ),
        _card(demo),
    ]
    right = demo.order(HELD_OUT)[0] == demo.order(TRUTH)[0]
    title = "The published order, and the true one" if right else "The published winner, and the better system"
    return page(title, [section for section in sections if section is not None], lead=lead)


@unchecked_charts()
def write_demo(demo: Demo, folder: Path, *, style: Style = "paper") -> Path:
    """Write the page, tables, figures as PDF and SVG, and the audit into a folder; return the path of the page."""
    drawn = figures.begin_drawing(_charts(demo, style), folder / "figures")
    drawn_of_audit = begin_figures(demo.audit, folder / "audit" / "figures", style)
    path = write_text(folder / "report.html", demo_page(demo))
    for test, name in ((HELD_OUT, "held-out"), (RANDOM_ITEMS, "random-items"), (TRUTH, "truth")):
        tables, comparison = folder / "tables", demo.comparisons.get(test)
        table = leaderboard_table(demo.scores[test], comparison)
        write_text(tables / f"scores-{name}.csv", csv_of(leaderboard_frame(demo.scores[test], comparison)))
        write_text(tables / f"scores-{name}.tex", table.titled(f"simulated world, {test}", "scores").latex())
        write_text(tables / f"scores-{name}.md", table.markdown())
        if comparison is not None:
            write_text(tables / f"comparison-{name}.csv", csv_of(comparison.rows))
    demo.audit.save(folder / "audit")
    write_tables(demo.audit, folder / "audit" / "tables", "simulated world")
    for _, finish in (drawn, drawn_of_audit):
        finish()
    return path


def _charts(demo: Demo, style: Style) -> dict[str, object]:
    values = {test: dict(zip(demo.systems, demo.averages(test).tolist())) for test in (HELD_OUT, TRUTH, RANDOM_ITEMS)}
    first, best = demo.order(HELD_OUT)[0], demo.order(TRUTH)[0]
    return {
        "orders": figures.orders(values, list(dict.fromkeys((best, first))), style=style),
        "averages-held-out": demo.scores[HELD_OUT].plot(metric=METRIC, style=style),
        "averages-random-items": demo.scores[RANDOM_ITEMS].plot(metric=METRIC, style=style),
        "wins-held-out": demo.comparisons[HELD_OUT].plot("wins", metric=METRIC, style=style),
    }


def _leaderboard(demo: Demo, test: str, **names: str) -> Section:
    return leaderboard(demo.scores[test], demo.comparisons[test], data=f"simulated world, {test}", **names)  # type: ignore[arg-type]


def _measured(demo: Demo, test: str) -> MeasuredProtocol:
    return MeasuredProtocol(dict(zip(demo.systems, demo.averages(test).tolist())), demo.claims(test))


def _story(demo: Demo, drawn: str) -> Section:
    first, best, claims = demo.published_winner, demo.truly_best, demo.claims(HELD_OUT)
    facts = [
        ("", first.system, f"leads the published table; users truly like {percent(first.liked)} of what it recommends"),
        ("good", best.system, f"is truly best: users like {percent(best.liked)}"),
        ("warn" if claims.wrong else "", f"{claims.wrong} of {claims.significant}",
         f"significant claims of the published table are wrong; a comparison leaves {claims.untold_wrong} open"),
        ("", f"{demo.tau(HELD_OUT):.2f} → {demo.tau(RANDOM_ITEMS):.2f}",
         f"Kendall's tau with the true order, on {HELD_OUT} and on {RANDOM_ITEMS}"),
    ]  # fmt: skip
    shown = "".join(
        f'<div class="{kind}"><b>{text(number)}</b><span>{text(said)}</span></div>' for kind, number, said in facts
    )
    opening, *rest = demo.facts()
    markup = f'<p class="answer">{text(opening)}</p>{drawn}<div class="figures">{shown}</div>'
    return Section("answer", "The answer", markup, notes(rest) + _systems(demo))


def _audited(demo: Demo) -> Section:
    """Return the section of the audit, with a note on what an audit cannot see."""
    section = audit_section(demo.audit)
    assert section is not None
    said = (
        f"The audit opens every decision that can be opened on the same lists and {HELD_OUT}, for the first systems of "
        "the published table and the truly best one. No option here removes the bias of the test set: a winner that "
        "survives all of them can still be the worse system."
    )
    return replace(section, more=paragraphs([said]) + section.more)


def _systems(demo: Demo) -> str:
    """Return a description of each system, from its documentation."""
    summaries = [(recommenders.SYSTEMS[system].__doc__ or "").strip().split("\n")[0] for system in SYSTEMS]
    lines = "".join(f"<dt>{text(name)}</dt><dd>{text(summary)}</dd>" for name, summary in zip(demo.systems, summaries))
    return f'<details><summary>The {len(summaries)} systems</summary><dl class="card">{lines}</dl></details>'


def _condensed(demo: Demo) -> Scores:
    """Return the scores on held-out ratings with condensed lists."""
    wanted = {"threshold": demo.scores[HELD_OUT].step.settings["threshold"], "lists": "condensed"}
    scores = next(
        scores for test, scores in demo.variants if test == HELD_OUT and wanted.items() <= scores.step.settings.items()
    )
    return scores.only(METRICS)


def _card(demo: Demo) -> Section:
    held_out, comparison = demo.scores[HELD_OUT], demo.comparisons[HELD_OUT]
    data = [("data", step) for step in demo.world.ratings.history]
    ranked = demo.runs[0].history[-1].settings
    settings = {"systems": demo.systems, "length": ranked["length"], "seed": ranked["seed"]}
    systems = [("systems", Step("recommend", settings))]
    targets = [("targets", step) for step in demo.runs[0].history if step.action == "targets"]
    steps = [*data, ("split", demo.split.step), *targets, *systems, ("measure", held_out.step)]
    facts = {
        "seed": demo.world.seed,
        "metrics": ", ".join(METRICS),
        "observed ratings": demo.world.ratings.fingerprint,
        "training ratings": demo.split.train.fingerprint,
        **{test: scores.step.settings["test"] for test, scores in demo.scores.items()},
    }
    return card([*steps, ("compare", comparison.step), ("assess", demo.assessment.step)], facts)
