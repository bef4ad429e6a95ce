"""README as the long description of a release, which is read on an index and not in a clone.

Rule: pure. The home of the repository is `[project.urls] Source` of pyproject.toml, and named nowhere
else.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:)([^)\s]+)\)")
_CLONE_ONLY = re.compile(r"^<!--clone-->\n.*?^<!--/clone-->\n+", re.MULTILINE | re.DOTALL)
_FROM_CLONE = re.compile(r"\bpip install ('?)\.(\[[\w,-]+\])?(?=['\s])")
_GITHUB = "https://github.com/"


def long_description(readme: str, name: str, home: str, tag: str) -> str:
    """Return README for an index.

    Links and pictures are absolute and lead to the tag, so that they still fit after later changes.
    `pip install .` becomes `pip install NAME`, and what only makes sense in a clone is left out.

    Args:
        readme: README.md; its parts for a clone are between `<!--clone-->` and `<!--/clone-->`.
        name: of the distribution.
        home: URL of the repository.
        tag: of the release.

    >>> long_description("[more](docs/a.md#b)", "x", "https://github.com/o/x", "v1")
    '[more](https://github.com/o/x/blob/v1/docs/a.md#b)'
    """

    def absolute(found: re.Match[str]) -> str:
        is_picture, text, target = found.groups()
        to = raw_url(home, tag, target) if is_picture else page_url(home, tag, target)
        return f"{is_picture}[{text}]({to})"

    parts = _FENCE.split(_CLONE_ONLY.sub("", readme))
    return "".join(
        _FROM_CLONE.sub(rf"pip install \g<1>{name}\g<2>", part)
        if part.startswith("```")
        else _LINK.sub(absolute, part)
        for part in parts
    )


def page_url(home: str, tag: str, target: str) -> str:
    """Return the URL of a page as the repository shows it; an anchor alone is one of README's."""
    path = f"README.md{target}" if target.startswith("#") else target
    return f"{home}/blob/{tag}/{path}"


def raw_url(home: str, tag: str, path: str) -> str:
    """Return the URL of a file itself: a page of the repository is HTML, and no picture."""
    if home.startswith(_GITHUB):
        return f"https://raw.githubusercontent.com/{home.removeprefix(_GITHUB)}/{tag}/{path}"
    return f"{home}/raw/{tag}/{path}"
