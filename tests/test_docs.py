"""The pages of the documentation say what happens: their examples run."""

from __future__ import annotations

import doctest
import gzip
import io
import json
import re
import shlex
import shutil
import tarfile
import tomllib
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
import polars as pl
import pytest
from click.testing import CliRunner

import cranfield as cf
from cranfield.cli import cranfield
from cranfield.datasets import index, store
from cranfield.experiments.file import experiment_of
from cranfield.metrics.definition import METRICS, Metric
from cranfield.metrics.dialects import TOOLS
from cranfield.recommenders import SYSTEMS, recommender
from cranfield.studies import replicate

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).parents[1]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if page.parent.name != "reference"  # built with the site from docstrings, which run as doctests
}
_BLOCK = re.compile(
    r"(?:^<!-- run by (?P<where>[^\n]+) -->\n)?^(?P<fence>`{3,})(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=fence)$",
    re.S | re.M,
)


class Block(NamedTuple):
    """A block of code on a page; ``where`` names what runs it, if the general tests of this file do not."""

    language: str
    code: str
    where: str | None

    @property
    def is_session(self) -> bool:
        return self.language == "python" and ">>>" in self.code


BLOCKS = {
    name: [Block(block["language"], block["code"], block["where"]) for block in _BLOCK.finditer(text)]
    for name, text in PAGES.items()
}
SESSIONS = [name for name, blocks in BLOCKS.items() if any(block.is_session for block in blocks)]
# Pages whose commands take more than a few seconds together.
SLOW = ("README.md", "docs/assess.md", "docs/audit.md", "docs/bias.md", "docs/experiment.md", "docs/report.md")


# Pages whose commands need an extra.
EXTRA = {"docs/neural.md": pytest.mark.neural}


def _runs(name: str) -> list[Block]:
    """Return the scripts and commands of a page that run."""
    return [
        block
        for block in BLOCKS[name]
        if block.language in ("python", "console") and not block.is_session and block.where is None
    ]


SCRIPTS = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else EXTRA.get(name, ()))
    for name in BLOCKS
    if _runs(name)
]


# A small audit, for pages that mention one.
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


# User code that docs/experiment.md names; its file has the page's own decisions and systems.
OWN_CODE = {
    "my_package/module.py": """
import numpy as np

class MyRecommender:
    def __init__(self, k=5):
        self.k = k

    def fit(self, train):
        self.scores = np.minimum(train.item_counts, self.k).astype(float)
        return self

    def score(self, users):
        return np.tile(self.scores, (len(users), 1))
""",
    "my_metrics.py": """
import cranfield as cf

@cf.metric("first_half")
def first_half(judged, share=0.5):
    return judged.total(where=judged.ranks <= share * judged.depth)
""",
}

# Pages whose scripts run on smaller data than they show.
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
    for name, code in OWN_CODE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code)
    (own,) = [
        block.code
        for block in BLOCKS["docs/experiment.md"]
        if "my_package.module:MyRec" in block.code and block.where is None
    ]
    (folder / "mine.toml").write_text(f'{own}\n[data.world]\nfile = "ratings.csv"\n')
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "movielens.toml", folder / "examples")
    return folder


def _zipped(name: str, text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


def _in_tar(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _published(ratings: pl.DataFrame) -> dict[str, bytes]:
    """Return what publishers of datasets offer, by file name: small worlds in their formats."""

    def lines(separator: str, last: str) -> str:
        columns = ["user", "item", pl.col("rating").cast(int), last]
        return ratings.select(pl.concat_str(columns, separator=separator)).to_series().str.join("\n").item() + "\n"

    coat = io.BytesIO()
    with zipfile.ZipFile(coat, "w") as archive:
        for name, odd in {"train": 0, "test": 1}.items():
            rows = (" ".join(str((1 + u * i % 5) * ((u + i) % 2 == odd)) for i in range(30)) for u in range(20))
            archive.writestr(f"coat/{name}.ascii", "\n".join(rows))
    plays = "".join(
        f"user_{u}\t2009-05-{1 + (u + k) % 28:02}T12:00:00Z\tartist_{(7 * u + k * k) % 150}\tname\ttrack\ttitle\n"
        for u in range(40)
        for k in range(60)
        for _ in range(1 + (u + k) % 6)
    )
    film = "1:\n" + "".join(f"{user},{1 + user % 5},2005-09-06\n" for user in range(1, 9))
    return {
        "ml-1m.zip": _zipped("ml-1m/ratings.dat", lines("::", "time")),
        "ml-100k.zip": _zipped("ml-100k/u.data", lines("\t", "time")),
        "ours.zip": _zipped("ratings.csv", "user,item,rating,time\n" + lines(",", "time")),
        "coat.zip": coat.getvalue(),
        "data.txt": lines("\t", "known").encode(),
        "lastfm-dataset-1K.tar.gz": _in_tar("userid-timestamp-artid-artname-traid-traname.tsv", plays.encode()),
        "nf_prize_dataset.tar.gz": _in_tar("mv_0000001.txt", film.encode()),
    }


@pytest.fixture
def publishers(files, tmp_path, monkeypatch):
    """Let downloads come from small files of this machine, whatever their counts, and let some be there already."""
    ratings = cf.read(files / "ratings.csv").frame().with_columns(known=pl.col("user") % 2)
    offered = _published(ratings)

    def download(address: str, target: Path, **_: object) -> None:
        target.write_bytes(offered[address.rsplit("/", 1)[-1]])

    lenient = {name: replace(entry, tolerance=None) for name, entry in index.catalogue().items()}
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(files))
    monkeypatch.setattr(index, "catalogue", lambda: lenient)
    monkeypatch.setattr(store, "download", download)
    (files / "nf_prize_dataset.tar.gz").write_bytes(offered["nf_prize_dataset.tar.gz"])
    (files / "data" / "ml-1m").mkdir(parents=True)
    zipfile.ZipFile(io.BytesIO(offered["ml-1m.zip"])).extractall(files / "data")
    return ratings


@pytest.fixture
def files(made_files, tmp_path, monkeypatch):
    """A folder with the files that the pages speak of, for one page to work in."""
    folder = shutil.copytree(made_files, tmp_path / "page")
    monkeypatch.chdir(folder)
    return folder


def test_every_block_has_a_language_that_is_run_and_what_runs_it_exists():
    for name, blocks in BLOCKS.items():
        for block in blocks:
            known = block.language.startswith("{") or block.language in ("python", "console", "toml", "text", "yaml")
            assert known, f"{name}: a block of {block.language!r} is not run:\n{block.code}"
            if block.where is not None:
                file, _, test = block.where.partition("::")
                assert (ROOT / file).is_file(), f"{name}: there is no {file}"
                assert f"def {test}(" in (ROOT / file).read_text() or not test, f"{name}: {file} has no test {test}"


@pytest.mark.parametrize("page", SESSIONS)
def test_the_sessions_of_a_page_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.usefixtures("publishers")
@pytest.mark.parametrize("page", SCRIPTS)
def test_the_commands_and_scripts_of_a_page_run_in_its_order(page, tmp_path, monkeypatch):
    if page.startswith("docs/start/"):
        monkeypatch.chdir(tmp_path)  # a start brings its own files
    names: dict[str, object] = {}
    for block in _runs(page):
        if block.language == "python":
            code = block.code
            for size, smaller in SMALLER.get(page, {}).items():
                code = code.replace(size, smaller)
            exec(code, names)
        else:
            _run_block(block)


def _run_block(block: Block) -> None:
    for line in block.code.replace("\\\n", " ").splitlines():
        for command in line.removeprefix("$ ").split(" && "):
            _run_command(command)


def _run_command(command: str) -> None:
    words = shlex.split(command.partition(" || ")[0], comments=True)
    if not words:
        return
    program, *arguments = words
    if program == "pip":
        _check_extras(command)
        return
    if program == "jq":
        _, question, file = arguments
        (path,) = re.findall(r"^\.([\w.]+) != ", question)
        answer = json.loads(Path(file).read_text())
        for key in path.split("."):
            answer = answer[key]
        return
    assert program == "cranfield", command
    # Expand patterns and the home folder as a shell does.
    words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in arguments]
    expanded = [path for word in words for path in (("*" in word and sorted(map(str, Path().glob(word)))) or [word])]
    result = CliRunner().invoke(cranfield, expanded)
    fails = {"--fail", "--no-worse", "--better"} & set(arguments)
    assert result.exit_code in ((0, 1) if fails else (0,)), f"{command}\n{result.output}\n{result.exception}"


def _check_extras(command: str) -> None:
    (extras,) = re.findall(r"(?:\.|cranfield)\[([\w,]+)\]", command)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"]), command


def test_the_pages_install_extras_and_name_scripts_that_exist():
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for text in [*PAGES.values(), contributing]:
        for command in re.findall(r"pip install[^`\n]*?(?:\.|cranfield)\[[\w,]+\]", text):
            _check_extras(command)
        for script in re.findall(r"\b(?:benchmarks|docs|tests)/[\w/]+\.py\b", text):
            assert (ROOT / script).is_file(), script


def test_what_a_page_offers_by_entry_points_is_used_by_name(files, monkeypatch):
    (block,) = [block for block in BLOCKS["docs/experiment.md"] if "[project.entry-points" in block.code]
    groups = tomllib.loads(block.code)["project"]["entry-points"]
    assert set(groups) == {SYSTEMS._plugins, METRICS._plugins}
    offers = "".join(
        f"[{group}]\n" + "".join(f"{name} = {code}\n" for name, code in offered.items())
        for group, offered in groups.items()
    )
    shutil.copy(files / "my_metrics.py", files / "my_package" / "metrics.py")
    about = files / "my_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(offers)
    monkeypatch.syspath_prepend(files)
    options = ["--train", "train.csv", "--test", "test.csv"]
    _run_command(shlex.join(["cranfield", "recommend", "-s", "offered(k=5)", *options, "--out", "offered"]))
    lists = [str(path) for path in Path("offered").glob("*.parquet")]
    assert lists
    _run_command(shlex.join(["cranfield", "evaluate", "--test", "test.csv", *lists, "-m", "first_half@10"]))


STUDIES = [
    pytest.param(
        block,
        id=f"{page}-{place}",
        marks=pytest.mark.neural if re.search("aftab2022|rendle2020", block.code) else pytest.mark.slow,
    )
    for page, blocks in BLOCKS.items()
    for place, block in enumerate(blocks)
    if block.where and block.where.endswith("::test_the_commands_of_studies_run_on_small_data")
]


@pytest.fixture
def small_studies(publishers, files):
    """Let the data of studies be small."""
    for name in ("hetrec2011-lastfm", "renttherunway", "cm100k"):
        publishers.write_parquet(files / f"{name}.parquet")
    items = publishers["item"].unique()
    profiles = publishers.group_by("user", maintain_order=True).agg("item")
    rows = [(user, own[0], items.filter(~items.is_in(own)).to_list()[:30]) for user, own in profiles.rows()]
    negatives = pl.DataFrame(rows, schema=["user", "item", "negatives"], orient="row")
    negatives.write_parquet(files / "negatives.parquet")


# The tests give these options to the commands of studies, so that they end soon.
SMALL_STUDIES = {
    "valcarce2018": "--samples 2 --sizes 1,0.5 -s random -s 'knn(k=10)'",
    "valcarce2020": "--samples 2 --sizes 1,0.5 -s random -s 'knn(k=10)'",
    "canamares2020": "(seeds=2, curve_seeds=1)",
    "bellogin2017": "(targets=12) --folds 2",
    "canamares-castells2018": "(seeds=1)",
    "canamares-castells2020": "",
    "aftab2022": "(seeds=1, epochs=1) --samples 2",
    "rendle2020": "(epochs=1)",
}


@pytest.mark.usefixtures("small_studies")
@pytest.mark.parametrize("block", STUDIES)
def test_the_commands_of_studies_run_on_small_data(block):
    if block.language == "python":
        exec(block.code, {"cf": cf, "replicate": partial(replicate, seeds=1)})
        return
    for command in block.code.replace("$ ", "").splitlines():
        study, others = re.match(r"cranfield replicate '?([\w-]+)(?:\([^)]*\))?'?(.*)", command).groups()
        own, more = re.fullmatch(r"(\([^)]*\))?(.*)", SMALL_STUDIES[study]).groups()
        _run_command(f"cranfield replicate '{study}{own or ''}' {others} {more}")


@pytest.mark.spark
def test_what_a_page_shows_for_spark_runs_on_this_machine(files, spark):
    runs = pl.concat(
        cf.read_run(files / "runs" / f"{name}.tsv").frame().with_columns(system=pl.lit(name))
        for name in ("popularity", "knn")
    )
    for name, frame in {"runs": runs, "test": pl.read_csv("test.csv"), "train": pl.read_csv("train.csv")}.items():
        spark.createDataFrame(frame.to_pandas()).createOrReplaceTempView(name)
        (files / "lake" / name).mkdir(parents=True)
        frame.write_parquet(files / "lake" / name / "part-0.parquet")
    blocks = [block for block in BLOCKS["docs/scale.md"] if block.where and "for_spark" in block.where]
    assert [block.language for block in blocks] == ["console", "python"]
    for block in blocks:
        code = re.sub(r"s3a://lake|hdfs://", str(files / "lake"), block.code).replace("spark://head:7077", "local[2]")
        if block.language == "python":
            exec(code, {"cf": cf, "spark": spark})
        else:
            _run_block(block._replace(code=code))


@pytest.mark.parametrize("page", [name for name, blocks in BLOCKS.items() if any(b.language == "toml" for b in blocks)])
def test_the_experiment_files_on_a_page_are_accepted(page):
    for block in BLOCKS[page]:
        if block.language == "toml" and block.where is None:
            experiment_of(tomllib.loads(block.code))


def _commands():
    """Return every command of every page, whether or not the block around it runs, with lines that go on joined."""
    for page, blocks in BLOCKS.items():
        for block in blocks:
            code = block.code.replace("\\\n", " ") if block.language in ("console", "yaml") else ""
            for command in re.findall(r"(?:^(?:\$ | *- run: )?|&& )(cranfield (?:(?!&&).)*)", code, re.M):
                yield pytest.param(command, id=f"{page}: {command[:60]}")


@pytest.mark.parametrize("command", list(_commands()))
def test_the_commands_of_the_pages_have_the_options_and_values_that_they_name(command):
    _, *words = shlex.split(command, comments=True)
    words = words[: next((k for k, word in enumerate(words) if word in (">", "|", "||")), len(words))]
    group: click.Command = cranfield
    context = click.Context(cranfield)
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        found = group.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        group = found
    given = group.make_context("cranfield", words).params
    for system in given.get("systems") or ():
        recommender(system)
    for metric in given.get("metrics") or ():
        Metric.of(metric)


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


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md", "CONTRIBUTING.md"])
def test_no_page_waits_for_a_number(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.search(r"@@|\bTODO\b|\bTBD\b|\bXXX\b", text)


def test_the_pages_link_only_to_pages_and_headings_that_exist():
    for name, text in PAGES.items():
        for target, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", text):
            # The reference is built with the site, and that build fails on a dead link.
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
        ("metrics on judged lists", lambda: sum(one.family != "own" for one in cf.metrics.known_metrics().values())),
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
