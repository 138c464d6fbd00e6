"""The tables of an audit, for the page and for papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cranfield._numbers import DASH, count_text, number_text
from cranfield._table import Table
from cranfield.audits.grid import Grid
from cranfield.audits.joint import STATISTICS
from cranfield.audits.pair import PairView
from cranfield.audits.verdict import crossed_options
from cranfield.audits.words import option_label
from cranfield.facts import audit as audit_facts
from cranfield.facts import p_text

if TYPE_CHECKING:
    from cranfield.audits.result import Audit

STATISTICS_IN_WORDS = {
    "median": "median z, absolute",
    "net": "share significant for one minus share significant for the other, absolute",
    "either": "share significant, one way or the other",
    "largest": "largest z, absolute, where at least 30 users differ",
}
"""Description of each statistic of the joint test."""

# Maximum number of interactions shown, and the smallest share of the variance that is shown.
_MOST_INTERACTIONS, _LEAST_INTERACTION = 10, 0.005

share_text = partial(audit_facts.share_text, short=True)
interval_text = partial(audit_facts.interval_text, short=True)


def pair_tables(audit: Audit, view: PairView) -> dict[str, Table]:
    """Return the tables about one pair of systems by name; tables that do not apply to this audit have no rows."""
    return {
        "shares": shares(audit, view),
        "joint": joint(audit, view),
        "joint-by-question": joint_by_question(audit, view),
        "tests": tests(audit, view),
        "influence": influence(view),
        "interactions": interactions(view),
        "flips": flips(view, audit.grid.labels),
        "rule": rule(view),
    }


def audit_tables(audit: Audit) -> dict[str, Table]:
    """Return the tables about the whole audit by name; tables that do not apply to this audit have no rows."""
    return {
        "opened": opened(audit.grid),
        "ranks": ranks(audit),
        "pairs": pairs(audit),
        "seeds": seeds(audit),
        "left-out": left_out(audit.grid),
        "truth": truth(audit),
        "truth-pairs": truth_pairs(audit),
        "advice": advice(audit),
    }


def shares(audit: Audit, view: PairView) -> Table:
    """Return how often each of two systems leads, over all cells and within each question, compared with chance."""
    first, second = view.systems
    header = ["question", "set-ups", f"{first} leads", f"{second} leads", "equal", f"{first} significantly",
              f"{second} significantly", "chance"]  # fmt: skip
    rows = [
        [
            audit_facts.question_text(answer.question),
            f"{answer.universes:,}",
            *(_share(view, answer, what) for what in ("leads", "trails")),
            share_text(view.share(answer, "equal").share),
            *(share_text(view.share(answer, what).share) for what in ("leads significantly", "trails significantly")),
            _chance(view, answer),
        ]
        for answer in _answers(view)
    ]
    caption = (
        f"Share of the set-ups that {first} and {second} lead, with 95 % intervals over resampled users. They cross "
        f"{crossed_options(audit.grid)}. Chance: if the systems were equally good, one of them, whichever it is, would "
        "lead this share or more in 5 % of cases. A share of set-ups is not a probability"
    )
    return Table(header, rows, caption)


def joint(audit: Audit, view: PairView) -> Table:
    """Return the joint test over all universes: the four statistics, what is expected without a difference, and p."""
    answer, seeds_opened = view.pair.answer(), audit.grid.has_chance
    header = ["statistic", "observed", "expected", *(["p, retrained"] * seeds_opened), "p, Holm", "p"]
    rows = []
    if answer.joint is not None:
        for name in STATISTICS:
            form = share_text if name in ("net", "either") else number_text
            numbers = [form(answer.joint.observed[name]), form(answer.joint.expected[name])]
            p_values = [answer.corrected.get(name), answer.joint.p[name]]
            wider = [answer.corrected_retrained.get(name)] * seeds_opened
            rows.append([STATISTICS_IN_WORDS[name], *numbers, *map(p_text, (*wider, *p_values))])
    retrained = "Retrained: with the spread of chance options added to that of users, and Holm's correction. "
    caption = (
        f"Joint test of all set-ups, {view.first} against {view.second}. Expected: the mean if the systems were "
        f"equally good. {retrained * seeds_opened}Holm: corrected over the pairs of systems"
    )
    return Table(header, rows, caption)


def joint_by_question(audit: Audit, view: PairView) -> Table:
    """Return the corrected p-values of the joint test within each question; no rows with fewer than two questions."""
    retrained = audit.grid.has_chance
    names = [f"p {name}" for name in STATISTICS]
    header = ["question", "set-ups", *(f"{name}, retrained" for name in names if retrained), *names]
    rows = []
    for answer in _answers(view)[1:]:
        if answer.joint is None:
            continue
        p_values = [answer.corrected.get(name, answer.joint.p[name]) for name in STATISTICS]
        wider = [answer.corrected_retrained.get(name) for name in STATISTICS] if retrained else []
        named = [audit_facts.question_text(answer.question), f"{answer.joint.universes:,}"]
        rows.append([*named, *map(p_text, (*wider, *p_values))])
    caption = (
        f"Joint test within each question, {view.first} against {view.second}: p-values with Holm's correction over "
        "the pairs of systems, by statistic"
    )
    return Table(header, rows, caption)


def tests(audit: Audit, view: PairView) -> Table:
    """Return the results of other tests and corrections for a pair, over all universes to which they apply."""
    names = ["leads_significantly", "trails_significantly"]
    rows = [
        [
            row["significance"],
            row["correction"],
            f"{row['universes']:,}",
            *(share_text(row[name]) for name in (names if view.sign > 0 else reversed(names))),
            p_text(row["start_p"]),
            p_text(row["start_p_corrected"]),
        ]
        for row in audit.tests
        if (row["system_a"], row["system_b"]) == view.pair.systems and row["question"] is None
    ]
    header = ["test", "correction", "set-ups", f"{view.first} significantly", f"{view.second} significantly",
              "p at the start", "corrected"]  # fmt: skip
    caption = (
        f"Other tests and corrections, {view.first} against {view.second}: share of the set-ups where one is "
        "significantly better, of those to which the test applies, and p under the starting point"
    )
    return Table(header, rows, caption)


def influence(view: PairView) -> Table:
    """Return which decisions matter: shares of the variance of d_z and of the sign of the lead, chance last."""
    singles = [row for row in view.pair.influence if row["with_decision"] is None]
    on_sign = {row["decision"]: row for row in singles if row["answer"] == "sign"}
    on_effect = sorted(
        (row for row in singles if row["answer"] == "d_z"), key=lambda row: (row["kind"] == "chance", -row["shapley"])
    )
    sampled = any(row["error"] is not None for row in on_effect)
    header = ["decision", "kind", "of d_z", "alone", "with interactions", "of the sign", *(["error"] * sampled)]
    rows = [
        [
            row["decision"],
            row["kind"],
            _shapley(row),
            share_text(row["main"]),
            share_text(row["total"]),
            _shapley(on_sign[row["decision"]]),
            *([share_text(row["error"])] * sampled),
        ]
        for row in on_effect
    ]
    method = f" ({on_effect[0]['method']})" if on_effect else ""
    caption = (
        f"Share of the variance over the set-ups that each decision explains, {view.first} against "
        f"{view.second}{method}: Shapley shares with 95 % intervals over resampled users; alone is the main effect"
    )
    return Table(header, rows, caption)


def interactions(view: PairView) -> Table:
    """Return the largest interactions of two decisions: shares of the variance of d_z."""
    rows = [row for row in view.pair.influence if row["with_decision"] is not None and row["answer"] == "d_z"]
    largest = sorted(
        (row for row in rows if row["interaction"] >= _LEAST_INTERACTION), key=lambda row: -row["interaction"]
    )
    body = [
        [row["decision"], row["with_decision"], interval_text(row["interaction"], row["lower"], row["upper"])]
        for row in largest[:_MOST_INTERACTIONS]
    ]
    caption = (
        f"The largest interactions of two decisions, {view.first} against {view.second}: shares of the variance of d_z "
        "that they explain only together"
    )
    return Table(["decision", "with", "of d_z"], body, caption)


def flips(view: PairView, labels: Mapping[str, str] | None = None) -> Table:
    """Return the smallest changes of the starting point that change the winner or the significance."""
    own = view.pair.flips
    turning = [flip for flip in (*own.singles, *own.pairs) if flip.turns_winner or flip.turns_significance]
    ordered = sorted(turning, key=lambda flip: (not flip.turns_winner, -abs(flip.d_z)))
    header = ["decision", "from", "to", "leads then", "p"]
    caption = f"Changes that reverse {view.first} against {view.second}, or its significance"
    return Table(header, [_flip_row(view, flip, labels) for flip in ordered], caption)


def _flip_row(view: PairView, flip: audit_facts.Flip, labels: Mapping[str, str] | None) -> list[str]:
    return [
        " + ".join(swap.decision for swap in flip.swaps),
        " + ".join(option_label(swap.decision, swap.before, labels) for swap in flip.swaps),
        " + ".join(option_label(swap.decision, swap.after, labels) for swap in flip.swaps),
        view.leader(view.sign * flip.lead) or "neither",
        p_text(flip.p),
    ]


def rule(view: PairView) -> Table:
    """Return the tree of at most three conditions as one row per leaf: its conditions, and which system leads."""
    own = view.pair.rule
    rows = [
        [" and ".join(path), str(view.leader(view.sign * lead))]
        for lead in (view.sign, -view.sign)
        for path in own.paths(lead)
        if path
    ]
    caption = (
        f"Who leads where, {view.first} or {view.second}, by the best rule of at most three conditions. It is right "
        f"for {share_text(own.accuracy)} of the set-ups; always naming the same system is right for "
        f"{share_text(own.majority)}"
    )
    return Table(["where", "leads"], rows, caption)


def opened(grid: Grid) -> Table:
    """Return the opened decisions with their kind, their options and the starting point."""
    start = grid.words(grid.start)
    rows = []
    for decision in grid.varied:
        shown = [
            option if decision.weights is None else f"{option} (weight {weight:.2g})"
            for option, weight in zip(decision.options, decision.shares.tolist())
        ]
        rows.append([decision.name, decision.kind, start[decision.name], ", ".join(shown)])
    sample = "" if grid.complete else ", a balanced sample of all combinations"
    caption = f"What was opened: {grid.counted}{sample}"
    return Table(["decision", "kind", "starting point", "options"], rows, caption)


def ranks(audit: Audit) -> Table:
    """Return the rank of every system over the cells: its mean, its range, and how often it is first."""
    by_system: dict[str, list[dict[str, Any]]] = {system: [] for system in audit.systems}
    for row in audit.rank_rows:
        if row["question"] is None:
            by_system[row["system"]].append(row)
    means = {system: sum(row["rank"] * row["share"] for row in rows) for system, rows in by_system.items()}
    body = []
    for system in sorted(by_system, key=means.__getitem__):
        rows = by_system[system]
        taken = [row["rank"] for row in rows if row["share"]]
        first = rows[0]
        share = interval_text(first["share"], first["lower"], first["upper"])
        body.append([system, f"{means[system]:.2f}", f"{min(taken)}", f"{max(taken)}", share])
    caption = (
        f"Ranks of {len(audit.systems)} systems over {count_text(audit.grid.n_cells, 'set-up')}; first: share of the "
        "set-ups with its 95 % interval over resampled users. Systems with equal averages share the better rank"
    )
    return Table(["system", "mean rank", "best", "worst", "first"], body, caption)


def pairs(audit: Audit) -> Table:
    """Return one row per pair of systems, the better one under the starting point first; no rows for a single pair."""
    order = {system: place for place, system in enumerate(audit.systems_at_start)}
    views = [PairView(pair, *sorted(pair.systems, key=order.__getitem__)) for pair in audit.pairs]
    views = sorted(views, key=lambda view: (order[view.first], order[view.second])) if len(views) > 1 else []
    seeds_opened = audit.grid.has_chance
    header = ["system", "against", "leads", "trails", "significantly", "other significantly", "chance",
              *(f"{p}, retrained" if seeds_opened else p for p in ("p median", "p either"))]  # fmt: skip
    caption = (
        "Every pair of systems, the better one under the starting point first: shares of the set-ups, what chance "
        "gives, and the joint test of all set-ups with Holm's correction"
    )
    return Table(header, [_pair_row(view) for view in views], caption)


def _pair_row(view: PairView) -> list[str]:
    answer = view.pair.answer()
    kinds = ("leads", "trails", "leads significantly", "trails significantly")
    return [
        view.first,
        view.second,
        *(share_text(view.share(answer, kind).share) for kind in kinds),
        _chance(view, answer),
        *(p_text(answer.relied_on.get(statistic)) for statistic in ("median", "either")),
    ]


def seeds(audit: Audit) -> Table:
    """Return how often a system differs significantly from itself if only a chance option changes."""
    rows = [[noise.system, noise.decision, f"{noise.pairs:,}", share_text(noise.significant)] for noise in audit.noise]
    caption = (
        "How often a system differs significantly from itself, by a plain t-test, in pairs of cells that differ in a "
        f"chance option alone (level {audit.effort.alpha:g})"
    )
    return Table(["system", "chance option", "pairs of cells", "significant"], rows, caption)


def left_out(grid: Grid) -> Table:
    """Return the combinations that could not be computed: one row per reason, with the options they share."""
    by_reason: dict[str, list[tuple[int, ...]]] = {}
    for options, reason in grid.invalid:
        by_reason.setdefault(reason, []).append(options)
    rows = [[reason, f"{len(cells):,}", _in_common(grid, cells)] for reason, cells in by_reason.items()]
    total = sum(map(len, by_reason.values()))
    caption = f"The {total:,} combinations that are left out, with the reason and the options that all of them have"
    return Table(["reason", "combinations", "options"], rows, caption)


def truth(audit: Audit) -> Table:
    """Return which options bring the measured order closest to the true one; no rows if no truth is known."""
    rows = [
        [
            row["decision"] or "all cells",
            row["option"] or DASH,
            f"{row['cells']:,}",
            f"{number_text(row['tau'], 2)} [{number_text(row['lower'], 2)}, {number_text(row['upper'], 2)}]",
        ]
        for row in (audit.known.options if audit.known else ())
    ]
    caption = (
        "Mean of Kendall's tau between the measured and the true order of the systems over the cells with an option, "
        f"with 95 % intervals over resampled users. True values: {audit.known.source if audit.known else ''}"
    )
    return Table(["decision", "option", "cells", "tau"], rows, caption)


def truth_pairs(audit: Audit) -> Table:
    """Return how often the truly better system of each pair leads; no rows if no truth is known."""
    rows = [
        [
            row["system_a"],
            row["system_b"],
            number_text(row["true_a"]),
            number_text(row["true_b"]),
            row["truly_better"] or "neither",
            DASH if row["right"] is None else interval_text(row["right"], row["lower"], row["upper"]),
            share_text(row["right_significantly"]),
            share_text(row["wrong_significantly"]),
        ]
        for row in (audit.known.pairs if audit.known else ())
    ]
    header = ["system", "against", "true value", "of the other", "truly better", "it leads", "significantly",
              "the other significantly"]  # fmt: skip
    caption = "Shares of the set-ups in which the truly better system leads, and in which either leads significantly"
    return Table(header, rows, caption)


def advice(audit: Audit) -> Table:
    """Return the metric that scores highest under each split and target design; no rows if none was assessed."""
    rows = [
        [
            row["setup"],
            row["reason"] if row["rank"] is None else f"{row['metric']} ({row['average']})",
            number_text(row["score"], 3),
            {True: "yes", False: "no", None: DASH}[row["clear"]],
            number_text(row["tau"], 2),
        ]
        for row in audit.advised
        if row["rank"] in (1, None)
    ]
    caption = (
        "The metric that scores highest in the advice under each split and target design, whether the choice is clear, "
        "and tau between the scores of all metrics and those under the starting point"
    )
    return Table(["set-up", "metric", "score", "clear", "tau"], rows, caption)


def _in_common(grid: Grid, cells: Sequence[tuple[int, ...]]) -> str:
    columns = [set(column) for column in zip(*cells)]
    shared = [
        f"{decision.name} {decision.options[next(iter(numbers))]}"
        for decision, numbers in zip(grid.varied, columns)
        if len(numbers) == 1 and len(decision.options) > 1
    ]
    return ", ".join(shared) or DASH


def _answers(view: PairView) -> list[audit_facts.QuestionAnswer]:
    """Return the answer over all universes, then those of the questions if there are several."""
    whole, *questions = view.pair.answers
    return [whole, *questions] if len(questions) > 1 else [whole]


def _share(view: PairView, answer: audit_facts.QuestionAnswer, what: str) -> str:
    share = view.share(answer, what)
    return interval_text(share.share, share.lower, share.upper)


def _chance(view: PairView, answer: audit_facts.QuestionAnswer) -> str:
    chance = view.share(answer, "leads").chance
    return DASH if chance is None else f"{int(100 * chance + 1e-6)} %"


def _shapley(row: dict[str, Any]) -> str:
    return interval_text(row["shapley"], row["lower"], row["upper"])
