"""Presets: experiments with the decisions of a paper, to start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cranfield.experiments.decisions import Decisions
from cranfield.experiments.experiment import Experiment, System


@dataclass(frozen=True)
class Preset:
    """An experiment to start from, a line about it, and the comment at the top of its file."""

    experiment: Experiment
    summary: str
    about: str

    @property
    def head(self) -> str:
        """The comment: the decisions, and that the ratings are not those of the paper."""
        return f"{self.about}\n# The paper used other ratings: put your copy in place of the simulated world below."


def _preset(title: str, about: str, systems: Mapping[str, str], decisions: Decisions, **assess: object) -> Preset:
    named = tuple(System(name, spelling) for name, spelling in systems.items())
    experiment = Experiment(title=title, decisions=decisions, systems=named, assess=assess or None)
    return Preset(experiment, title[0].lower() + title[1:], about)


_RANKERS = (
    "random", "popularity", "chi2", "kld", "rsv", "rm1", "rm2", "lm-wsr-ub", "lm-wsr-ib", "nncosngbr-ub",
    "nncosngbr-ib", "slim", "ht", "svd", "puresvd", "bprmf", "wrmf", "lda", "plsa", "uir",
)  # fmt: skip
"""The systems of Valcarce et al.; ``rw`` is left out, because it ranks as ``rsv`` does."""

_SEVEN = tuple(f"{name}@100" for name in ("P", "Recall", "AP", "nDCG", "RR", "bpref", "infAP"))
_NINE = (*_SEVEN[:2], "F1@100", *_SEVEN[2:5], "ERR@100", *_SEVEN[5:])

PRESETS: Mapping[str, Preset] = {
    "canamares2020": _preset(
        "The starting configuration of Cañamares, Castells and Moffat (2020)",
        "These are the decisions of the starting configuration of that paper (section 4): half of the ratings for\n"
        "# training, users without training ratings removed, binary gains from 4, Student's paired t-test.",
        {"kNN": "knn(k=100)", "MF": "wrmf(factors=50, alpha=1, regularization=0.1, target=rating, binary=false)"},
        Decisions(
            split="random(train=0.5)",
            min_ratings=1,
            metrics=("P@10", "nDCG(gain=binary)@10"),
            threshold=4,
            significance="student",
            correction="none",
        ),
    ),
    "valcarce2018": _preset(
        "Which metric can be trusted, as in Valcarce, Bellogín, Parapar and Castells (2018)",
        "Seven metrics at cut-offs from 5 to 100, with fewer test ratings and without popular items; 80 % of each\n"
        "# profile for training, lists of 100 of the items with test ratings, a threshold of 4.",
        {name: name for name in _RANKERS},
        Decisions(split="per_user(train=0.8)", candidates="test", metrics=_SEVEN, threshold=4),
        scenarios=["ratings", "popular"],
        cutoffs=[5, *range(10, 101, 10)],
    ),
    "valcarce2020": _preset(
        "Which metric can be trusted, as in Valcarce, Bellogín, Parapar and Castells (2020)",
        "Nine metrics at 100 under arithmetic and geometric means, with five kinds of missing judgments; five folds,\n"
        "# lists of 100 of the items with test ratings, a threshold of 4.",
        {name: name for name in _RANKERS},
        Decisions(split="k_fold(k=5)", candidates="test", metrics=_NINE, threshold=4),
        averages=["mean", "geometric"],
    ),
    "bellogin2017": _preset(
        "One relevant item per list (1R), as in Bellogín, Castells and Cantador (2017)",
        "Each relevant item among 99 items with a test rating that are not relevant (TI-NN), in expectation over the\n"
        "# draw and averaged over lists, as in equation 1; five folds, a threshold of 5. For P1R, U1R and UAR use\n"
        "# cranfield bias.",
        {name: name for name in ("plsa", "svd", "wrmf", "knn", "popularity", "random")},
        Decisions(
            split="k_fold(k=5)",
            candidates="test",
            relevant="one",
            nonrelevant=99,
            draws="exact",
            length="all",
            metrics=("P@10", "nDCG@10"),
            threshold=5,
            average="weighted(by=relevant)",
        ),
    ),
    "aftab2022": _preset(
        "Errors by rank, as in Aftab and Ramampiaro (2022)",
        "AP, nDCG and SDCSE of the first ten rated items; 70 % of the ratings for training, and scores that are not\n"
        "# ratings are calibrated. The paper's other models, neumf and lc-nn, need pip install 'cranfield[neural]'.",
        {"MF": "svd", "BPR-MF": "bprmf(factors=50, epochs=100)", "item mean": "average"},
        Decisions(
            split="random(train=0.7, validation=0.1)",
            lists="condensed",
            length="all",
            calibration="isotonic",
            metrics=("AP@10", "nDCG@10", "SDCSE@10", "RMSE@10"),
        ),
    ),
}
"""The presets by name."""
