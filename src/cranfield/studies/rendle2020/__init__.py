"""Rendle et al. (2020): neural collaborative filtering against matrix factorisation, on its own benchmark.

Neural collaborative filtering vs. matrix factorization revisited. RecSys 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.recommenders import displayed_name, recommender
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, differing, recognised
from cranfield.studies.rendle2020 import work
from cranfield.studies.rendle2020.claims import claims_of
from cranfield.studies.rendle2020.exhibits import exhibits_of
from cranfield.studies.rendle2020.work import NcfBenchmark, NcfNumbers, NcfWork, Trained, of_size, read_negatives

_SEEDS = 3
_SEVERAL_SEEDS, _PRETRAINED = 8, 64  # factors


def trainings(seed: int, epochs: int | None = None) -> list[Trained]:
    """Return the systems to train: MF and NeuMF with 8 factors with three seeds, all others with one.

    The settings are the published ones: for SLIM and the older iALS those of Ferrari Dacrema et al. (2019) as listed by
    Anelli et al. (2021), for MF and the newer iALS those in the authors' programs. A rating counts 1, as in the paper.

    - SLIM: an elastic net with α = 0.0788 and ratio ρ = 0.0000119 over n = 6,040 users: λ = n α ρ, β = n α (1 − ρ).
    - iALS, 46 factors: a confidence of 1 + 50 ln(1 + 1/10) for rated items.
    - NeuMF, 64 factors: two layers and pretraining, as in Ferrari Dacrema et al. Epochs of both halves together made it
      worse on a held-out item of each user, so there are none.

    ``epochs`` replaces the 256 epochs of MF, and the 20 of NeuMF (with 64 factors, 12).
    """
    others = {
        work.POPULARITY: "popularity",
        work.ITEM_KNN: "itemknn(binary=true)",
        work.SLIM: "slim(binary=true, l1=0.00566, l2=475.9, neighbours=544)",
        **{f"{work.EASE}, λ = {ridge}": f"ease(l2={ridge})" for ridge in work.RIDGES},
        work.IALS_2019: "wrmf(factors=46, alpha=4.766, regularization=0.00001, iterations=20, steps=10)",
        work.IALS_2022: "ials(factors=192, epochs=12, unobserved=0.3, regularization=0.007)",
    }
    wanted = [Trained(row, spelling, seed) for row, spelling in others.items()]
    mf = "mf-pointwise(factors={}, epochs={}, negatives=8, others=all, rate=0.002, regularization=0.005)"
    neumf = "neumf(factors={}, epochs={}, negatives=4, batch=256)"
    pretrained = "neumf(factors={}, epochs={}, negatives=4, batch=1024, depth=2, pretraining=12)"
    for kind, sizes in work.SIZES.items():
        for factors in sizes:
            network = (pretrained, 12) if factors == _PRETRAINED else (neumf, 20)
            spelling, usual = (mf, 256) if kind == work.MF else network
            spelled = spelling.format(factors, usual if epochs is None else epochs)
            seeds = _SEEDS if factors == _SEVERAL_SEEDS else 1
            wanted += [Trained(of_size(kind, factors), spelled, seed + extra) for extra in range(seeds)]
    return wanted


def _given(systems: Sequence[str], seed: int) -> list[Trained]:
    """Return the given systems to train instead of the paper's; a system of the paper keeps the name of its row."""
    rows = {trained.spelling: trained.row for trained in trainings(seed)}
    wanted = []
    for system in systems:
        recommender(system)
        wanted.append(Trained(rows.get(system, displayed_name(system)), system, seed))
    return wanted


def _plan(
    data: Sequence[Ratings],
    *,
    seed: int,
    negatives: Any,
    epochs: int | None,
    systems: Sequence[str] | None,
) -> Callable[[StudyFiles], StudyResults]:
    if negatives is None:
        raise SettingError(
            "rendle2020 needs the test item of each user and the items that it is ranked among; give negatives "
            "with the columns user, item and negatives"
        )
    wanted = trainings(seed, epochs) if systems is None else _given(systems, seed)
    if len({trained.row for trained in wanted}) < 2:
        raise SettingError("a study compares systems; give at least two")
    benchmark = NcfBenchmark.of(data[0], read_negatives(negatives))

    def results(files: StudyFiles) -> StudyResults:
        """Train, rank and measure, under both protocols."""
        runs, failed = NcfWork(files.store, benchmark).runs(wanted)
        numbers = NcfNumbers(benchmark, runs, failed, recognised(data[0]), epochs)
        settings = {
            "systems": [f"{trained.row} = {trained.spelling}, seed {trained.seed}" for trained in runs],
            "not run": [f"{row} ({why})" for row, why in failed.items()] or "none",
            "test": "the published item of each user",
            "sampled": "ranked among the published negatives",
            "full": "ranked among all items that the user has not rated in training",
            "seed": seed,
            "differs from the paper": differing(
                {"SLIM and iALS": "settings of Anelli et al. (2021)", "NeuMF, 64 factors": "no joint epochs",
                 "epochs": epochs or "as in the paper"},
                {"SLIM and iALS": "not given", "NeuMF, 64 factors": "pretrained, then joint",
                 "epochs": "as in the paper"},
            ),
        }  # fmt: skip
        return StudyResults(exhibits_of(numbers), claims_of(numbers), settings)

    return results


RENDLE_2020 = Study(
    "rendle2020",
    "Steffen Rendle, Walid Krichene, Li Zhang, John Anderson: Neural Collaborative Filtering vs. Matrix "
    "Factorization Revisited. RecSys 2020.",
    ("negatives", "epochs", "systems"),
    _plan,
    takes_threshold=False,
    threshold=None,
)
