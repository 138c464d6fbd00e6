"""What a verdict says if some users have no list: how many each system serves, and the result among those all serve."""

from __future__ import annotations

from dataclasses import replace

from cranfield._phrases import listed
from cranfield.comparisons.comparison import Comparison
from cranfield.measures import Scores
from cranfield.metrics import all_systems


def shortfall_sentences(scores: Scores, common: Comparison | None) -> tuple[str, ...]:
    """Return the sentences; ``common`` is the comparison over the users that every system serves, if there are any.

    Averages over all users mix how good lists are with how many users have one. The comparison among the users that all
    systems serve has its own averages and its own test.
    """
    served, lists = scores.n_covered, scores.n_lists
    # With folds, or with one list for each relevant item, some of a user's lists may be missing.
    all_of_them = "the users" if lists == scores.n_users else "the lists"
    if scores.serve_alike:
        systems = "Both" if len(scores.systems) == 2 else "All"
        who = f"{systems} systems serve the same {_share(served[0], lists)} of {all_of_them}"
    else:
        by_count: dict[int, list[str]] = {}
        for name, count in zip(scores.systems, served.tolist()):
            if count < lists:
                by_count.setdefault(count, []).append(name)
        parts = [
            f"{listed(names)} {'serves' if len(names) == 1 else 'serve'} {_share(count, lists)}"
            for count, names in by_count.items()
        ]
        who = f"{listed(parts)} of {all_of_them}"
    who = f"{who}, and a user without a list counts as an empty list"
    if common is None:
        return (f"{who}; there is no user that {all_systems(len(scores.systems))} serve.",)
    among = f"among the {common.population.removeprefix('over the ')}"
    nothing = common.nothing_relevant
    findings = replace(common, population="", trained_once=(), repetitions=1, spread=(), warnings=(), shortfall=())
    first, *others = findings.sentences(most=1)
    # If nothing is relevant, the verdict over all users already says so.
    others = [sentence for sentence in others if not nothing or not sentence.endswith(f"{nothing}.")]
    return (f"{who}; {among}: {first}", *(f"{among.capitalize()}: {sentence}" for sentence in others))


def _share(count: int, total: int) -> str:
    """Return a share in percent; 0 and 100 only if they are exact.

    Examples
    --------
    >>> _share(36, 100), _share(1, 3000), _share(2999, 3000)
    ('36 %', '0.03 %', '99.97 %')
    """
    percent = 100 * count / total
    digits = next((n for n in range(4) if 0 < round(percent, n) < 100), 4) if 0 < count < total else 0
    return f"{percent:.{digits}f} %"
