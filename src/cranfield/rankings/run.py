"""`Run`: the ranked lists of one system, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._files import whole_file
from cranfield._polars import write_csv
from cranfield._record import Step
from cranfield._table import Table
from cranfield.facts import scores as scores_facts
from cranfield.rankings.calibration import Calibration
from cranfield.rankings.lists import ListOrder, Ties, lengths_of, ranks_of_whole
from cranfield.tables import Vocabulary, write_table

ONE_RELEVANT = ("user", "item", "rank", "length")
"""The columns of a table of one-relevant lists; a column ``group`` may follow."""

# Number of lists shown in a notebook, and of items of each.
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Run:
    """The ranked lists of one system, best first, whether it was trained here or read from a file.

    A list belongs to a user. Usually a user has one list; in the one-relevant design (Bellogín et al. 2017) there
    is one for each relevant test item, of which only that item and its rank are kept. Lists that were given by ranks
    may leave places out, whose items are not known.

    Parameters
    ----------
    name
        The system's name.
    user_ids, item_ids
        The vocabularies of the codes below.
    users
        The user code of each list (int32), ascending.
    indptr
        List ``l`` holds the entries ``indptr[l]:indptr[l + 1]`` of the arrays below.
    items
        Item codes in ranked order (int32).
    scores
        The system's scores (float64), or None if only the order is known.
    made_scores
        Whether the scores were derived from ranks, to mark equal ranks, because the system gave only ranks.
    predictions
        Predicted ratings, if the system gives them separately from the scores.
    only_ranks
        Whether the scores are known not to be predicted ratings, for example counts of neighbours.
    calibration
        How predicted ratings were computed from the scores, or how the residuals of a system that predicts ratings were
        measured.
    ranks
        The rank of each entry, from 1; None if the lists are whole, so that the k-th entry has rank k.
    lengths
        The number of items each list ranked, known or not; None if the lists are whole. By default, a list with ranks
        ends with its last one.
    groups, group_names
        The group of each list as an index of ``group_names``; None if the lists are not grouped. In the one-relevant
        design of a split with popularity groups it is the group of the relevant item.
    one_relevant
        Whether each list was made for the one test item that it holds.
    ties
        How items of equal score were ordered: ``"trec_eval"`` (item ids as text, descending), ``"input"`` (input
        order), or ``"average"``: stored in trec_eval's order, and measured in expectation over the orders of each tied
        group.
    draws
        Whether the system uses random numbers, so that another seed gives other lists; False if that is not known.
    made_for
        The users the lists were made for, if the record of their file says that users were left out.
    counts
        Counts from reading, by name: duplicates dropped, NaN scores dropped, ties, ...
    history
        How the run was made.

    Examples
    --------
    >>> import cranfield as cf
    >>> cf.read_run({"user": ["ann", "ann"], "item": ["x", "y"], "rank": [1, 2]}, name="mine")
    Run(mine: 1 lists, 2 items)
    """

    name: str
    user_ids: Vocabulary
    item_ids: Vocabulary
    users: NDArray[np.int32]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    scores: NDArray[np.float64] | None = None
    predictions: NDArray[np.float64] | None = None
    ranks: NDArray[np.int32] | None = None
    lengths: NDArray[np.int32] | None = None
    groups: NDArray[np.int16] | None = None
    group_names: tuple[str, ...] = ()
    one_relevant: bool = False
    made_scores: bool = False
    only_ranks: bool = False
    calibration: Calibration | None = None
    ties: Ties = "trec_eval"
    draws: bool = False
    made_for: scores_facts.ServedUsers | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    history: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if self.ranks is not None and self.lengths is None:
            object.__setattr__(self, "lengths", lengths_of(self.ranks, self.indptr))
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"Run({self.name}: {len(self):,} lists, {len(self.items):,} items)"

    def _repr_html_(self) -> str:
        rows = []
        sizes = self.list_lengths if self.one_relevant else np.diff(self.indptr)
        for place in range(min(_SHOWN, len(self))):
            held = slice(self.indptr[place], min(self.indptr[place + 1], self.indptr[place] + _SHOWN))
            ranks = range(1, _SHOWN + 1) if self.ranks is None else self.ranks[held]
            items = [f"{rank}. {item}" for rank, item in zip(ranks, self.item_ids.ids(self.items[held]))]
            more = int(sizes[place]) - len(items)
            user = f"{self.user_ids.ids(self.users[place : place + 1])[0]}"
            rows.append([user, ", ".join(items) + (f", and {more:,} more" if more else "")])
        notes = [f"and {len(self) - _SHOWN:,} more lists"] if len(self) > _SHOWN else []
        return Table(["user", "list"], rows, repr(self), notes).html()

    @property
    def list_lengths(self) -> NDArray[np.int32]:
        """The number of items each list ranked."""
        return np.diff(self.indptr).astype(np.int32) if self.lengths is None else self.lengths

    @property
    def entry_ranks(self) -> NDArray[np.int32]:
        """The rank of each entry, from 1."""
        return ranks_of_whole(self.indptr) if self.ranks is None else self.ranks

    @property
    def has_gaps(self) -> bool:
        """Whether some lists leave places out, so that not all their items are known."""
        return self.ranks is not None and not self.one_relevant

    def without_gaps(self) -> Run:
        """Return the lists without the places that they leave out."""
        if not self.has_gaps:
            return self
        counts = {
            name: count for name, count in self.counts.items() if name not in ("missing_ranks", "lists_with_gaps")
        }
        return replace(self, ranks=None, lengths=None, counts=counts)

    def refuse_gaps(self, what: str) -> None:
        """Raise an error if some items of the lists are not known; ``what`` needs them."""
        if self.has_gaps:
            raise SettingError(
                f"the ranks of {self.name} leave places out, and {what} needs every item of a list; give whole lists, "
                "or close the gaps with gaps='close'"
            )

    @cached_property
    def n_distinct_items(self) -> int:
        """The number of different items that the lists hold."""
        held = np.zeros(len(self.item_ids), dtype=np.bool_)
        held[self.items] = True
        return int(np.count_nonzero(held))

    @property
    def has_ties(self) -> bool:
        """Whether two items of a list have the same score, or the same rank if there are no scores."""
        if self.scores is None:
            return self.counts.get("tied_items", 0) > 0
        return len(self.tied_starts) - 1 < len(self.scores)

    def ties_across(self, n: int) -> NDArray[np.bool_]:
        """Whether each list has a tie across the cut-off: its n-th and (n + 1)-th items have the same score.

        The sum is the number of such lists, the mean their share. The value of such a list at cut-off ``n`` depends on
        how ties are broken.
        """
        if n < 1:
            raise SettingError(f"the cut-off {n} is not a positive whole number; use 1 or more")
        tied = np.zeros(len(self), dtype=np.bool_)
        if self.scores is None:
            return tied
        if self.ranks is None:
            longer = np.diff(self.indptr) > n
            last = self.indptr[:-1][longer] + n - 1
            tied[longer] = self.scores[last] == self.scores[last + 1]
            return tied
        last = np.flatnonzero(
            (self.ranks[:-1] == n) & (self.ranks[1:] == n + 1) & (self.scores[:-1] == self.scores[1:])
        )
        owner, next_owner = (np.searchsorted(self.indptr, place, side="right") - 1 for place in (last, last + 1))
        tied[owner[owner == next_owner]] = True
        return tied

    def with_ties(self, ties: Ties) -> Run:
        """Return the same lists with items of equal score ordered by another rule; see ``ties``.

        Examples
        --------
        >>> import cranfield as cf
        >>> run = cf.read_run({"ann": {"x": 0.5, "y": 0.5}}, name="mine", ties="input")
        >>> run.frame()["item"].to_list(), run.with_ties("trec_eval").frame()["item"].to_list()
        (['x', 'y'], ['y', 'x'])
        """
        ListOrder(ties)  # refuses a rule that does not exist
        if ties == self.ties:
            return self
        if self.one_relevant:
            raise SettingError(
                f"ties={ties!r} cannot be applied to the run {self.name!r}, which has one-relevant lists: of them only "
                "the rank of an item is known; leave ties=... out"
            )
        if not self.has_ties:
            return replace(self, ties=ties)
        if self.scores is None or ties == "input":
            lost = "which of its items are tied" if self.scores is None else "the order of its tied items in the input"
            raise SettingError(
                f"ties={ties!r} cannot be applied to the run {self.name!r}, since {lost} is not known any more; read "
                f"it with ties={ties!r}, or leave ties=... out"
            )
        if self.ties != "input":  # both other rules store the lists in trec_eval's order
            return replace(self, ties=ties)
        lists = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        order = np.lexsort((-self.item_ids.string_order[self.items], -self.scores, lists))
        predictions = None if self.predictions is None else self.predictions[order]
        return replace(
            self, items=self.items[order], scores=self.scores[order], predictions=predictions, ties=ties
        )  # fmt: skip

    @property
    def tied_starts(self) -> NDArray[np.int64]:
        """The first entry of each group of equal scores in a list, and the end of the last group."""
        assert self.scores is not None
        new = np.ones(len(self.scores) + 1, dtype=np.bool_)
        new[1:-1] = self.scores[1:] != self.scores[:-1]
        new[self.indptr] = True
        return np.flatnonzero(new)

    def frame(self) -> pl.DataFrame:
        """Return the lists with their ids: columns user, item, rank and, where known, score, prediction and group.

        If the system gave equal ranks, and ties are averaged, tied items have the rank of the first of them.
        """
        sizes, ranks = np.diff(self.indptr), self.entry_ranks
        if self.made_scores:
            starts = self.tied_starts
            ranks = np.repeat(ranks[starts[:-1]], np.diff(starts))
        columns: dict[str, Any] = {
            "user": self.user_ids.ids(np.repeat(self.users, sizes)),
            "item": self.item_ids.ids(self.items),
            "rank": ranks.astype(np.int64),
        }
        if self.scores is not None and not self.made_scores:
            columns["score"] = self.scores
        if self.predictions is not None:
            columns["prediction"] = self.predictions
        if self.groups is not None:
            columns["group"] = pl.Series(self.group_names, dtype=pl.String).gather(np.repeat(self.groups, sizes))
        return pl.DataFrame(columns)


def write_run(run: Run, path: str | Path) -> Path:
    """Write a run, in the format of the file's ending.

    Parameters
    ----------
    run
        The lists to write. An empty list is not written; its user is not covered in either case.
    path
        The file, ending in ``.parquet``, ``.csv`` or ``.tsv`` (columns user, item, rank and, if known, score and
        prediction; one-relevant lists have one row per list, with its length; the group of the list if there are
        groups), or in ``.trec`` or ``.run`` (user Q0 item rank score tag, where the tag is the run's name). The file
        appears whole or not at all.

    Notes
    -----
    trec_eval orders a list by its scores alone. So a TREC file of a run without scores has the scores -1, -2, -3, ...,
    and a run whose ranks leave places out cannot be written as one.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.rankings import read_run
    >>> run = read_run({"ann": {"x": 0.5, "y": 0.75}}, name="knn")
    >>> print(write_run(run, Path(tempfile.mkdtemp()) / "knn.run").read_text(), end="")
    ann Q0 y 1 0.75 knn
    ann Q0 x 2 0.5 knn
    """
    path = Path(path)
    trec = path.suffix.lower() in (".trec", ".run")
    if run.ranks is not None and trec:
        raise SettingError(
            f"the lists of {run.name} are incomplete and would be read back as complete ones; write .parquet or .tsv"
        )
    if run.one_relevant:
        columns = ONE_RELEVANT if run.groups is None else (*ONE_RELEVANT, "group")
        return write_table(run.frame().with_columns(length=pl.Series(run.list_lengths)).select(columns), path)
    if not trec:
        return write_table(run.frame(), path)
    frame = run.frame()
    score = -pl.col("rank") if run.scores is None or run.made_scores else pl.col("score")
    for role in ("user", "item"):
        spaced = frame[role].cast(pl.String).str.contains(r"\s")
        if spaced.any():
            raise InputError(
                f"{frame[role][spaced.arg_max() or 0]!r} holds white space, which separates the columns of a TREC run",
                column=role,
                remedy="write .tsv or .parquet instead",
            )
    q0, tag = pl.lit("Q0").alias("q0"), pl.lit("_".join(run.name.split()) or "run").alias("tag")
    table = frame.select("user", q0, "item", "rank", score.alias("score"), tag)
    with whole_file(path) as temporary:
        write_csv(table, temporary, include_header=False, separator=" ", quote_style="never")
    return path
