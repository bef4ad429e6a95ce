"""Nothing that the manual names is missing: pages, headings, files, commands, options, error codes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from harness.runs.places import at
from informix_capture_client import errors
from informix_cdc.commands.cli import main as command_line
from manual.made_parts import ROOT

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for folder in ("docs", "examples", "docker") for path in (ROOT / folder).rglob("*.md")),
    ]
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
_PAGE = re.compile(r"\b((?:docs|docker)/[\w/-]+\.md)(?:#([\w-]+))?")
_COMMAND = re.compile(r"\binformix-cdc ([a-z][a-z0-9-]+)([^`\n]*)")
_FLAG = re.compile(r"(?<=\s)--[a-z-]+")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# Words that follow the product's name in prose, and are no commands.
_NO_COMMANDS = {"recording", "demo-workload"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def anchors(path: Path) -> set[str]:
    """Return a page's headings as GitHub turns them into anchors."""
    headings = _HEADING.findall(path.read_text(encoding="utf-8"))
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


def test_every_link_leads_somewhere() -> None:
    for path in PAGES:
        for target, anchor in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
            place = (path.parent / target).resolve() if target else path
            with at(f"{target}#{anchor} of {name_of(path)}"):
                assert place.exists()
                if place.suffix != ".py":  # the lines of code are those of `made_parts`
                    assert not anchor or anchor in anchors(place)


def test_every_page_that_the_product_or_its_files_name_exists() -> None:
    folders = ("connector", "checkpoints", "capture_client", "docker", "examples")
    for path in (each for name in folders for each in (ROOT / name).rglob("*") if each.is_file()):
        if path.suffix in (".py", ".sh", ".yaml", ".yml", ".toml", ".java"):
            for page, anchor in _PAGE.findall(path.read_text(encoding="utf-8")):
                with at(f"{page}#{anchor} of {name_of(path)}"):
                    assert not anchor or anchor in anchors(ROOT / page)
                    assert (ROOT / page).exists()


def test_every_command_exists_and_takes_its_flags() -> None:
    for path in PAGES:
        page = path.read_text(encoding="utf-8").replace("\\\n", " ")  # a line that goes on
        for name, rest in _COMMAND.findall(page):
            if name not in _NO_COMMANDS:
                with at(f"{name} of {name_of(path)}"):
                    parameters = command_line.commands[name].params
                    known = {text for option in parameters for text in option.opts}
                    assert set(_FLAG.findall(rest)) <= known | {"--help"}


def test_every_command_has_its_place_on_the_page_of_commands() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- make docs: command (\S+)(?: \S+)* -->", page)) == sorted(
        command_line.commands
    )


def test_every_error_code_is_explained() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    kinds = errors.InformixCdcError.__subclasses__()
    assert re.findall(r"^### (.+)$", page, re.MULTILINE) == [f"{k.code}: {k.__name__}" for k in kinds]
    assert re.findall(r"^\| (IFXCDC-\d+) \| (\w+)", page, re.MULTILINE) == [
        (kind.code, kind.__name__) for kind in kinds
    ]


def test_every_page_is_reached_from_the_contents() -> None:
    contents = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {target for target, _ in _LINK.findall(contents)}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert not pages - linked, "give them a line in docs/README.md"
    folder = ROOT / "docs" / "operations"
    index = (folder / "README.md").read_text(encoding="utf-8")
    tasks = {path.name for path in folder.glob("*.md")} - {"README.md"}
    assert tasks == {target for target, _ in _LINK.findall(index) if "/" not in target}


def test_no_two_decisions_have_one_number() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert sorted(numbers) == sorted(set(numbers))


def test_every_decision_that_is_named_exists() -> None:
    numbers = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    product = (
        path
        for folder in ("connector", "capture_client", "checkpoints", "tests")
        for path in (ROOT / folder).rglob("*.py")
    )
    for path in [*PAGES, *product]:
        for named in re.findall(r"\bdecisions?[\s#\[]+(\d{4})\b", path.read_text(encoding="utf-8")):
            with at(f"decision {named} of {name_of(path)}"):
                assert named in numbers
