"""One verdict over the sets of ratings of an experiment: automatic, with families, and over several folders."""

import pytest

from cranfield._errors import CranfieldError
from cranfield.experiments import Results, read_experiment, run, schema
from cranfield.facts import across as across_facts

SETS = {"ml-1m": 1, "films": 2, "songs": 3}


def written(
    folder,
    name="e",
    families=None,
    sets=SETS,
    decisions='metrics = ["P@5", "nDCG@10"]',
    systems='["popularity", "knn(k=5)"]',
):
    data = ""
    for place, seed in sets.items():
        family = f'family = "{families[place]}"\n' if place in (families or {}) else ""
        data += f'[data.{place}]\nsimulate = "world(users=60, items=40, ratings=900, seed={seed})"\n{family}'
    file = folder / f"{name}.toml"
    file.write_text(f'systems = {systems}\n[decisions]\nsignificance = "student"\n{decisions}\n{data}')
    return file


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return run(written(tmp_path_factory.mktemp("several")))


def test_several_sets_are_compared_without_being_asked(results):
    over_all = results.over_all
    assert over_all.datasets == ("ml-1m", "films", "songs")
    assert over_all.metrics == ("P@5", "nDCG@10")
    assert str(results).startswith(over_all.verdict[0])
    assert over_all.verdict[0].startswith("On these three datasets ")


def test_the_effects_are_those_of_the_comparisons_on_each_set(results):
    effects = results.over_all.effects("P@5")
    means = results.averages().filter(metric="P@5")
    for row in effects.iter_rows(named=True):
        expected = means.filter(data=row["dataset"], system=row["system_a"])["mean"].item()
        assert row["mean_a"] == pytest.approx(expected)


def test_a_family_is_stated_in_the_file_and_comes_back_from_the_folder(tmp_path):
    file = written(tmp_path, families={"ml-1m": "movies", "films": "movies"})
    assert [source.family for source in read_experiment(file).data] == ["movies", "movies", None]
    over_all = Results(run(file).path).over_all
    assert over_all.datasets == ("movies", "songs")
    assert "family" in schema()["properties"]["data"]["additionalProperties"]["properties"]


def test_a_known_dataset_is_recognised_by_its_own_name(results):
    assert results.over_all.known == {"ml-1m": "MovieLens"}


def test_one_set_or_one_system_has_no_verdict_over_all(tmp_path):
    assert run(written(tmp_path, "a", sets={"x": 1})).over_all is None
    assert run(written(tmp_path, "b", systems='["popularity"]')).over_all is None


def test_why_there_is_no_verdict_is_said(tmp_path):
    file = written(tmp_path, decisions='metrics = ["ItemCoverage@5"]', sets={"x": 1, "y": 2})
    results = run(file)
    assert isinstance(results.over_all, across_facts.NothingOverDatasets)
    assert str(results).startswith("There is no verdict over all datasets: ")


def test_experiments_are_compared_together_and_sets_of_one_name_get_their_folders(results, tmp_path):
    other = run(written(tmp_path, "other", sets={"songs": 7, "books": 8}))
    together = results.over_datasets(other)
    assert together.datasets == ("ml-1m", "films", f"{results.path.name}/songs", "other/songs", "books")
    different = run(written(tmp_path, "median", sets={"z": 1}, decisions='average = "geometric"\nmetrics = ["P@5"]'))
    with pytest.raises(CranfieldError, match="average users in different ways"):
        results.over_datasets(different)
    with pytest.raises(CranfieldError, match="there are two datasets called"):
        results.over_datasets(results)
