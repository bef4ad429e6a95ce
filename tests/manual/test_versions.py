"""The page of versions says what `make matrix` runs, and that is what the package promises."""

from __future__ import annotations

import re
import tomllib

import pytest

from lab.matrix.__main__ import COMBINATIONS, NotHere, interpreter
from manual.made_parts import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_TRIED = re.compile(r"^\| (\d+\.\d+\.\d+) \| (\d+\.\d+)\.\d+ \|.*\| (\S+) \|$", re.MULTILINE)


def minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def test_the_page_has_a_line_for_each_combination_that_runs() -> None:
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert set(_TRIED.findall(page)) == {
        (each.pyspark, each.python, each.delta or "-") for each in COMBINATIONS
    }


def test_the_oldest_and_the_newest_spark_run_and_each_python_that_is_named() -> None:
    sparks = sorted(minor(each.pyspark) for each in COMBINATIONS)
    (oldest,) = (each for each in PROJECT["optional-dependencies"]["spark"] if "pyspark" in each)
    assert oldest == "pyspark>={}.{}".format(*sparks[0])
    tried = (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8")
    newest = re.search(r"^pyspark==(\S+)$", tried, re.MULTILINE)
    assert newest is not None
    assert minor(newest[1]) == sparks[-1]
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if "Python :: 3." in each]
    assert sorted(named) == sorted({each.python for each in COMBINATIONS})
    assert PROJECT["requires-python"] == f">={min(named, key=minor)}"


def test_a_delta_merge_runs_with_the_oldest_spark_and_with_one_that_knows_limits() -> None:
    with_delta = sorted(minor(each.pyspark) for each in COMBINATIONS if each.delta)
    assert with_delta[0] == min(minor(each.pyspark) for each in COMBINATIONS)
    assert with_delta[-1] >= (4, 2)


def test_a_python_that_is_not_here_is_said() -> None:
    with pytest.raises(NotHere, match=r"no Python 2\.9 on PATH"):
        interpreter("2.9")
