"""The site has each page of the manual, its links, and a navigation that agrees with docs/README.md."""

from __future__ import annotations

import importlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import informix_cdc
from harness.runs.places import at
from manual.made_parts import ROOT
from manual.site.markdown import for_the_generator
from manual.site.pages import page_of, sources, stage, with_site_links

CONFIGURATION: dict[str, Any] = YAML().load(ROOT / ".ci" / "site" / "mkdocs.yml")
REMEDY = "give it a line under `nav` of .ci/site/mkdocs.yml"
_DECISION = re.compile(r"decisions/0\d{3}-.*\.md")
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
HOME = "https://example.org/p/{kind}/main"


def in_navigation(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        target = next(iter(entry.values())) if isinstance(entry, dict) else entry
        if isinstance(target, list):
            yield from in_navigation(target)
        else:
            yield target


def section(title: str) -> list[Any]:
    return next(entry[title] for entry in CONFIGURATION["nav"] if title in entry)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = list(in_navigation(CONFIGURATION["nav"]))
    pages = {page_of(source) for source in sources()}
    assert {page for page in pages if not _DECISION.fullmatch(str(page))} == set(listed), REMEDY
    assert sorted(listed) == sorted(set(listed))


def test_every_decision_is_in_their_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in folder.glob("0*.md")} == {
        name for name in _LINK.findall(index) if re.match(r"0\d{3}-", name)
    }


def test_users_come_first_with_eight_pages() -> None:
    firsts = [next(iter(in_navigation([entry]))) for entry in section("Use")]
    assert firsts == [
        "first-table.md",
        "lake.md",
        "concepts.md",
        "guarantees.md",
        "operations/index.md",
        "dba.md",
        "security.md",
        "troubleshooting.md",
    ]


def test_pages_for_contributors_are_those_that_the_contents_call_so() -> None:
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    users, contributors = contents.split("## For contributors")
    theirs = set(in_navigation(section("Contributors")))
    assert _pages_linked_from(contributors) <= theirs
    # Figures are evidence, and the page of settings for more throughput leads to them.
    assert _pages_linked_from(users) & theirs <= {"evidence/performance.md"}


def _pages_linked_from(text: str) -> set[str | None]:
    return {page_of(posixpath.normpath(f"docs/{target}")) for target in _LINK.findall(text)}


@pytest.mark.parametrize(
    ("source", "link", "on_the_site"),
    [
        ("README.md", "](docs/lake.md)", "](lake.md)"),
        ("README.md", "](docs/README.md)", "](contents.md)"),
        ("README.md", "![x](docs/pictures/way.svg)", "![x](pictures/way.svg)"),
        ("docs/operations/lag.md", "](../README.md#for-users)", "](../contents.md#for-users)"),
        ("docs/operations/lag.md", "](README.md)", "](index.md)"),
        ("docs/operations/lag.md", "](../../README.md)", "](../index.md)"),
        ("docs/concepts.md", "](operations/)", "](operations/index.md)"),
        ("docs/concepts.md", "](..)", "](index.md)"),
        ("docs/concepts.md", "](pictures)", "](https://example.org/p/tree/main/docs/pictures)"),
        ("docs/concepts.md", "](#glossary)", "](#glossary)"),
        ("docs/concepts.md", "](https://a.example/docs/lake.md)", "](https://a.example/docs/lake.md)"),
        (".ci/site/api/lake.md", "](../../../docs/lake.md)", "](../lake.md)"),
        (
            "docs/clusters.md",
            "[`x`](../examples/upsert.py#L3)",
            "[`x`](https://example.org/p/blob/main/examples/upsert.py#L3)",
        ),
        ("docs/clusters.md", "](../tests)", "](https://example.org/p/tree/main/tests)"),
        ("docs/clusters.md", "`](../tests)`", "`](../tests)`"),
        ("docs/clusters.md", "```\n](lake.md)\n```", "```\n](lake.md)\n```"),
    ],
)
def test_a_link_leads_to_the_page_or_into_the_repository(
    source: str, link: str, on_the_site: str
) -> None:
    assert with_site_links(f"Text {link}\n", source, HOME) == f"Text {on_the_site}\n"


def test_a_link_to_a_missing_file_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/lake\.md has a link to docs/lakes\.md"):
        with_site_links("[x](lakes.md)", "docs/lake.md", HOME)


def test_every_link_of_the_staged_pages_leads_to_one_of_them(tmp_path: Path) -> None:
    stage(tmp_path / "pages", "main")
    pages = list((tmp_path / "pages").rglob("*.md"))
    assert len(pages) == len(list(sources()))
    for page in pages:
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in _LINK.findall(text):
            with at(f"{target} of {page.name}"):
                assert (page.parent / target).exists()


@pytest.mark.parametrize(
    ("on_github", "for_python_markdown"),
    [
        ("1. a\n\n   ```sh\n   b\n     c\n   ```", "1. a\n\n    ```sh\n    b\n      c\n    ```"),
        ("- a\n  1. b\n\n     c\n\n  d\n- e", "- a\n    1. b\n\n        c\n\n    d\n\n- e"),
        ("- a\n  goes on\n- b\n\nafter", "- a\n    goes on\n- b\n\nafter"),
        ("- a\nlazily\n\nafter", "- a\n    lazily\n\nafter"),
        ("text\n15. no item here", "text\n15. no item here"),
        ("text\n- a\n- b", "text\n\n- a\n- b"),
        ("- a\n# b\nc", "- a\n# b\nc"),
        ("```\n- a\n  b\n```\n\nc", "```\n- a\n  b\n```\n\nc"),
        ("<!-- made -->\n| a |\n|---|\n| `b \\| c` \\| |", "\n| a |\n|---|\n| `b | c` \\| |"),
        ("```html\n<!-- kept -->\n```", "```html\n<!-- kept -->\n```"),
    ],
)
def test_markdown_is_given_as_the_generator_reads_it(on_github: str, for_python_markdown: str) -> None:
    assert for_the_generator(on_github) == for_python_markdown


def test_the_pages_of_the_api_show_public_names_and_all_of_them() -> None:
    pages = "\n".join(path.read_text() for path in (ROOT / ".ci" / "site" / "api").glob("*.md"))
    shown = re.findall(r"^::: (\S+)$", pages, re.MULTILINE)
    modules = {
        name: importlib.import_module(f"informix_cdc.{name}") for name in ("lake", "testing", "db2")
    }
    public = {f"informix_cdc.{name}" for name in {*informix_cdc.__all__} - {"__version__", *modules}}
    public |= {
        f"informix_cdc.{name}.{each}" for name, module in modules.items() for each in module.__all__
    }
    # What a transaction of the emulated server offers is shown too: tests of users write with it.
    assert sorted(shown) == sorted([*public, "informix_emulator.EmulatedTransaction"])
