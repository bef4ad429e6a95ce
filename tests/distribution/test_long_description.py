"""README on an index: no link leads into a clone, and no command needs one."""

from __future__ import annotations

import re
import tomllib

import pytest

from manual.made_parts import ROOT
from release.building import Project
from release.checking import wrong_links
from release.long_description import long_description
from release.quickstart import blocks, install_command

HOME = "https://github.com/o/x"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ON_INDEX = long_description(README, "informix-cdc", HOME, "v9.8.7")

of_a_clone = pytest.mark.skipif(
    (ROOT / "PKG-INFO").exists(), reason="the README of an sdist is the long description already"
)


@of_a_clone
def test_links_and_pictures_are_absolute_and_lead_to_the_tag() -> None:
    targets = re.findall(r"\]\(([^)]*)\)", ON_INDEX)
    assert len(targets) > 20
    assert wrong_links(targets, Project("x", "9.8.7", HOME, "0")) == []
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", ON_INDEX)
    assert pictures
    for each in pictures:
        path = each.removeprefix("https://raw.githubusercontent.com/o/x/v9.8.7/")
        assert (ROOT / path).is_file(), each


def test_an_anchor_is_one_of_readme_in_the_repository() -> None:
    made = long_description("[a](#installing)", "x", HOME, "v1")
    assert made == "[a](https://github.com/o/x/blob/v1/README.md#installing)"


def test_another_host_than_github_has_its_raw_files_below_its_home() -> None:
    made = long_description("![a](p.svg)", "x", "https://git.example/o/x", "v1")
    assert made == "![a](https://git.example/o/x/raw/v1/p.svg)"


def test_code_is_not_changed_but_for_what_pip_installs() -> None:
    assert blocks(ON_INDEX, "python") == blocks(README, "python")
    assert blocks(ON_INDEX, "bash") == blocks(README, "bash")
    code = "```\npip install '.[a,b]' c  # x\npip install .\npip install ./x.whl\n```"
    assert long_description(code, "n", HOME, "v1") == (
        "```\npip install 'n[a,b]' c  # x\npip install n\npip install ./x.whl\n```"
    )


def test_the_quickstart_installs_by_name_with_extras_that_there_are() -> None:
    found = re.fullmatch(r"pip install 'informix-cdc\[([\w,]+)\]'", install_command(ON_INDEX))
    assert found is not None, install_command(ON_INDEX)
    assert set(found[1].split(",")) <= PROJECT["optional-dependencies"].keys()


@of_a_clone
def test_what_is_for_a_clone_is_left_out() -> None:
    assert README.count("<!--clone-->") == README.count("<!--/clone-->") > 0
    for word in ("<!--clone", "<!--/clone", "`make ", "In a clone", "pip install '.", "pip install ."):
        assert word not in ON_INDEX


def test_a_link_that_is_relative_or_leads_elsewhere_is_found() -> None:
    wrong = ["docs/a.md", "#b", f"{HOME}/blob/main/a.md", "http://plain.example"]
    right = ["https://other.example", f"{HOME}/blob/v1.0.0/a.md", "mailto:a@b.example"]
    assert wrong_links([*wrong, *right], Project("x", "1.0.0", HOME, "0")) == wrong


def test_the_home_is_named_in_one_place() -> None:
    urls = PROJECT["urls"]
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues", "Security"} <= urls.keys()
    assert [url for url in urls.values() if not url.startswith(urls["Source"])] == []
