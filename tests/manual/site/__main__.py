"""Build the documentation site; runs in the environment of `make site`.

python -m manual.site              into build/site/html
python -m manual.site VERSION      as a version of the site, on the branch `site` of this repository
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from manual.site.faithful import differences
from manual.site.pages import ROOT, STAGED, repository, stage

CONFIGURATION = ROOT / ".ci" / "site" / "mkdocs.yml"


def run(*command: str, **environment: str) -> None:
    """Run a tool of this environment at the repository's top, and end with it if it fails."""
    tools = Path(sys.executable).parent
    known = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",  # mike runs mkdocs
        "SITE_REPOSITORY": repository(),
        **environment,
    }
    line = [str(tools / command[0]), *command[1:], "--config-file", str(CONFIGURATION)]
    ended = subprocess.run(line, cwd=ROOT, env=known, check=False)
    if ended.returncode:
        sys.exit(ended.returncode)


def main() -> None:
    """Write the pages for the generator, and run it."""
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    stage(STAGED, f"v{version}" if version else "main")
    run("mkdocs", "build", "--clean")
    if found := list(differences()):
        sys.exit("\n".join(["Pages show something else than on GitHub:", *found]))
    if not version:
        return
    series = ".".join(version.split(".")[:2])
    title = f"--title={version}"
    branch = "--branch=site"
    run(
        "mike",
        "deploy",
        branch,
        title,
        "--update-aliases",
        "--alias-type=redirect",
        series,
        "latest",
        SITE_VERSIONS="mike",
    )
    run("mike", "set-default", branch, "latest")


if __name__ == "__main__":
    main()
