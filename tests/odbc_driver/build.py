"""Compiles the test driver with the system's C compiler; no ODBC headers are needed.

Rule: what is compiled is kept under a name made of the sources' content, so that every test run and
every process shares one build, and a changed source can never meet an old library.

    narrow   libthcli.so with the narrow functions only
    wide     the same with 4-byte W functions, as Informix's driver has on Linux
    split    an installation: lib/cli/libthcli.so needs lib/esql/libifxsupport.so, no RPATH

INFORMIX_CDC_TEST_DRIVER names another library for the narrow one: so the sanitised build is tested.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

OTHER_DRIVER = "INFORMIX_CDC_TEST_DRIVER"
_HERE = Path(__file__).resolve().parent
_DRIVER = (
    "driver.c",
    "wide.c",
    "connection_string.c",
    "code_sets.c",
    "error_texts.c",
    "login.c",
    "messages.c",
    "parameters.c",
    "packed.c",
    "values.c",
    "results.c",
    "blocks.c",
    "large_objects.c",
    "simple_objects.c",
    "exchange.c",
)
_SUPPORT = ("wire.c",)
_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    # calls between our own SQL... functions must not end up in a driver manager's
    "-Wl,-Bsymbolic",
    # a forgotten function is a fault of the build, not of the first call to it
    "-Wl,-z,defs",
)
_SANITISERS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Drivers(NamedTuple):
    """The three builds of the driver."""

    narrow: Path
    wide: Path
    split: Path


def build_drivers() -> Drivers:
    """Compile what is not yet compiled, and return the libraries; skip where there is no `cc`."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: install one (cc) to test OdbcTransport")
    drivers = build(_folder())
    return drivers._replace(narrow=Path(os.environ.get(OTHER_DRIVER, drivers.narrow)))


def build_sanitised() -> tuple[Path, str]:
    """Compile with the sanitisers of addresses and undefined behaviour; return what to preload too.

    Skips where the compiler has none.
    """
    build_drivers()
    names = [_runtime(name) for name in ("libasan.so", "libubsan.so")]
    library = _folder() / _digest() / "sanitised" / "libthcli.so"
    if not library.exists():
        draft = library.with_name(f"draft-{os.getpid()}.so")
        _compile(draft, (*_DRIVER, *_SUPPORT), *_SANITISERS)
        draft.rename(library)
    return library, " ".join(names)


def _runtime(name: str) -> str:
    said = subprocess.run(
        ["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(said).is_absolute():
        pytest.skip(f"the C compiler has no {name}")
    return said


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / f"informix-cdc-test-driver-{os.getuid()}"


def build(folder: Path) -> Drivers:
    """Compile into a folder; one subfolder per content of the sources."""
    done = folder / _digest()
    if not done.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder, prefix="draft-"))
        _compile_all(draft)
        _publish(draft, done)
    return _drivers(done)


def _drivers(root: Path) -> Drivers:
    return Drivers(
        root / "narrow" / "lib" / "cli" / "libthcli.so",
        root / "wide" / "lib" / "cli" / "libthcli.so",
        root / "split" / "lib" / "cli" / "libthcli.so",
    )


def _compile_all(root: Path) -> None:
    drivers = _drivers(root)
    _compile(drivers.narrow, (*_DRIVER, *_SUPPORT))
    _compile(drivers.wide, (*_DRIVER, *_SUPPORT), "-DWIDE4")
    support = root / "split" / "lib" / "esql" / "libifxsupport.so"
    _compile(support, _SUPPORT)
    _compile(drivers.split, _DRIVER, f"-L{support.parent}", "-lifxsupport")


def _compile(library: Path, sources: tuple[str, ...], *more: str) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", *_FLAGS, f"-Wl,-soname,{library.name}", "-o", str(library)]
    command += [*(str(_HERE / source) for source in sources), *more, "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"the test driver does not compile:\n{' '.join(command)}\n{done.stderr}")


def _publish(draft: Path, done: Path) -> None:
    """Give the draft its name; another process may have been faster, and its build is the same."""
    try:
        draft.rename(done)
    except OSError:
        shutil.rmtree(draft)
        if not done.is_dir():
            raise


def _digest() -> str:
    content = hashlib.sha256(repr(_FLAGS).encode())
    for source in sorted([*_HERE.glob("*.[ch]"), Path(__file__)]):
        content.update(source.name.encode() + source.read_bytes())
    return content.hexdigest()[:20]
