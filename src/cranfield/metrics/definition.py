"""`Metric`: a name with parameters, a definition, and a value for each list."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield._checks import Limits, flag, one_of
from cranfield._errors import SettingError
from cranfield._own_code import imported, is_ours
from cranfield._registry import Cutoff, Entry, Registry, Spelling, parse
from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values

SHARE = (0.0, 1.0)
"""The lowest and the highest value of a share; see `Definition`."""
F = TypeVar("F", bound=Callable[..., Any])
Need = Literal["predictions", "train", "similarity", "whole lists"]
MetricRole = Literal["accuracy", "value", "guardrail", "description"]
Requirement = Literal[
    "relevant items",
    "non-relevant items",
    "gains",
    "judgments",
    "judged items in the list",
    "items in the list",
    "nothing",
]

_REQUIREMENTS: Mapping[str, Callable[[Judged], NDArray[np.bool_]]] = {
    "relevant items": lambda judged: judged.n_relevant > 0,
    "non-relevant items": lambda judged: judged.n_nonrelevant > 0,
    "gains": lambda judged: judged.judgments.n_judged > 0,  # only the metric knows which judgments have a gain
    "judgments": lambda judged: judged.judgments.n_judged > 0,
    "judged items in the list": lambda judged: judged.total() > 0,
    "items in the list": lambda judged: judged.lengths > 0,
    "nothing": lambda judged: np.ones(judged.n_lists, dtype=np.bool_),
}
"""What a metric can require of a list and its user, and functions that return which lists meet the requirement."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """The sums behind a property of all lists together; `float` returns the property."""

    held: Any  # the sums; those of disjoint lists can be added (``+``)
    value: Callable[[Any], float]  # computes the property from the sums

    def __add__(self, other: Pooled) -> Pooled:
        return Pooled(self.held + other.held, self.value)

    def __float__(self) -> float:
        return float(self.value(self.held))


@dataclass(frozen=True)
class Definition(Entry[Callable[..., Any]]):
    """A registered metric: its function and its properties.

    The function takes the `Judged` lists (already cut, condensed and under the right threshold) and the parameters; it
    returns one value per list, NaN if it is undefined. With ``whole_system`` it returns a single number, or `Pooled`
    that become one: those can be measured on parts of the users.
    """

    cutoff: Cutoff = "optional"
    family: str = "own"  # the page of the documentation with its formula
    # What a list needs for the metric to be defined: ``relevant items`` or ``non-relevant items`` of the user in the
    # test set; ``gains``, a test item with a gain; ``judgments``, any test rating; ``judged items in the list``;
    # ``items in the list``; or ``nothing``. A list without it has the value NaN, whatever the function returns. A
    # metric may also be undefined for other reasons, such as a correlation for equal ratings.
    requires: Requirement = "nothing"
    zero_if_undefined: bool = False  # whether an undefined value may count as 0 in an average, as for gains
    # Whether missing judgments make it uncertain: it has a value if all unjudged items of a list were relevant, and if
    # none were.
    bounds: bool = False
    lower_is_better: bool = False  # as for errors
    # What its values are for: ``accuracy``, how well lists fit what users want; ``value``, what that is worth; a
    # ``guardrail``, which should not get worse; or a ``description``, of which neither more nor less is better. Only
    # accuracy and value have winners: random lists are the most novel and the most diverse ones.
    role: MetricRole = "accuracy"
    needs: tuple[Need, ...] = ()  # besides lists and test ratings
    whole_system: bool = False  # whether it is a property of all lists together, such as catalogue coverage
    averages_ties: bool = False  # whether it has a closed form in expectation over the orders of tied items
    condensed: bool = False  # whether it is defined on condensed lists: its cut-off counts items with a test rating
    between: tuple[float, float] = (-np.inf, np.inf)  # its lowest and highest value; intervals do not leave them
    registered: str = ""  # of a user's own metric: the name that it was registered with, which people see

    common: ClassVar[Mapping[str, Limits]] = {
        # The lowest relevant rating, instead of the threshold of the measurement; see `Metric._at_level`.
        "rel": Limits((float,), finite=False),
        # Whether items without a test rating are removed from the lists first.
        "condensed": Limits((bool,)),
        # The tool whose definition and users are meant: lenskit, rectools, ...
        "dialect": Limits((str,)),
    }

    @property
    def function(self) -> Callable[..., Any]:
        """The function of `Judged` lists."""
        return self.thing

    @property
    def has_winners(self) -> bool:
        """Whether the best system by it may be called best."""
        return self.role in ("accuracy", "value")

    @cached_property
    def takes_cutoff(self) -> bool:
        """Whether the function has a parameter ``cutoff``, for example for its denominator."""
        return "cutoff" in inspect.signature(self.function).parameters


class _Metrics(Registry[Callable[..., Any]]):
    """The registry of metrics, which an installed package may add to by registering them when it is imported."""

    def _add_plugin(self, name: str, thing: Any) -> None:
        definition = _registered(thing)
        if definition is None:
            raise SettingError(
                f"the metric {name!r} of an installed package is not registered; decorate it with @cf.metric"
            )
        self.add(name, thing, **{field.name: getattr(definition, field.name) for field in fields(definition)[3:]})


def _registered(thing: Any) -> Definition | None:
    """Return the definition registered for a function, if any."""
    entries: Iterable[Definition] = METRICS.entries().values()
    return next((definition for definition in entries if definition.thing is thing), None)


def _of_code(name: str) -> Definition:
    """Return the definition of a user's own metric, under the name that was spelled."""
    definition = _registered(imported(name))
    if definition is None or is_ours(definition.function):
        raise SettingError(f"{name} is not a metric of your own; give a function decorated with @cf.metric('name')")
    return replace(definition, name=name, aliases=(), registered=definition.name)


METRICS: Registry[Callable[..., Any]] = _Metrics(
    "metric", Definition, any_case=True, plugins="cranfield.metrics", of_code=_of_code
)
"""The metrics by name; `metric` registers one."""


def metric(
    name: str,
    *,
    family: str = "own",
    aliases: tuple[str, ...] = (),
    requires: Requirement = "nothing",
    zero_if_undefined: bool | None = None,
    bounds: bool | None = None,
    lower_is_better: bool = False,
    whole_system: bool = False,
    replace: bool = False,
    **properties: Any,
) -> Callable[[F], F]:
    """Register a metric; use it as a decorator of a function of `Judged` lists.

    Parameters
    ----------
    name, aliases
        Its name and other names for it; upper and lower case are the same.
    requires
        What a list needs for the metric to be defined: ``"relevant items"``, ``"judgments"``, ... as in `Definition`.
    zero_if_undefined
        Whether an undefined value counts as 0 in averages. The default is True, unless lower is better.
    bounds
        Whether it has bounds from missing judgments; by default if it has a value for each list.
    lower_is_better, whole_system
        Whether a smaller value is the better one, and whether the function returns one number for all lists together.
    replace
        Whether it may replace another metric of that name, including one of cranfield's; otherwise a name that is taken
        is an error. The same function may be registered again, for example when a notebook cell is run twice.
    family, properties
        The other fields of `Definition`.

    Examples
    --------
    The share of users with at least two relevant items in their list:

    >>> import cranfield as cf
    >>> @cf.metric("TwoHits")
    ... def two_hits(judged):
    ...     return judged.n_hits >= 2
    >>> run = {"ann": ["x", "y", "z"], "bob": ["z", "x", "y"]}
    >>> test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "y"])
    >>> cf.measure({"mine": run}, test, ["TwoHits@2"]).frame()["mean"].to_list()
    [0.5]
    """
    METRICS.check_name(name)
    one_of("requires", requires, _REQUIREMENTS)
    zero = not lower_is_better if zero_if_undefined is None else flag("zero_if_undefined", zero_if_undefined)
    bounded = not whole_system if bounds is None else flag("bounds", bounds)
    if bounded and whole_system:
        raise SettingError(f"{name} has one value for all lists, so it has no bounds; leave bounds=True out")

    def register(function: F) -> F:
        cutoff = inspect.signature(function).parameters.get("cutoff")
        needed = cutoff is not None and cutoff.default is inspect.Parameter.empty
        METRICS.add(
            name,
            function,
            aliases=aliases,
            replace=replace,
            family=family,
            requires=requires,
            zero_if_undefined=zero,
            bounds=bounded,
            lower_is_better=lower_is_better,
            whole_system=whole_system,
            **{"cutoff": "required" if needed else "optional", **properties},
        )
        return function

    return register


@dataclass(frozen=True)
class Metric:
    """A metric with its parameters and cut-off; its text is its name and its key.

    Examples
    --------
    >>> Metric.of("ndcg(gain=exp)@100")
    Metric(nDCG(gain=exp)@100)
    >>> Metric.of("Precison@10")
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: there is no metric 'Precison'; did you mean 'Precision'?
    """

    definition: Definition
    parameters: tuple[tuple[str, Any], ...] = ()
    cutoff: int | None = None

    @classmethod
    def of(cls, spelling: str | Metric) -> Metric:
        """Parse the spelling of a metric: ``P@10``, ``nDCG(gain=exp)@100``, ``RBP(p=0.8)``."""
        if isinstance(spelling, Metric):
            return spelling
        load_metrics()
        parsed = parse(spelling)
        definition: Definition = METRICS.find(parsed.name)
        tool, called = dict(parsed.parameters).get("dialect"), definition.name
        if tool is not None:
            from cranfield.metrics.dialects import dialect

            definition, called = dialect(called, tool).definition, f"{called}(dialect={tool})"
        definition.read(parsed, called=called)
        return cls(definition, parsed.parameters, parsed.cutoff)

    def __str__(self) -> str:
        return str(Spelling(self.definition.name, self.parameters, self.cutoff))

    def __repr__(self) -> str:
        return f"Metric({self})"

    @property
    def zero_if_undefined(self) -> bool:
        """Whether an undefined value may count as 0: only for gains, which are 0 for an empty list.

        A dialect is undefined for the lists that its tool leaves out.
        """
        return self.definition.zero_if_undefined

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value is the better one."""
        return self.definition.lower_is_better

    @property
    def dialect(self) -> str | None:
        """The tool whose definition this is; its values are NaN for lists that the tool leaves out."""
        return dict(self.parameters).get("dialect")

    def __call__(self, judged: Judged) -> Any:
        """Return the metric's value for each list (or one number, for a property of the whole system)."""
        if judged.draw is not None:
            from cranfield.metrics.over_draws import expected

            return expected(self, judged)
        judged, values = self._returned(judged)
        if self.definition.whole_system:
            return float(values)
        per_list = self._checked(values, judged.n_lists)
        # If unrated items are given a rating, every item of a list is judged.
        requires = self.definition.requires if dict(self.parameters).get("unrated") is None else "items in the list"
        return np.where(_REQUIREMENTS[requires](judged), per_list, np.nan)

    def sums(self, judged: Judged) -> Pooled:
        """Return the sums of a property of the whole system over the lists of some of the users."""
        sums = self._returned(judged)[1]
        if not isinstance(sums, Pooled):
            judged.judgments.need_all_users(str(self))
            raise SettingError(f"{self} is not computed from sums over lists")
        return sums

    def _returned(self, judged: Judged) -> tuple[Judged, Any]:
        """Return the lists as the metric sees them, and the values of its function."""
        parameters = {key: value for key, value in self.parameters if key != "dialect"}
        # A rating for unrated items only makes sense on full lists.
        usual = self.definition.condensed and parameters.get("unrated") is None
        rel, condensed = parameters.pop("rel", None), parameters.pop("condensed", usual)
        if rel is not None:
            judged = self._at_level(judged, float(rel), condensed)
        if condensed:
            judged = judged.condensed()
        if self.cutoff is not None:
            judged = judged.cut(self.cutoff)
        if not self.definition.averages_ties:
            judged = judged.with_ties_broken()
        if self.definition.takes_cutoff:
            parameters["cutoff"] = self.cutoff
        return judged, self._computed(judged, parameters)

    def _at_level(self, judged: Judged, level: float, condensed: bool) -> Judged:
        """Return the lists at a level of relevance, with the family's treatment of items below it.

        Errors and agreement only use items of the level, and in a graded metric the gain of the others is 0.
        """
        if self.dialect is None and self.definition.family == "graded":
            return judged.gaining_from(level)
        if self.definition.family not in ("error", "agreement"):
            return judged.at(level)
        if not (condensed or judged.is_condensed):
            raise SettingError(f"{self}: rel looks only at items rated {level:g} or more; leave out rel or unrated")
        return judged.rated_from(level)

    def _computed(self, judged: Judged, parameters: Mapping[str, Any]) -> Any:
        """Call the function; an overflow is an error, never a NaN that would be read as undefined."""
        if not is_ours(self.definition.function):
            return self._own_computed(judged, parameters)
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                values = self.definition.function(judged, **parameters)
                # Some kinds of `Pooled` overflow silently.
                infinite = np.isinf(float(values) if isinstance(values, Pooled) else values).any()
        except (FloatingPointError, OverflowError) as error:
            raise self._overflow(judged) from error
        if infinite:
            raise self._overflow(judged)
        return values

    def _own_computed(self, judged: Judged, parameters: Mapping[str, Any]) -> Any:
        """Call a user's own function, in which 0/0 may mean undefined, but an overflow is an error."""
        overflows: list[str] = []
        with np.errstate(over="call", call=lambda kind, _: overflows.append(kind)):
            values = self.definition.function(judged, **parameters)
        if overflows and np.asarray(values).dtype.kind == "f" and np.isnan(values).any():
            raise self._overflow(judged)
        return values

    def _overflow(self, judged: Judged) -> SettingError:
        return SettingError(
            f"{self} exceeds the largest number that can be represented, for test ratings up to "
            f"{judged.judgments.top_grade:,.15g}; use a normalised metric such as nDCG, or ratings on a shorter scale"
        )

    def _checked(self, values: Any, n_lists: int) -> Values:
        """Return the values as an array with one number per list, or raise an error."""
        array = np.asarray(values)
        if array.shape != (n_lists,) or array.dtype.kind not in "biuf":
            raise SettingError(
                f"{self} returned {array.dtype} of shape {array.shape} for {n_lists:,} lists; return a number for each "
                "list, or register it with whole_system=True"
            )
        return array.astype(np.float64, copy=False)


def load_metrics() -> None:
    """Import the modules that register the metrics."""
    import cranfield.metrics  # noqa: F401
