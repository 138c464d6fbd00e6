"""Generate the reference pages of the site from the registries, the decisions, the commands and the public objects.

Nothing in the reference is listed by hand: everything that is registered has an entry, with its docstring. The pages
are written to ``docs/reference`` before Sphinx reads its sources, and are not in the repository.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx
from sphinx.ext.napoleon import NumpyDocstring

import cranfield as cf
from cranfield._registry import Entry, Registry
from cranfield.cli import cranfield as command_line

# A span in backticks, which stays unchanged, or a bar; and a name in backticks followed by a plural s.
_BARS = re.compile(r"((?::math:)?(`+).*?\2)|\|", re.S)
_PLURAL = re.compile(r"((?<!`)`\w+`)s\b")


@dataclass(frozen=True)
class Kind:
    """A registry that has a page.

    Parameters
    ----------
    page, title
        The name of the page's file, and its heading.
    opening
        What the things are, in a sentence or two, with a link to the page that explains them.
    entries
        Returns what is registered, by name.
    about
        Returns further facts about an entry, as lines of text.
    """

    page: str
    title: str
    opening: str
    entries: Callable[[], Mapping[str, Entry[Any]]]
    about: Callable[[Entry[Any]], Iterable[str]] = lambda _: ()


def _kinds() -> list[Kind]:
    """Return the kinds of registered things, in the order of the stages of an evaluation."""
    from cranfield.assessments.scenarios import SCENARIOS
    from cranfield.comparisons.p_values import CORRECTIONS, SIGNIFICANCE_TESTS
    from cranfield.data import filters
    from cranfield.experiments.source import SIMULATIONS
    from cranfield.measures.averages import AVERAGES
    from cranfield.measures.segmenting import SEGMENTS
    from cranfield.metrics.gains import GAINS
    from cranfield.recommenders import SYSTEMS
    from cranfield.splits import registry as splits

    def entries(registry: Registry[Any]) -> Callable[[], Mapping[str, Entry[Any]]]:
        return registry.entries

    return [
        Kind("simulations", "Simulated data", "See [simulated worlds](../simulate.md).", entries(SIMULATIONS)),
        Kind("filters", "Filters", "Decision A1. See [filters and splits](../splits.md).", entries(filters.registry)),
        Kind("splits", "Splits", "Decision A2. See [filters and splits](../splits.md).", entries(splits)),
        Kind(
            "systems",
            "Recommenders",
            "The systems that are known by name. See [recommenders](../recommenders.md).",
            entries(SYSTEMS),
        ),
        Kind(
            "metrics",
            "Metrics",
            "See [metrics](../metrics/README.md) for how to write them, and for the symbols in the formulas.",
            cf.metrics.known_metrics,
            _about_metric,
        ),
        Kind("gains", "Gains", "What a judged item is worth: `nDCG(gain=exp)`.", entries(GAINS)),
        Kind("averages", "Averages", "Decision C3. See [measuring](../evaluate.md).", entries(AVERAGES)),
        Kind("segments", "Segments", "See [results by segment](../segments.md).", entries(SEGMENTS)),
        Kind(
            "tests",
            "Significance tests",
            "Decision D. See [comparing systems](../compare.md).",
            entries(SIGNIFICANCE_TESTS),
        ),
        Kind("corrections", "Corrections", "For several comparisons at once.", entries(CORRECTIONS)),
        Kind(
            "scenarios",
            "Scenarios of missing ratings",
            "See [which metric can be trusted](../assess.md).",
            entries(SCENARIOS),
        ),
    ]


def write_pages(folder: Path) -> None:
    """Write all reference pages into a folder, and remove pages that no longer exist."""
    kinds = _kinds()
    pages = {kind.page: _registry_page(kind) for kind in kinds}
    pages["dialects"] = _dialects_page()
    pages["decisions"] = _decisions_page()
    pages |= _command_pages()
    pages |= _python_pages()
    pages["index"] = _index(kinds)
    folder.mkdir(exist_ok=True)
    for stale in set(folder.glob("*.md")) - {folder / f"{name}.md" for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        # An unchanged page is not rewritten, so that Sphinx does not read it again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _index(kinds: list[Kind]) -> str:
    """Return the first page: the kinds of things, and the number of each."""
    rows = [f"| [{kind.title}]({kind.page}.md) | {len(kind.entries())} |" for kind in kinds]
    return "\n".join(
        [
            "# Reference",
            "",
            "Every page here is made from what is registered, so it is complete.",
            "",
            "- [Python](python.md): every public function and class",
            "- [Commands](commands.md): every command with all of its options",
            "- [Decisions](decisions.md): what an experiment file can state, with its defaults",
            "- [Dialects](dialects.md): what other tools mean by the name of a metric",
            "",
            "| what has a name | how many |",
            "|---|---|",
            *rows,
            "",
            _contents(["python", "commands", "decisions", *(kind.page for kind in kinds), "dialects"]),
        ]
    )


def _contents(pages: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```", ""])


# --- registries


def _registry_page(kind: Kind) -> str:
    entries = dict(sorted(kind.entries().items(), key=lambda named: named[0].lower()))
    table = [
        f"| [`{_cell(name)}`](#{_anchor(kind, name)}) | {_cell(_summary(entry))} |" for name, entry in entries.items()
    ]
    sections = [_section(kind, entry) for entry in entries.values()]
    head = [f"# {kind.title}", "", kind.opening, "", "| name | what it is |", "|---|---|"]
    return "\n".join([*head, *table, "", *sections])


def _section(kind: Kind, entry: Entry[Any]) -> str:
    aliases = f"\nAlso called {', '.join(f'`{alias}`' for alias in entry.aliases)}." if entry.aliases else ""
    facts = "\n".join(f"- {line}" for line in kind.about(entry))
    head = [f"({_anchor(kind, entry.name)})=", f"## {entry.name}", "", f"`{entry.signature()}`", aliases, ""]
    return "\n".join([*head, _docstring(entry), facts, ""])


def _summary(entry: Entry[Any]) -> str:
    """Return a sentence about an entry: its title, if it is an object without its own docstring."""
    title = getattr(entry.thing, "title", None)
    return entry.summary if callable(entry.thing) or not isinstance(title, str) else f"{title.capitalize()}."


def _docstring(entry: Entry[Any]) -> str:
    """Return the docstring of an entry as reStructuredText inside a Markdown page."""
    return _rst(inspect.getdoc(entry.thing) or "") if callable(entry.thing) else f"{_summary(entry)}\n"


def _rst(docstring: str) -> str:
    text = str(NumpyDocstring(_as_rst(docstring))) if docstring else ""
    return f"````{{eval-rst}}\n{text}\n````\n"


def _as_rst(docstring: str) -> str:
    """Escape what reStructuredText would misread in a docstring, except in examples.

    The bars of a formula such as |U_i| are not substitutions, and a name in backticks may have a plural s: `Run`s.
    """
    return "\n\n".join(
        paragraph if paragraph.lstrip().startswith(">>>") else _without_marks(paragraph)
        for paragraph in docstring.split("\n\n")
    )


def _without_marks(paragraph: str) -> str:
    return _BARS.sub(_escaped_bar, _PLURAL.sub(r"\1\\ s", paragraph))


def _escaped_bar(match: re.Match[str]) -> str:
    return match[1] or r"\|"


def _about_metric(entry: Any) -> Iterable[str]:
    yield f"requires {entry.requires}" if entry.requires != "nothing" else "is defined for every list"
    if entry.requires != "nothing":
        yield "an undefined value " + ("may count as 0" if entry.zero_if_undefined else "is left out of averages")
    if entry.lower_is_better:
        yield "lower is better"
    if entry.bounds:
        yield "has bounds for missing judgments"
    if entry.needs:
        yield f"needs {', '.join(entry.needs)}"
    if entry.whole_system:
        yield "is a property of all lists together"
    if entry.averages_ties:
        yield "has a closed form over the orders of tied items"


def _anchor(kind: Kind, name: str) -> str:
    return f"{kind.page}-{name.lower().replace('_', '-')}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


# --- dialects and decisions


def _dialects_page() -> str:
    from cranfield.metrics.dialects import TOOLS

    parts = ["# Dialects", "", "What other tools mean by the name of a metric. See [dialects](../dialects.md).", ""]
    for tool in TOOLS.values():
        parts += [f"## {tool.title}", "", f"Version {tool.version}, spelled `dialect={tool.name}`.", ""]
        parts += ["| metric | what it does | its own name |", "|---|---|---|"]
        for name, dialect in tool.dialects.items():
            words = f"{dialect.words['']}; {dialect.users.value}"
            parts.append(f"| `{name}` | {_cell(words)} | `{_cell(dialect.own_name)}` |")
        parts.append("")
    return "\n".join(parts)


def _decisions_page() -> str:
    from cranfield.experiments.decisions import DECISIONS

    parts = [
        "# Decisions",
        "",
        "What an experiment file states in `[decisions]`, and functions and commands take as arguments. The letters",
        "are those of Cañamares, Castells and Moffat (2020). See [experiments](../experiment.md).",
        "",
        "| letter | decision | default | what it decides | words |",
        "|---|---|---|---|---|",
    ]
    for name, declared in DECISIONS.items():
        about = declared.metadata
        words = ", ".join(f"`{choice}`" for choice in about["choices"])
        default = declared.default if not callable(declared.default) else ""
        parts.append(f"| {about['letter']} | `{name}` | `{_cell(str(default))}` | {_cell(about['says'])} | {words} |")
    return "\n".join([*parts, ""])


# --- commands


def _command_pages() -> dict[str, str]:
    context = click.Context(command_line, info_name="cranfield", **command_line.context_settings)
    pages: dict[str, str] = {}
    rows: list[str] = []
    for name in command_line.list_commands(context):
        command = command_line.get_command(context, name)
        assert command is not None
        pages[f"command-{name}"] = _command_page(command, context, name)
        rows.append(f"| [`cranfield {name}`](command-{name}.md) | {_cell(command.get_short_help_str(200))} |")
    head = ["# Commands", "", "`cranfield --help` prints them as well.", "", "| command | what it does |", "|---|---|"]
    pages["commands"] = "\n".join([*head, *rows, "", _contents(pages)])
    return pages


def _command_page(command: click.Command, parent: click.Context, name: str) -> str:
    context = click.Context(command, info_name=name, parent=parent)
    parts = [f"# cranfield {name}", "", *_command_parts(command, context)]
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            inner = command.get_command(context, child)
            assert inner is not None
            own = click.Context(inner, info_name=child, parent=context)
            parts += [f"## cranfield {name} {child}", "", *_command_parts(inner, own)]
    return "\n".join(parts)


def _command_parts(command: click.Command, context: click.Context) -> list[str]:
    parts = ["```text", command.get_usage(context), "```", "", *_help_parts(command.help or "")]
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    records = [parameter.get_help_record(context) for parameter in options]
    rows = [f"| `{_cell(spelling)}` | {_cell(_escaped(words))} |" for spelling, words in filter(None, records)]
    if rows:
        parts += ["| option | what it does |", "|---|---|", *rows, ""]
    return [*parts, *_help_parts(command.epilog or "")]


def _help_parts(text: str) -> list[str]:
    """Return help as Markdown; paragraphs that Click must not wrap, marked by a backspace, are shown verbatim."""
    parts = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            parts += ["```text", paragraph.removeprefix("\b").strip("\n"), "```", ""]
        elif paragraph:
            parts += [_escaped(paragraph), ""]
    return parts


def _escaped(text: str) -> str:
    return re.sub(r"([*_\[\]`])", r"\\\1", text).replace("<", "&lt;")


# --- Python

_STAGES = {
    "data": "Data",
    "splits": "Splits",
    "recommenders": "Recommenders",
    "rankings": "Rankings",
    "measures": "Measures",
    "comparisons": "Comparisons",
    "assessments": "Assessments",
    "experiments": "Experiments",
    "audits": "Audits",
    "reports": "Reports",
}


def _python_pages() -> dict[str, str]:
    pages: dict[str, str] = {}
    rows: dict[str, list[str]] = {}
    for name in sorted(cf.__all__, key=str.lower):
        thing = getattr(cf, name)
        if name.startswith("__"):
            continue
        pages[f"python-{name}"] = _python_page(name, thing)
        summary = (inspect.getdoc(thing) or "").split("\n", 1)[0]
        rows.setdefault(_stage(thing), []).append(f"| [`cf.{name}`](python-{name}.md) | {_cell(summary)} |")
    parts = ["# Python", "", "`import cranfield as cf`; these are the public names.", ""]
    for stage in [*_STAGES.values(), "Errors and settings"]:
        if stage in rows:
            parts += [f"## {stage}", "", "| name | what it is |", "|---|---|", *rows[stage], ""]
    pages["python"] = "\n".join([*parts, _contents(pages)])
    return pages


def _stage(thing: Any) -> str:
    module = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", "")
    return _STAGES.get(module.split(".")[1] if "." in module else "", "Errors and settings")


def _python_page(name: str, thing: Any) -> str:
    return "\n".join([f"# cf.{name}", "", "````{eval-rst}", *_directive(f"cranfield.{name}", thing), "````", ""])


def _directive(path: str, thing: Any) -> list[str]:
    if inspect.ismodule(thing):
        # Members that are also public at the top level have their own page.
        return [
            f".. automodule:: {thing.__name__}",
            "   :members:",
            f"   :exclude-members: {', '.join(cf.__all__)}",
            "",
        ]
    if inspect.isclass(thing):
        return [f".. autoclass:: {path}", "   :members:", ""]
    if callable(thing):
        return [f".. autofunction:: {path}", ""]
    return [f".. autodata:: {path}", "   :no-value:", "", str(NumpyDocstring(inspect.getdoc(thing) or ""))]


def _write(app: Sphinx) -> None:
    write_pages(Path(app.srcdir) / "reference")


def _escape(*event: Any) -> None:
    """Rewrite the lines of a docstring, the last argument of the event, in place."""
    lines: list[str] = event[-1]
    lines[:] = _as_rst("\n".join(lines)).split("\n")


def _write_versions(app: Sphinx, failure: Exception | None) -> None:
    """Write the versions for the switcher: this one, and the released ones in sibling folders."""
    released = re.findall(r"^## (\d+\.\d+\.\d+)", (Path(app.srcdir).parent / "CHANGELOG.md").read_text("utf-8"), re.M)
    versions = [{"version": version, "url": f"../{version}/"} for version in dict.fromkeys([cf.__version__, *released])]
    if failure is None and app.builder.format == "html":
        (Path(app.outdir) / "_static" / "versions.json").write_text(json.dumps(versions), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when Sphinx starts."""
    app.connect("builder-inited", _write)
    app.connect("build-finished", _write_versions)
    app.connect("autodoc-process-docstring", _escape, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
