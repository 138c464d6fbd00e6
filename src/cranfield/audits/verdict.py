"""The verdict of an audit, in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield._numbers import listed
from cranfield.audits.chance import SeedNoise
from cranfield.audits.flips import Flip
from cranfield.audits.grid import Grid
from cranfield.audits.menu import menu_text, question_text
from cranfield.audits.pair import PairAudit, QuestionAnswer, question_of
from cranfield.audits.shares import LeadShare
from cranfield.audits.wording import interval_text, share_text
from cranfield.facts import p_text

NOT_A_PROBABILITY = (
    "A share of universes is not a probability: it is a property of the options that were opened, and other options "
    "give another share."
)

# If there are more, only their number is given.
_MOST_NAMED = 4
# Smaller shares of the variance are not named.
_LEAST_NAMED = 0.005


def verdict(grid: Grid, pair: PairAudit, noise: Sequence[SeedNoise] = (), alpha: float = 0.05) -> list[str]:
    """Return the sentences: the starting point, agreement, all universes, what changes the winner, what explains it."""
    sentences = [_starting(grid, pair)]
    if grid.n_cells == 1:
        return [*sentences, f"There is one cell, {menu_text(grid)}: nothing can be said about other decisions."]
    own_question = question_of(grid, grid.start)
    # With a single question, its universes are all universes, which the next sentence covers.
    if len(pair.answers) > 2:
        sentences.append(_agreement(pair, pair.answer(own_question)))
    sentences.append(_shares(grid, pair, pair.answer()))
    sentences += [_joint(pair.answer(), alpha), NOT_A_PROBABILITY, _questions(pair)]
    sentences += [_flips(pair), _stays(pair), _influence(grid, pair), _rule(pair), _retraining(grid, pair, noise)]
    return [sentence for sentence in sentences if sentence]


def _leader(pair: PairAudit) -> tuple[str, str, int]:
    """Return the leading and the trailing system under the starting point, and the sign of the lead."""
    first, second = pair.systems
    return (second, first, -1) if pair.flips.lead < 0 else (first, second, 1)


def _starting(grid: Grid, pair: PairAudit) -> str:
    universe = grid.universe[grid.start]
    first, second, _ = _leader(pair)
    numbers = (
        f"difference {abs(pair.leads.difference[universe]):.4f}, d_z {abs(pair.leads.d_z[universe]):.3f}, "
        f"p {_p(pair.leads.p[universe])} by a single t-test over users"
    )
    if pair.flips.lead == 0:
        return f"Under the starting point {first} and {second} are equal."
    how = "leads" if pair.flips.significant else "leads, though not significantly,"
    return f"Under the starting point {first} {how} {second} ({numbers})."


def _agreement(pair: PairAudit, answer: QuestionAnswer) -> str:
    first, _, sign = _leader(pair)
    share = answer.share("leads" if sign > 0 else "trails")
    significant = answer.share("leads significantly" if sign > 0 else "trails significantly")
    if answer.universes == 1:
        return f"The same question ({question_text(answer.question)}) has no other universe."
    return (
        f"Of the {answer.universes:,} universes of the same question ({question_text(answer.question)}), {first} "
        f"leads in {_with_interval(share)} and significantly in {share_text(significant.share)}{_chance(share)}"
        f"{_joint_of_question(answer)}."
    )


def _joint_of_question(answer: QuestionAnswer) -> str:
    p = answer.relied_on
    return f". Their {_test_of(answer)}: median z, p {_p(p['median'])}; either way, p {_p(p['either'])}" if p else ""


def _test_of(answer: QuestionAnswer) -> str:
    return "joint test with the spread of seeds" if answer.corrected_retrained else "joint test"


def _shares(grid: Grid, pair: PairAudit, answer: QuestionAnswer) -> str:
    first, second, sign = _leader(pair)
    leads, trails = (answer.share(what) for what in (("leads", "trails") if sign > 0 else ("trails", "leads")))
    cells = f"{grid.n_cells:,} cells" + ("" if grid.complete else ", a sample,")
    equal = answer.share("equal").share
    if equal == 1:
        return f"In all {cells} that cross {menu_text(grid)}, they are equal."
    level = f"; they are equal in {share_text(equal)}" if equal else ""
    distinct = answer.share(leads.what, "universes")
    return (
        f"Of the {cells} that cross {menu_text(grid)}, {first} leads in {_with_interval(leads)} and {second} in "
        f"{share_text(trails.share)}{level} (of the {answer.universes:,} distinct universes, {first} in "
        f"{share_text(distinct.share)}){_chance(leads)}."
    )


def _with_interval(share: LeadShare) -> str:
    return interval_text(share.share, share.lower, share.upper)


def _chance(share: LeadShare) -> str:
    if share.chance is None:
        return ""
    if share.chance > 1 - 1e-6:
        return "; if they were equally good, one of them would lead in all of them in 5 % of cases or more"
    least = int(100 * share.chance)
    return f"; if they were equally good, one of them would lead in {least} % or more in 5 % of cases"


def _joint(answer: QuestionAnswer, alpha: float) -> str:
    if answer.joint is None:
        return ""
    joint, p = answer.joint, answer.relied_on
    sentence = (
        f"In {share_text(joint.observed['either'])} of the universes one is significantly better, one way or the other "
        f"(without any difference {share_text(joint.expected['either'])} on average, and "
        f"{share_text(joint.often['either of universes'])} or more in 5 % of cases; {_test_of(answer)}, "
        f"p {_p(p['either'])}"
    )
    if p["either"] < alpha <= p["median"]:
        return (
            f"{sentence}), yet neither leads overall (median z, p {_p(p['median'])}; net share, p {_p(p['net'])}): "
            "the decisions change the winner."
        )
    if p["either"] < alpha:
        return f"{sentence}; median z, p {_p(p['median'])}). That they differ somewhere does not say who leads."
    if p["median"] < alpha:
        return f"{sentence}). The median of all z does show that they differ (p {_p(p['median'])})."
    if p["largest"] < alpha:
        return (
            f"{sentence}). Only the largest of all differences shows that they differ (max |z|, p {_p(p['largest'])})."
        )
    return f"{sentence}). Together the universes do not show that the systems differ."


def _questions(pair: PairAudit) -> str:
    """Return which system leads by question, if there are several."""
    answers = [answer for answer in pair.answers if answer.question]
    if len(answers) < 2:
        return ""
    first, second = pair.systems
    led: dict[str, list[str]] = {first: [], second: []}
    undecided = []
    for answer in answers:
        leads, trails = answer.share("leads").share, answer.share("trails").share
        text = f"{question_text(answer.question)} ({share_text(max(leads, trails))})"
        if leads == trails:
            undecided.append(text)
        else:
            led[first if leads > trails else second].append(text)
    parts = [f"{system} leads more often with {_named(texts)}" for system, texts in led.items() if texts]
    parts += [f"neither with {_named(undecided)}"] if undecided else []
    return f"Question by question: {'; '.join(parts)}."


def _flips(pair: PairAudit) -> str:
    flips = pair.flips
    if flips.lead == 0 or not flips.singles:
        return ""
    n = len(flips.singles)
    here = f" here (of {flips.possible} possible ones)" if n < flips.possible else ""
    changes = f"the {n} single changes{here}"
    if any(flip.turns_winner for flip in flips.singles):
        turning = f": {_changes(flips.turning)}" if n == 1 else f". Of {changes} these do: {_changes(flips.turning)}"
        return f"One decision is enough to change the winner{turning}."
    none = f"The single change{here} does not change" if n == 1 else f"None of {changes} changes"
    if flips.pairs:
        return f"{none} the winner; two decisions together do: {_changes(flips.pairs)}."
    return f"{none} the winner, nor do two decisions together."


def _changes(flips: Sequence[Flip]) -> str:
    # The largest effects come first: they are the most certain.
    ordered = sorted(flips, key=lambda flip: -abs(flip.d_z))
    texts = []
    for flip in ordered:
        question = "another question, " if any(swap.kind == "question" for swap in flip.swaps) else ""
        texts.append(f"{' with '.join(map(str, flip.swaps))} ({question}p {_p(flip.p)})")
    return _named(texts)


def _stays(pair: PairAudit) -> str:
    flips, (first, _, _) = pair.flips, _leader(pair)
    if flips.lead == 0 or not flips.singles:
        return ""
    n, kept = len(flips.singles), [flip for flip in flips.singles if flip.lead == flips.lead]
    if not kept:
        return f"{first} does not keep the lead under any single change."
    significant = sum(flip.significant for flip in kept)
    changes = "the single change" if n == 1 else f"{'all' if len(kept) == n else len(kept)} of the {n} single changes"
    text = f"Under {changes} {first} still leads"
    text += ", always significantly" if significant == len(kept) else f", significantly in {significant}"
    turned = flips.turning_significance
    if turned:
        what = "lose" if flips.significant else "gain"
        return f"{text}; {len(turned)} {what}{'s' if len(turned) == 1 else ''} significance: {_changes(turned)}."
    return f"{text}."


def _influence(grid: Grid, pair: PairAudit) -> str:
    rows = [row for row in pair.influence if row["with_decision"] is None and row["answer"] == "d_z"]
    decided = sorted((row for row in rows if row["kind"] != "chance"), key=lambda row: -row["shapley"])
    decided = [row for row in decided if row["variance"] and row["shapley"] >= _LEAST_NAMED]
    if not decided:
        return ""
    texts = [
        f"{row['decision']} ({share_text(row['shapley'])} [{share_text(row['lower'])}, {share_text(row['upper'])}])"
        for row in decided[:3]
    ]
    chance = sum(row["shapley"] for row in rows if row["kind"] == "chance")
    floor = f"; chance has {share_text(chance)}" if grid.of_kind("chance") else ""
    rest = f"; {share_text(rows[0]['rest'])} is not explained" if rows[0]["method"] == "least squares" else ""
    return f"Largest shares of the variance of the effect size over the cells: {listed(texts)}{floor}{rest}."


def _rule(pair: PairAudit) -> str:
    rule, (first, second) = pair.rule, pair.systems
    if not rule.majority:
        return ""
    lead = -1 if pair.flips.lead >= 0 else 1
    other, leader = (second, first) if lead < 0 else (first, second)
    majority = f"always naming the same one is right for {share_text(rule.majority)}"
    if not rule.n_conditions:
        return f"No rule of three conditions predicts better when {other} leads: {majority}."
    paths = rule.paths(lead)
    if not paths:
        return f"The rule of three conditions never names {other}: {majority}."
    where = "; or ".join(" and ".join(path) for path in paths)
    return (
        f"{other} leads if: {where}; otherwise {leader}. This is right for {share_text(rule.accuracy)} of the "
        f"cells, and {majority}."
    )


def _retraining(grid: Grid, pair: PairAudit, noise: Sequence[SeedNoise]) -> str:
    """Return a sentence on the effect of seeds, or that it is unknown."""
    if not grid.of_kind("chance"):
        return (
            "No seed was opened, so all of this holds for these trained models: two training runs of the same "
            "algorithm can differ significantly too. training_seed and split_seed in an experiment file show how often "
            "they do."
        )
    own = [
        f"{each.system} differs significantly from itself in {share_text(each.significant)} of {each.pairs:,} pairs "
        f"that differ in {each.decision} alone"
        for each in noise
        if each.system in pair.systems
    ]
    own.append(f"chance alone changes the winner in {share_text(pair.turned_by_chance)} of the set-ups")
    p = pair.answer().corrected
    if p:
        own.append(
            f"without the spread of seeds, that is for these trained models alone, the joint test has p "
            f"{_p(p['either'])} (median z, p {_p(p['median'])})"
        )
    return f"Effect of retraining: {'; '.join(own)}."


def _named(texts: Sequence[str]) -> str:
    if len(texts) <= _MOST_NAMED:
        return listed(list(texts))
    return f"{', '.join(texts[:_MOST_NAMED])} and {len(texts) - _MOST_NAMED} more"


def _p(p: float) -> str:
    text = p_text(p)
    return text if text.startswith("<") else f"= {text}"
