"""Which file of the repository is which page of the site, and where its links lead there.

A link to a file that is not a page leads to the repository, at the commit that the site was built of.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from manual.site.markdown import for_the_generator, outside_code

ROOT = Path(__file__).resolve().parents[3]
STAGED, BUILT = ROOT / "build" / "site" / "pages", ROOT / "build" / "site" / "html"
# Where the site leads to until pyproject.toml says it: `Source` of [project.urls].
_NO_HOME_YET = "https://example.org/informix-cdc"
# Pages outside of docs/, and the one that would take the place of the home page.
_NAMED = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "examples/README.md": "examples.md",
    "docker/README.md": "docker.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "CHANGELOG.md": "changelog.md",
}
_DOCS, _API = "docs/", ".ci/site/api/"
_LINK = re.compile(r"`[^`\n]+`|(?P<bracket>\]\()(?P<target>(?!https?:|mailto:|#)[^)#\s]+)")


def repository() -> str:
    """Return the address of the repository, as pyproject.toml has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("Source", _NO_HOME_YET)).rstrip("/")


def sources() -> Iterator[str]:
    """Yield the files that are pages, from the repository's top."""
    yield from _NAMED
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / _API).glob("*.md")]):
        name = path.relative_to(ROOT).as_posix()
        if name not in _NAMED:
            yield name


def page_of(source: str) -> str | None:
    """Return the place of a file on the site, or None if it is not there."""
    if source in _NAMED:
        return _NAMED[source]
    if source.startswith(_API):
        return f"api/{source.removeprefix(_API)}"
    if not source.startswith(_DOCS) or not source.endswith((".md", ".svg")):
        return None
    folder, name = posixpath.split(source.removeprefix(_DOCS))
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def with_site_links(text: str, source: str, home: str) -> str:
    """Return a page whose links lead to pages of the site, or else into the repository.

    Args:
        text: the page.
        source: its file, from the repository's top.
        home: address of the repository's files at one commit, with `{kind}` for `blob` or `tree`.

    Raises:
        FileNotFoundError: a link leads to a file that does not exist.
    """

    def replaced(found: re.Match[str]) -> str:
        if not found["bracket"]:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["target"]))
        return "](" + _destination(target, source, home)

    return outside_code(text, lambda part: _LINK.sub(replaced, part))


def _destination(target: str, source: str, home: str) -> str:
    path = ROOT / target
    if not path.exists():
        raise FileNotFoundError(f"{source} has a link to {target}, which does not exist.")
    readme = posixpath.normpath(f"{target}/README.md")
    page = page_of(readme if (ROOT / readme).exists() else target)
    if page:
        return posixpath.relpath(page, posixpath.dirname(page_of(source) or "") or ".")
    return f"{home.format(kind='tree' if path.is_dir() else 'blob')}/{target}"


def stage(folder: Path, commit: str) -> None:
    """Write all pages and pictures into an empty folder, for the generator.

    Args:
        folder: it is removed first.
        commit: branch or tag of the repository that links lead to.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures")
    shutil.copy(ROOT / ".ci" / "site" / "site.css", folder)
    home = f"{repository()}/{{kind}}/{commit}"
    for source in sources():
        page = folder / (page_of(source) or source)
        page.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / source).read_text(encoding="utf-8")
        page.write_text(for_the_generator(with_site_links(text, source, home)), encoding="utf-8")
