"""Compare each page of the built site with its file as GitHub shows it: the same words and list items.

GitHub's Markdown and the generator's differ in places that no warning reports, such as a list without a
blank line above it. Here such a page fails the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from manual.site.pages import BUILT, ROOT, page_of, sources

_GITHUB = MarkdownIt("commonmark").enable("table")
_API = ".ci/site/api/"  # made from docstrings: GitHub shows nothing to compare with
_CONTEXT = 40


class _Shown(HTMLParser):
    """The words of a page without blanks and the signs behind headings, and its list items."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.items = "", 0
        self._in_sign = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.items += tag == "li"
        self._in_sign |= ("class", "headerlink") in attributes

    def handle_endtag(self, tag: str) -> None:
        self._in_sign &= tag != "a"

    def handle_data(self, data: str) -> None:
        if not self._in_sign:
            self.words += "".join(data.split())


def differences() -> Iterator[str]:
    """Yield the pages that show other words or lists than GitHub, and where they begin to differ."""
    for source in sources():
        if source.startswith(_API):
            continue
        built = (BUILT / str(page_of(source))).with_suffix(".html").read_text(encoding="utf-8")
        site = _Shown(built[built.index("<article") : built.index("</article>")])
        github = _Shown(_GITHUB.render((ROOT / source).read_text(encoding="utf-8")))
        if site.words != github.words:
            yield f"{source}: the site shows {_first_difference(site.words, github.words)}"
        elif site.items != github.items:
            yield f"{source}: {site.items} list items on the site, {github.items} on GitHub"


def _first_difference(site: str, github: str) -> str:
    pairs = enumerate(zip(site, github, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(site), len(github)))
    around = slice(max(0, at - _CONTEXT), at + _CONTEXT)
    return f"{site[around]!r}, GitHub {github[around]!r}"
