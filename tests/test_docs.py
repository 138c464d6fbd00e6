"""The pages of the documentation say what happens: their examples run."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner

import cranfield as cf
from cranfield.cli import cranfield
from cranfield.measures.dialects.peers import TOOLS
from cranfield.recommenders import SYSTEMS

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).parents[1]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.parent.name != "reference"  # made with the site, from docstrings, which run as doctests
}
SESSIONS = [name for name, text in PAGES.items() if ">>>" in text]
# The examples of datasets.md download; those of report.md have a test of their own, which looks at what they write.
SCRIPTS = [
    name
    for name, text in PAGES.items()
    if "```python" in text and ">>>" not in text and Path(name).name not in ("datasets.md", "report.md")
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
def written(tmp_path_factory):
    """Write the files that the pages speak of."""
    tmp_path = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        _write(tmp_path)
    return tmp_path


@pytest.fixture
def files(written, tmp_path, monkeypatch):
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(shutil.copytree(written, tmp_path / "pages"))
    return tmp_path / "pages"


def _write(tmp_path):
    world = cf.simulate.world(60, 150, 2_400, seed=3)
    split = cf.splits.random(world.ratings, train=0.7, seed=3)
    cf.write(world.ratings, "ratings.csv")
    cf.write(split.train, "train.csv")
    cf.write(split.test, "test.csv")
    (tmp_path / "test.qrels").write_text("".join(f"{u} 0 {i} {r:.0f}\n" for u, i, r, *_ in split.test.frame().rows()))
    pl.DataFrame({"who": [1, 2], "other": [0, 0], "what": [3, 3], "when": [1, 2]}).write_csv("log.csv")
    (tmp_path / "runs").mkdir()
    for name, system in {"popularity.tsv": "popularity", "knn.tsv": "knn(k=10)", "als.parquet": "puresvd(factors=5)",
                         "bm25.run": "random"}.items():  # fmt: skip
        (run,) = cf.recommend(split, {Path(name).stem: system}, length=100)
        cf.write_run(run, Path("runs") / name)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    lists = pl.DataFrame({"member": [1, 1], "film": [3, 4], "strength": [0.5, 0.2]})
    lists.write_csv("lists.csv")
    lists.with_columns(rank=pl.Series([1, 2])).write_csv("lists.txt", separator="\t", include_header=False)


@pytest.mark.parametrize("page", SESSIONS)
def test_the_sessions_of_a_page_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", SCRIPTS)
def test_the_scripts_of_a_page_run(page, files):
    if "```console" in PAGES[page]:
        pytest.skip("its commands and scripts run together, below")
    script = "\n".join(re.findall(r"```python\n(.*?)```", PAGES[page], re.S))
    for size, smaller in SMALLER.get(page, {}).items():
        assert size in script
        script = script.replace(size, smaller)
    exec(script, {})
    assert script


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if "```console" in text])
def test_the_commands_and_scripts_of_a_page_run_in_its_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in re.findall(r"```(python|console)\n(.*?)```", PAGES[page], re.S):
        if language == "python":
            exec(block, names)
            continue
        for line in block.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "cranfield"
            result = CliRunner().invoke(cranfield, arguments)
            assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception}"


def _commands():
    """Return every command of every page, whether or not the block around it runs, with lines that go on joined."""
    for page, text in PAGES.items():
        for block in re.findall(r"```(?:console|text|bash)?\n(.*?)```", text, re.S):
            for line in block.replace("\\\n", " ").splitlines():
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


def test_the_pages_link_only_to_pages_that_exist():
    for name, text in PAGES.items():
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            # The reference is made with the site, whose build fails at a dead link.
            made = target.startswith("reference/")
            assert made or ((ROOT / name).parent / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("recommenders by name", lambda: len(SYSTEMS)),
        ("metrics on judged lists", lambda: sum(one.family != "own" for one in cf.known_metrics().values())),
    ],
)
def test_the_readme_counts_what_is_registered(words, count):
    assert re.findall(rf"(\d+) {words}", PAGES["README.md"]) == [str(count())]


def test_the_readme_names_as_many_tools_as_there_are_dialects():
    numbers = ["six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    assert re.findall(r"dialects of (\w+) tools", PAGES["README.md"]) == [numbers[len(TOOLS) - 6]]
