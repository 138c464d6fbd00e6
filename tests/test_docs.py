"""The pages of the documentation say what happens: their examples run."""

from __future__ import annotations

import doctest
import gzip
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import NamedTuple

import click
import polars as pl
import pytest
from click.testing import CliRunner

import cranfield as cf
from cranfield.cli import cranfield
from cranfield.experiments.file import experiment_of
from cranfield.measures.dialects.peers import TOOLS
from cranfield.recommenders import SYSTEMS

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).parents[1]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.parent.name != "reference"  # made with the site, from docstrings, which run as doctests
}
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^(?P<fence>`{3,})(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)$",
    re.S | re.M,
)


class Block(NamedTuple):
    """A block of code on a page; ``why`` says why it does not run, where it does not."""

    language: str
    code: str
    why: str | None

    @property
    def is_session(self) -> bool:
        return self.language == "python" and ">>>" in self.code


BLOCKS = {
    name: [Block(block["language"], block["code"], block["why"]) for block in _BLOCK.finditer(text)]
    for name, text in PAGES.items()
}
SESSIONS = [name for name, blocks in BLOCKS.items() if any(block.is_session for block in blocks)]
# The examples of report.md have a test of their own, which looks at what they write.
RUN_ELSEWHERE = ("docs/report.md",)
# Pages whose commands take more than a few seconds together.
SLOW = ("README.md", "docs/assess.md", "docs/audit.md", "docs/bias.md", "docs/experiment.md", "docs/replications.md")


def _runs(name: str) -> list[Block]:
    """Return the scripts and commands of a page that run."""
    return [
        block
        for block in BLOCKS[name]
        if block.language in ("python", "console") and not block.is_session and block.why is None
    ]


SCRIPTS = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name in BLOCKS
    if _runs(name) and name not in RUN_ELSEWHERE
]


# A small audit, for pages that speak of one.
EXPERIMENT = """
[decisions]
metrics = ["P@5"]
length = 5
[data.world]
file = "ratings.csv"
[systems]
popularity = "popularity"
knn = "knn(k=10)"
[audit.vary]
metrics = ["P@5", "nDCG@5"]
"""


# Pages whose scripts run on less than they say.
SMALLER = {"docs/simulate.md": {"users=1_000, items=500": "users=200, items=100", "50_000": "5_000", "25_000": "2_500"}}


@pytest.fixture(scope="module")
def made_files(tmp_path_factory):
    """The files that the pages speak of, made once."""
    folder = tmp_path_factory.mktemp("files")
    world = cf.simulate.world(60, 150, 2_400, seed=3)
    split = cf.splits.random(world.ratings, train=0.7, seed=3)
    cf.write(world.ratings, folder / "ratings.csv")
    cf.write(split.train, folder / "train.csv")
    cf.write(split.test, folder / "test.csv")
    lines = "".join(f"{u} 0 {i} {r:.0f}\n" for u, i, r, *_ in split.test.frame().rows())
    (folder / "test.qrels").write_text(lines)
    pl.DataFrame({"who": [1, 2], "other": [0, 0], "what": [3, 3], "when": [1, 2]}).write_csv(folder / "log.csv")
    (folder / "runs").mkdir()
    for name, system in {"popularity.tsv": "popularity", "knn.tsv": "knn(k=10)", "als.parquet": "puresvd(factors=5)",
                         "bm25.run": "random"}.items():  # fmt: skip
        (run,) = cf.recommend(split, {Path(name).stem: system}, length=100)
        cf.write_run(run, folder / "runs" / name)
    (folder / "whole").mkdir()
    for run in cf.recommend(split, ["popularity", "random"], length="all"):
        cf.write_run(run, folder / "whole" / f"{run.name}.tsv")
    (folder / "experiment.toml").write_text(EXPERIMENT)
    for name, run in {"old": "popularity", "new": "knn"}.items():
        shutil.copy(folder / "runs" / f"{run}.tsv", folder / f"{name}.csv")
    pl.DataFrame({"user": range(60), "age": ["young", "old"] * 30}).write_csv(folder / "users.csv")
    (folder / "plays.csv.gz").write_bytes(gzip.compress(b"user,item,plays\n1,1,3\n"))
    pl.DataFrame({"who": [1, 2], "what": [3, 4], "score": [1, 2]}).write_csv(folder / "visits.csv")
    lists = pl.DataFrame({"member": [1, 1], "film": [3, 4], "strength": [0.5, 0.2]})
    lists.write_csv(folder / "lists.csv")
    lists.with_columns(rank=pl.Series([1, 2])).write_csv(folder / "lists.txt", separator="\t", include_header=False)
    return folder


@pytest.fixture
def files(made_files, tmp_path, monkeypatch):
    """A folder with the files that the pages speak of, for one page to work in."""
    folder = shutil.copytree(made_files, tmp_path / "page")
    monkeypatch.chdir(folder)
    return folder


def test_every_block_has_a_language_and_code_that_does_not_run_says_why():
    for name, blocks in BLOCKS.items():
        for block in blocks:
            assert block.language, f"{name}: this block has no language:\n{block.code}"
            if not block.language.startswith("{"):
                known = block.language in ("python", "console", "toml", "text") or block.why is not None
                assert known, f"{name}: {block.language} is not run, and the page does not say why"


@pytest.mark.parametrize("page", SESSIONS)
def test_the_sessions_of_a_page_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", SCRIPTS)
def test_the_commands_and_scripts_of_a_page_run_in_its_order(page, files, tmp_path, monkeypatch):
    if page.startswith("docs/start/"):
        monkeypatch.chdir(tmp_path)  # a start brings its own files
    names: dict[str, object] = {}
    for block in _runs(page):
        if block.language == "python":
            code = block.code
            for size, smaller in SMALLER.get(page, {}).items():
                code = code.replace(size, smaller)
            exec(code, names)
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            for command in line.removeprefix("$ ").split(" && "):
                _run_command(command)


def _run_command(command: str) -> None:
    words = shlex.split(command, comments=True)
    if not words:
        return
    program, *arguments = words
    assert program == "cranfield", command
    # What a shell does to patterns.
    expanded = [path for word in arguments for path in (sorted(map(str, Path().glob(word))) or [word])]
    result = CliRunner().invoke(cranfield, expanded)
    fails = {"--fail", "--no-worse", "--better"} & set(arguments)
    assert result.exit_code in ((0, 1) if fails else (0,)), f"{command}\n{result.output}\n{result.exception}"


@pytest.mark.parametrize("page", [name for name, blocks in BLOCKS.items() if any(b.language == "toml" for b in blocks)])
def test_the_experiment_files_on_a_page_are_accepted(page):
    for block in BLOCKS[page]:
        if block.language == "toml" and block.why is None:
            experiment_of(tomllib.loads(block.code))


def _commands():
    """Return every command of every page, whether or not the block around it runs, with lines that go on joined."""
    for page, blocks in BLOCKS.items():
        for block in blocks:
            lines = block.code.replace("\\\n", " ").splitlines() if block.language == "console" else []
            for line in lines:
                command = line.removeprefix("$ ").split(" && cranfield ")
                if command[0].startswith("cranfield ") and "[" not in command[0].split("#")[0].replace("'", " "):
                    yield pytest.param(command[0], id=f"{page}: {command[0][:60]}")


@pytest.mark.parametrize("command", list(_commands()))
def test_the_commands_of_the_pages_have_the_options_that_they_name(command):
    _, *words = shlex.split(command, comments=True)
    words = words[: next((k for k, word in enumerate(words) if word in (">", "|", "||", "&&")), len(words))]
    group: click.Command = cranfield
    context = click.Context(cranfield)
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        found = group.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        group = found
    group.make_context("cranfield", words, resilient_parsing=True)


def test_every_picture_is_made_by_a_script_beside_it_and_shown_on_a_page():
    folder = ROOT / "docs" / "images"
    scripts = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for picture in [*folder.glob("*.svg"), *folder.glob("*.png")]:
        assert re.search(rf"[\"/]{picture.stem}[\".]", scripts), f"no script makes {picture.name}"
        assert any(f"images/{picture.name}" in text for text in PAGES.values()), f"no page shows {picture.name}"


def _anchors(text: str) -> set[str]:
    """Return what a link can name on a page: its headings as GitHub and the site write them."""
    outside = _BLOCK.sub("", text)
    headings = re.findall(r"^#+ (.+)$", outside, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_the_pages_link_only_to_pages_and_headings_that_exist():
    for name, text in PAGES.items():
        for target, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", text):
            # The reference is made with the site, whose build fails at a dead link.
            if target.startswith(("reference/", "../reference/")):
                continue
            page = ((ROOT / name).parent / target).resolve() if target else ROOT / name
            assert page.exists(), f"{name} links to {target}"
            if heading and page.suffix == ".md":
                assert heading in _anchors(page.read_text(encoding="utf-8")), f"{name} links to {target}#{heading}"


def test_the_table_of_benchmarks_names_every_script():
    table = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")}
    assert set(re.findall(r"`(\w+\.py)\b", table)) == scripts
    for target in re.findall(r"\]\(([^)]+)\)", table):
        assert (ROOT / "benchmarks" / target).exists(), target


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("recommenders by name", lambda: len(SYSTEMS)),
        ("metrics on judged lists", lambda: sum(one.family != "own" for one in cf.known_metrics().values())),
    ],
)
def test_the_readme_counts_what_is_registered(words, count):
    assert re.findall(rf"(\d+) {words}", PAGES["README.md"]) == [str(count())]


def test_the_readme_does_not_promise_more_datasets_than_there_are():
    (number,) = re.findall(r"over (\d+) known datasets", PAGES["README.md"])
    assert len(cf.datasets.listing()) > int(number) >= 10


def test_the_readme_names_as_many_tools_as_there_are_dialects():
    numbers = ["six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    assert re.findall(r"dialects of (\w+) tools", PAGES["README.md"]) == [numbers[len(TOOLS) - 6]]
