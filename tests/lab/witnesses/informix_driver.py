"""informix-driver (PyPI, MIT), a pure Python client of SQLI, and the integration tests in its sdist.

Rule: its author ran these tests on live 12.10.FC12W1DE, 14.10.FC7W1DE and 15.0.1.0.3DE, and wrote down
what those answered. They run here as they are, in an environment of their own under .witnesses/: the
sdist is what its checksum says, or it is not used.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

from lab.witnesses.informix_driver_needs import NOT_RUN
from lab.witnesses.jars import HOME, NotHere

VERSION = "2026.9.3"
_SHA256 = "f72519cbd90c0710c61b6c559149e3a0cf55e2d6f1a09b7a37ea51c4a76ef979"
_RUNNERS = ("pytest==9.2.0", "pytest-asyncio==1.5.0")
_HOME = HOME / f"informix-driver-{VERSION}"
_SECONDS = 600

# by names such as test_select::test_fetchmany: what a test has shown, passed, failed or skipped
Results = dict[str, str]


def results(port: int, folder: Path) -> Results:
    """Run its integration tests against a server on this machine."""
    python, sources = _python(), _sources()
    report = folder / "informix-driver.xml"
    told = {"IFX_PORT": str(port), "PYTHONPATH": str(sources / "src")}
    which = ["-m", "integration", "--ignore", "tests/benchmarks"]
    which += [part for name in NOT_RUN for part in ("--deselect", name)]
    how = ["-q", "-p", "no:cacheprovider", "--junitxml", str(report)]
    ran = subprocess.run(
        [str(python), "-m", "pytest", "tests", *which, *how],
        cwd=sources,
        env=os.environ | told,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert report.exists(), ran.stdout[-3000:] + ran.stderr[-3000:]
    return {_name(case): _outcome(case) for case in ElementTree.parse(report).iter("testcase")}


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}"


def _outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def _python() -> Path:
    """Make the environment that the tests run in, once."""
    python = _HOME / "bin" / "python"
    if not (_HOME / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(_HOME)], check=True)
        _pip(python, "install", *_RUNNERS)
        (_HOME / "done").touch()
    return python


def _sources() -> Path:
    """Fetch the sdist and unpack it, once."""
    unpacked = _HOME / f"informix_driver-{VERSION}"
    if not unpacked.exists():
        fetching = ["--no-deps", "--no-binary", "informix-driver", "--dest", str(_HOME)]
        _pip(_HOME / "bin" / "python", "download", *fetching, f"informix-driver=={VERSION}")
        sdist = _HOME / f"{unpacked.name}.tar.gz"
        if hashlib.sha256(sdist.read_bytes()).hexdigest() != _SHA256:
            raise ValueError(
                f"{sdist.name} from PyPI is not the file that {Path(__file__).name} names by its"
                " SHA-256: look at where it came from before you change that"
            )
        with tarfile.open(sdist) as archive:
            archive.extractall(_HOME, filter="data")
    return unpacked


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--quiet", *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise NotHere(f"informix-driver {VERSION} cannot be had: {made.stderr[-300:]}")
