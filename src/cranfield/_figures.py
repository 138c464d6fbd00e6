"""What all figures share: colours, fonts and sizes of the two styles, and how they are saved and put on pages.

A figure is one Altair chart, from which the page, SVG, PDF and PNG are drawn without a browser. Altair and vl-convert
are imported only when a figure is drawn.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks, _drawing, _fonts
from cranfield._errors import CranfieldError, MissingExtraError, SettingError
from cranfield._files import cache_root, whole_file
from cranfield._terminal import shown

P = ParamSpec("P")
Style = Literal["screen", "paper"]
STYLES: tuple[Style, ...] = ("screen", "paper")

INK, MUTED, RULE = "#1c2430", "#5c6675", "#dfe3e8"
"""Colours of text, of less important text, and of thin lines."""

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
"""Colours that people with any colour vision can tell apart (Okabe and Ito 2008; yellow is too pale for lines).

In dark mode, the page's style sheet replaces each of them with a lighter one.
"""

ACCENT, WARN = PALETTE[:2]
_SHADES = ((0x8E, 0x00), (0xC5, 0x5A), (0xEA, 0x92))  # red, green and blue of the lightest and the darkest shade
_DASHES = ([1, 0], [6, 3], [1.5, 2.5], [8, 3, 1.5, 3])
_SHAPES = ("circle", "square", "triangle-up", "diamond")

# Properties of every JavaScript object, which Vega would find instead of data; a zero-width character tells them apart.
_JAVASCRIPT = frozenset(
    ["constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
     "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"]
)  # fmt: skip
_NO_WIDTH = "\u2060"

_MARKED = re.compile(r'<(?:linearGradient|radialGradient|clipPath) id="([^"]+)"')

# A column of a paper is 3.3 inches wide, and a drawing has 96 units per inch. "step" is the height of a row, "panel"
# the size of a small chart, and "name" the maximum width of a name: about 50 letters.
_LOOKS: Mapping[str, Mapping[str, Any]] = {
    "screen": {
        "width": 560, "font": _fonts.SANS, "size": 13, "step": 26, "panel": (270, 200), "name": 312,
    },
    "paper": {
        "width": 230, "font": _fonts.SERIF, "size": 10, "step": 15, "panel": (190, 125), "name": 240,
    },
}  # fmt: skip


def look(style: str) -> Mapping[str, Any]:
    """Return the sizes and the font of a style."""
    return _LOOKS[_checks.one_of("style", style, STYLES)]


def series(
    column: str, names: Sequence[str], *, mark: Literal["line", "point"] = "line", ordered: bool = False
) -> dict[str, Any]:
    """Return the encodings that tell named series apart: colours and, for more than seven, dashes or shapes too.

    Things in an order, such as cut-offs, get shades of one colour from light to dark.
    """
    alt = altair()
    if ordered:
        shades = alt.Scale(domain=list(names), range=[_shade(k / max(len(names) - 1, 1)) for k in range(len(names))])
        return {"color": alt.Color(f"{column}:N", title=None, scale=shades)}
    n = len(PALETTE)
    # With the same title and domain and no legend of their own, Vega-Lite draws one legend for all of them.
    colours = alt.Scale(domain=list(names), range=[PALETTE[k % n] for k in range(len(names))])
    legend = alt.Legend(symbolOpacity=1.0, symbolType="stroke" if mark == "line" else "circle")
    encodings = {"color": alt.Color(f"{column}:N", title=None, scale=colours, legend=legend)}
    if len(names) > n:
        ways = _DASHES if mark == "line" else _SHAPES
        scale = alt.Scale(domain=list(names), range=[ways[k // n % len(ways)] for k in range(len(names))])
        channel, kind = ("strokeDash", alt.StrokeDash) if mark == "line" else ("shape", alt.Shape)
        encodings[channel] = kind(f"{column}:N", title=None, scale=scale)
    return encodings


def _shade(depth: float) -> str:
    """Return a shade of blue from light (0) to dark (1)."""
    return "#" + "".join(f"{round(light + depth * (dark - light)):02x}" for light, dark in _SHADES)


def data_of(rows: pl.DataFrame | Sequence[Mapping[str, Any]]) -> Any:
    """Return a frame, with NaN as null and seven digits, or a list of rows as the data of a chart."""
    if isinstance(rows, pl.DataFrame):
        rows = rows.with_columns(pl.selectors.float().fill_nan(None).round_sig_figs(7)).to_dicts()
    # Altair deep-copies a list at each step of making a chart, but never a tuple.
    return altair().Data(values=tuple(rows))


def tips(**fields: str | tuple[str, str]) -> list[Any]:
    """Return the tooltip of a mark: a title for each field, with a format for numbers."""
    alt = altair()
    return [
        alt.Tooltip(f"{field}:N", title=title)
        if isinstance(title, str)
        else alt.Tooltip(f"{field}:Q", title=title[0], format=title[1])
        for field, title in fields.items()
    ]


def themed(chart: Any, style: Style = "screen") -> Any:
    """Return any chart in the fonts and colours of a style."""
    sizes = look(style)
    small = sizes["size"] - 1
    # One call: each further `configure` would copy the chart again.
    return chart.configure(
        font=sizes["font"],
        background="transparent",
        padding={"left": 12, "right": 8, "top": 4, "bottom": 4},
        view={"stroke": None, "step": sizes["step"]},
        axis={
            "labelColor": MUTED, "titleColor": INK, "domainColor": MUTED, "tickColor": MUTED, "gridColor": RULE,
            "labelFontSize": small, "titleFontSize": sizes["size"], "titleFontWeight": "normal",
            "labelLimit": sizes["name"],
            # Labels are centred on their ticks, even at the ends of an axis, and never touch each other.
            "labelFlush": False, "labelSeparation": small / 2,
        },
        legend={
            "labelColor": INK, "titleColor": MUTED, "labelFontSize": small, "titleFontSize": small,
            "titleFontWeight": "normal", "labelLimit": sizes["name"], "titleLimit": 1.5 * sizes["name"],
        },
        title={"color": INK, "fontSize": sizes["size"], "fontWeight": "normal", "anchor": "start"},
    )  # fmt: skip


MOST_SYSTEMS = 40
"""Maximum number of systems in a figure; the best ones are shown."""

QUANTILES = {"q10": 0.1, "q25": 0.25, "median": 0.5, "q75": 0.75, "q90": 0.9}
"""The columns of the rows that `quantile_bars` takes."""


def quantile_bars(base: Any, y: Any, title: str, **tick: Any) -> Any:
    """Return rows with quantiles: a line from 10 to 90 %, a bar from 25 to 75 %, and a tick at the median."""
    wide = base.mark_rule(color=MUTED, strokeWidth=1.5).encode(y=y, x=altair().X("q10:Q", title=title), x2="q90:Q")
    narrow = base.mark_bar(color=MUTED, opacity=0.45, height={"band": 0.5}).encode(y=y, x="q25:Q", x2="q75:Q")
    return wide + narrow + base.mark_tick(color=INK, thickness=2.5, **tick).encode(y=y, x="median:Q")


def by_name(chart: Any, style: Style) -> Any:
    """Return a chart of systems with the width, fonts and colours of a style; system names are on the left."""
    sizes = look(style)
    labels = {"labelColor": INK, "labelFontSize": sizes["size"], "labelPadding": 5}
    names = {"grid": False, "domain": False, "ticks": False, **labels}
    return themed(chart.properties(width=sizes["width"]), style).configure_axisY(**names)


def points_on_intervals(base: Any, y: Any, metric: str, **marks: Any) -> Any:
    """Return the mean of each row as a point on its interval."""
    alt = altair()
    lower = alt.X("lower:Q", title=metric, scale=alt.Scale(zero=False))
    interval = base.mark_rule(strokeWidth=2, **marks).encode(y=y, x=lower, x2="upper:Q")
    return interval + base.mark_point(filled=True, size=70, opacity=1, **marks).encode(y=y, x="mean:Q")


def intervals(
    rows: pl.DataFrame, value: str, ends: Sequence[str], names: Sequence[str], *, style: Style = "screen"
) -> Any:
    """Return a value with the ends of its interval, if it has one, for each row, which is named by some columns."""
    alt = altair()
    name = pl.concat_str([pl.col(column).cast(pl.String) for column in names], separator=", ")
    lower, upper = ends or (value, value)
    shown = rows.select(name=name, mean=value, lower=lower, upper=upper).drop_nulls("mean").drop_nans("mean")
    shown = shown.head(MOST_SYSTEMS)
    tooltip = tips(name=", ".join(names), mean=(value, ".4g"), lower=("from", ".4g"), upper=("to", ".4g"))
    y = alt.Y("name:N", sort=shown["name"].to_list(), title=None)
    base = alt.Chart(data_of(shown)).encode(tooltip=tooltip)
    return by_name(points_on_intervals(base, y, value.replace("_", " "), color=ACCENT), style)


_HISTOGRAM_BINS = 40


def histogram(values: NDArray[Any], title: str, counted: str, *, style: Style = "screen") -> Any:
    """Return how many values lie in each of 40 bins, from the 1st to the 99th percentile."""
    alt = altair()
    low, high = np.quantile(values, [0.01, 0.99])
    counts, edges = np.histogram(np.clip(values, low, high), _HISTOGRAM_BINS)
    frame = pl.DataFrame({"from": edges[:-1], "to": edges[1:], "count": counts})
    chart = (
        alt.Chart(data_of(frame))
        .mark_bar(color=ACCENT)
        .encode(
            x=alt.X("from:Q", title=title),
            x2="to:Q",
            y=alt.Y("count:Q", title=counted),
            y2=alt.datum(0),
            tooltip=tips(**{"from": ("from", ",.1f")}, to=("to", ",.1f"), count=(counted, ",d")),
        )
    )
    return sized(chart, style)


def sized(chart: Any, style: Style) -> Any:
    """Return a chart with the sizes, fonts and colours of a style."""
    return themed(chart.properties(width=look(style)["width"], height=look(style)["panel"][1]), style)


def definition(chart: Any) -> dict[str, Any]:
    """Return a chart's Vega-Lite definition."""
    # The charts are ours and tested, and validating each again would take longer than drawing it.
    drawable: dict[str, Any] = _drawable(chart.to_dict(validate=False))
    return drawable


def _drawable(part: Any) -> Any:
    """Return a part of a definition with every text made drawable, whatever the systems are called."""
    if isinstance(part, dict):
        return {key: _drawable(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_drawable(value) for value in part]
    if not isinstance(part, str):
        return part
    return part + _NO_WIDTH if part in _JAVASCRIPT else shown(part)


def svg(chart: Any) -> str:
    """Return a figure as SVG."""
    return svg_later(definition(chart))()


def svg_later(defined: Mapping[str, Any], name: str = "") -> Callable[[], str]:
    """Start drawing the figure of a `definition`; the returned function waits for it and returns the SVG.

    ``name`` identifies the figure on a page with several: it becomes its id and the prefix of the ids of its parts.
    """
    specification = json.dumps(defined, ensure_ascii=False)
    table, prefix = _fonts.stand_ins(specification), f"{name}-" if name else ""
    drawing = _begin("svg", specification.translate(table))

    def finish() -> str:
        drawn = drawing.result().decode().translate({b: a for a, b in table.items()})
        # The ids of gradients and clips count everything the process has drawn; number them from zero in each figure.
        for k, mark in enumerate(_MARKED.findall(drawn)):
            new_mark = f"{prefix}{mark.rstrip('0123456789')}{k}"
            drawn = drawn.replace(f' id="{mark}"', f' id="{new_mark}\0"')
            drawn = drawn.replace(f"url(#{mark})", f"url(#{new_mark}\0)")
        drawn = drawn.replace("\0", "")
        return drawn.replace("<svg ", f'<svg id="figure-{name}" ', 1) if name else drawn

    return finish


# Figures drawn while their page is made; the markup holds their place as a number between two NUL characters.
_LATER: ContextVar[list[Callable[[], str]] | None] = ContextVar("later", default=None)
_PLACE = re.compile("\0([0-9]+)\0")


def drawn_beside(make: Callable[P, str]) -> Callable[P, str]:
    """Let a function that makes a page continue while the page's figures are drawn, and insert them at the end."""

    @functools.wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> str:
        drawings: list[Callable[[], str]] = []
        token = _LATER.set(drawings)
        try:
            with unchecked_charts():
                html = make(*args, **options)
        finally:
            _LATER.reset(token)
        return _PLACE.sub(lambda place: drawings[int(place[1])](), html)

    return made


@contextmanager
def unchecked_charts() -> Iterator[None]:
    """Let Altair make charts without validating each part; ours are tested."""
    try:
        from altair.utils.schemapi import debug_mode
    except ImportError:
        yield
        return
    with debug_mode(False):
        yield


# The page names a figure as a whole, so nobody hears the names of its marks, which are two thirds of a drawing.
_OF_MARKS = re.compile(r' (?:aria-label|aria-roledescription|role)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+(?=[^<>]*>)")


def svg_on_page(defined: Mapping[str, Any], name: str) -> str:
    """Return a figure as a small SVG or, within `drawn_beside`, a placeholder for it."""
    drawing, later = svg_later(defined, name), _LATER.get()

    def small() -> str:
        return _DIGITS.sub(r"\1", _OF_MARKS.sub("", drawing()))

    if later is None:
        return small()
    later.append(small)
    return f"\0{len(later) - 1}\0"


def inline(draw: Callable[[], Any]) -> str:
    """Return a figure as markup for a notebook; an empty text if the drawing libraries are missing."""
    try:
        return f"<figure>{svg(draw())}</figure>"
    except MissingExtraError:
        return ""


# The names of the resources of a PDF page, one per line: "/Resources << /XObject << /xo4 16 0 R ...".
_NAMED = re.compile(rb"(/\w+ <<\n)((?: +/\w+ \d+ 0 R\n){2,})( *>>)")


def _in_order(pdf: bytes) -> bytes:
    """Return a PDF with its dictionaries of names sorted, because the drawing library writes them in random order."""
    return _NAMED.sub(lambda match: match[1] + b"".join(sorted(match[2].splitlines(True))) + match[3], pdf)


def save(chart: Any, *paths: str | Path) -> None:
    """Write a figure to files: SVG, PDF, PNG, or its Vega-Lite definition as JSON, depending on the extension."""
    begin_saving({paths: chart})()


_Paths = TypeVar("_Paths", bound=tuple[str | Path, ...])


def begin_saving(charts: Mapping[_Paths, Any]) -> Callable[[], None]:
    """Start drawing several figures in the background; the returned function writes each to its files."""
    for path in (Path(path) for paths in charts for path in paths):
        if path.suffix.lower() not in _ENDINGS:
            raise SettingError(f"{path} is not a figure file that can be written; name it .svg, .pdf, .png or .json")
    contents: dict[_Paths, Callable[[], list[bytes]]] = {}
    for paths, chart in charts.items():
        if all(Path(path).suffix.lower() == ".json" for path in paths):
            contents[paths] = functools.partial(_forms, paths, chart, None)
        else:
            drawing = svg_later(definition(chart))
            contents[paths] = _process().beside(functools.partial(_forms, paths, chart, drawing)).result

    def finish() -> None:
        for paths, content in contents.items():
            for path, written in zip(paths, content()):
                with whole_file(Path(path)) as temporary:
                    temporary.write_bytes(written)

    return finish


def _forms(paths: Sequence[str | Path], chart: Any, drawing: Callable[[], str] | None) -> list[bytes]:
    """Return a figure in the format of each file."""
    drawn = "" if drawing is None else drawing()
    return [_ENDINGS[Path(path).suffix.lower()](chart, drawn) for path in paths]


def _on_paper(drawn: str) -> str:
    """Return a drawing on white: the ink of an image with a transparent background vanishes on a dark page."""
    start = drawn.index(">") + 1
    return f'{drawn[:start]}<rect width="100%" height="100%" fill="white"/>{drawn[start:]}'


PNG_SCALE = 3.0
"""Number of image pixels per unit of the figure."""

_ENDINGS: dict[str, Callable[[Any, str], bytes]] = {
    ".svg": lambda _, drawn: drawn.encode(),
    ".pdf": lambda _, drawn: _in_order(_begin("pdf", drawn).result()),
    # An image would show characters our fonts lack in a font of the machine, and so differ between machines.
    ".png": lambda _, drawn: _begin("png", _on_paper(drawn.translate(_fonts.boxes(drawn))), PNG_SCALE).result(),
    ".json": lambda chart, _: json.dumps(definition(chart), indent=2, sort_keys=True).encode(),
}


FIGURE_FILES = tuple(_ENDINGS)
"""The endings of files that a figure can be written to."""


@functools.cache
def vega_library() -> str:
    """Return the Vega libraries as one script, from the installed vl-convert; nothing is downloaded.

    Building the script takes over a second, so it is cached for each version of vl-convert. If the cache cannot be
    read or written, the script is built every time.
    """
    kept = _kept_script()
    try:
        return zlib.decompress(kept.read_bytes()).decode()
    except (OSError, RuntimeError, ValueError, zlib.error):
        script = _begin_script().result()
    with suppress(CranfieldError, OSError, RuntimeError), whole_file(kept) as temporary:
        temporary.write_bytes(zlib.compress(script))
    return script.decode()


def _begin_script() -> Future[bytes]:
    return _script_of(os.getpid())


@functools.lru_cache(1)
def _script_of(_: int) -> Future[bytes]:
    return _begin("script", "window.vegaEmbed = vegaEmbed;")


def _kept_script() -> Path:
    return cache_root() / "vega" / f"{vl_convert().__version__}.js.zlib"


def check_libraries() -> None:
    """Raise an error if a drawing library is missing, before hours of work are lost.

    The script that every page needs is built in the background meanwhile, unless it is cached.
    """
    altair()
    vl_convert()
    # If there is no home or cache folder, go on without one.
    with suppress(OSError, RuntimeError):
        if not _kept_script().is_file():
            _begin_script()


def _begin(task: _drawing.DrawingTask, source: str, scale: float = 1.0) -> Future[bytes]:
    """Start a task in the drawing process, which is started for the first figure."""
    vl_convert()
    return _process().submit(task, source, scale)


def _process() -> _drawing.DrawingProcess:
    # A forked process needs its own drawing process.
    return _process_of(os.getpid())


@functools.lru_cache(1)
def _process_of(_: int) -> _drawing.DrawingProcess:
    return _drawing.DrawingProcess(_fonts.FOLDER)


def altair() -> Any:
    """Import Altair, or raise an error that names the extra to install."""
    return _library("altair", "altair")


def vl_convert() -> Any:
    """Import vl-convert, or raise an error that names the extra to install."""
    return _library("vl_convert", "vl-convert-python")


def _library(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("drawing", library=package, extra="report") from error
