"""Running the programs that a release needs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class StepFailed(Exception):
    """A step of the release failed; the text says which and how."""


def run(
    *command: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    umask: int = 0o022,
) -> str:
    """Run a command and return what it printed.

    Args:
        command: with its arguments.
        folder: to run in.
        environment: the whole of it; by default this process's.
        umask: of the files that it makes.

    Raises:
        StepFailed: it returned another code than 0; with the end of its output.
    """
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env=dict(environment) if environment is not None else None,
        umask=umask,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        shown = " ".join(map(str, command))
        raise StepFailed(f"`{shown}` returned {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment without anything of this checkout or of the user, but pip's downloads.

    Args:
        home: an empty folder, for settings of programs.
        more: further variables.
    """
    kept = (
        "JAVA_HOME",
        "LANG",
        "LD_LIBRARY_PATH",
        "TZ",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
    )
    found = {name: os.environ[name] for name in kept if name in os.environ}
    pip = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
    pip.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    return {**found, **pip, "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", **more}
