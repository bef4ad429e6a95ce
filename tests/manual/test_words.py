"""Text that users see has the field's words: no word of the list below may come back.

Rule: the list is a ratchet. A word joins it when readers stumbled over it; `docs/concepts.md` has the
words to use instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from harness.runs.places import at
from informix_capture_client.log_events import EVENTS
from informix_cdc.monitoring.figures import ABOUT, FIGURES
from informix_cdc.options.source import option_rows
from manual.made_parts import ROOT

# what may not stand in a text: what to write
HOUSE_WORDS = {
    r"rows (?:that|which) (?:were|are) (?:already )?there": "existing rows",
    r"(?:is|are|was|be) told\b(?! apart)|\bas told\b": "is reported, is logged",
    r"\btells? (?:of|that|whether|how|what|where)\b": "reports, shows",
    r"\bhears?\b|\bheard\b": "receives",
    r"\bjudge[sd]?\b": "checks",
    r"\bexcuse[sd]?\b": "resets the deadline",
    r"\bbeside\b": "while, next to, in addition to",
    r"\banchor(?:ed)?\b": "start offset",
    r"\bwitness(?:ed)?\b": "continuity check, independent client",
    r"\bscouts?\b": "probe",
    r"\bformer\b": "previous",
    r"\bupto\b": "up to",
    r"\bwhoever\b|\bwhatever\b|\bnobody\b|\bno one\b": "rewrite the sentence",
    r"(?<!here )\b(?:is|are|was) no (?!longer|more)\w+": "is not a ...",
    r"\bof which (?:only|no)\b|\bnor (?:is|are|does)\b": "rewrite the sentence",
    r"\bmends?\b|\bmended\b": "fixes",
    r"\bgoes on\b|\bgo on\b|\bwent on\b|\bgoing on\b": "continues, resumes",
    r"\bstands? still\b|\bstood still\b": "stalls, does not advance",
    r"\bbad days?\b|\bstorms?\b|\bdies\b|\bdied\b|\blives on\b": "failure, exits, keeps running",
    r"\bfrom anywhere\b|\bdoes without\b|\bdo without\b": "rewrite the sentence",
    r"\bon (?:its|their) way\b": "in transit",
    r"\bis rid of\b|\bbe rid of\b": "removes",
}
_ALL = re.compile("|".join(f"(?:{word})" for word in HOUSE_WORDS), re.IGNORECASE)

USER_PAGES = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docker/README.md"),
    "examples/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "operations").glob("*.md")),
)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK_TARGET = re.compile(r"\]\([^)]*\)")


def found_in(text: str) -> list[str]:
    """Return the house words of a text, outside of what it quotes as code."""
    return [match[0] for match in _ALL.finditer(_CODE.sub("", text))]


def blanked(page: str) -> str:
    """Return a page without its code; lines keep their numbers."""
    return _CODE.sub(lambda found: "\n" * found[0].count("\n"), page)


def declared_texts() -> Iterator[tuple[str, str]]:
    """Yield where a text that the manual is made from stands, and the text."""
    for name, _, meaning in option_rows():
        yield f"option {name}", meaning
    for event in EVENTS.values():
        yield f"log event {event.name}", event.meaning
    for figure in FIGURES:
        yield f"figure {figure.progress_key}", figure.meaning
    yield from ((f"metric {name}", meaning) for name, meaning in ABOUT.items())


def messages() -> Iterator[tuple[str, str]]:
    """Yield file and line of each sentence in the product's code: a text of four words or more."""
    for package in ("connector/informix_cdc", "checkpoints", "capture_client/informix_capture_client"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            docstrings = {
                id(node.body[0].value)
                for node in ast.walk(tree)
                if isinstance(node, documented) and ast.get_docstring(node) is not None
                if isinstance(node.body[0], ast.Expr)
            }
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Constant)
                    and isinstance(node.value, str)
                    and id(node) not in docstrings
                    and len(node.value.split()) >= 4
                ):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield what `--help` prints: the docstrings of commands."""
    for path in sorted((ROOT / "connector/informix_cdc/commands").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(each).startswith(("click.command", "group", "main.command"))
                for each in node.decorator_list
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", ast.get_docstring(node) or ""


@pytest.mark.parametrize("texts", [declared_texts, messages, help_texts])
def test_no_house_word_is_in_a_text_that_users_see(texts: object) -> None:
    wrong = [f"{where}: {found}" for where, text in texts() if (found := found_in(text))]  # type: ignore[operator]
    assert not wrong, "\n".join(["write it in the field's words:", *wrong])


@pytest.mark.parametrize("page", USER_PAGES)
def test_no_house_word_is_in_a_page(page: str) -> None:
    text = _LINK_TARGET.sub("]", blanked((ROOT / page).read_text(encoding="utf-8")))
    lines = [(number, found_in(line)) for number, line in enumerate(text.splitlines(), 1)]
    with at(page):
        assert [(number, found) for number, found in lines if found] == []
