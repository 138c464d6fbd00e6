"""The files around the package say the same as pyproject.toml and the code."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import cranfield as cf
from cranfield.audits.options import PRESETS
from cranfield.experiments import read_experiment

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _listed(text: str, section: str) -> set[str]:
    """Return the entries of a list in the conda recipe, without spaces."""
    block = re.search(rf"^  {section}:\n((?:    - .*\n)+)", text, re.M)
    assert block is not None
    return {line.removeprefix("    - ").replace(" ", "") for line in block[1].splitlines()}


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    python = f"python{PROJECT['requires-python']}"
    assert _listed(recipe, "run") == {python, *PROJECT["dependencies"]}
    assert python in _listed(recipe, "host")
    assert f'  version: "{cf.__version__}"\n' in recipe
    assert f"license: {PROJECT['license']}" in recipe
    for file in PROJECT["license-files"]:
        assert f"- {file}" in recipe


def test_the_recipe_installs_the_same_command_and_is_built_by_the_same_tool():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    for name, code in PROJECT["scripts"].items():
        assert f"- {name} = {code}\n" in recipe
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert set(built) <= _listed(recipe, "host")


def test_the_readme_names_what_is_installed_and_every_extra():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (base,) = re.findall(r"The base install is light \(([^)]*)\)", readme)
    assert base.lower().split(", ") == [re.split("[>=]", name)[0] for name in PROJECT["dependencies"]]
    (extras,) = re.findall(r"Extras: (.*?)\.(?: |$)", readme)
    assert set(re.findall(r"`(\w+)`", extras)) == set(PROJECT["optional-dependencies"])
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in readme


def test_the_readme_multiplies_up_to_the_ways_that_it_names():
    experiment = read_experiment(ROOT / "examples" / "movielens.toml")
    options = PRESETS[experiment.audit["preset"]]
    ways = math.prod(len(each) for each in options.values())
    assert f"in {ways:,} ways" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_citation_names_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {cf.__version__}\n" in citation


def test_the_workflow_tries_the_versions_of_python_that_are_classified():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    tried = re.findall(r'"(3\.\d+)"', workflow)
    prefix = "Programming Language :: Python :: "
    classified = [line.removeprefix(prefix) for line in PROJECT["classifiers"] if line.startswith(f"{prefix}3.")]
    assert tried == classified


def test_the_figures_of_the_paper_are_those_of_the_documentation():
    figures = re.findall(r"\]\((\S+)\)", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8"))
    assert figures
    for figure in figures:
        assert (ROOT / "paper" / figure).is_file(), figure
