"""Finding and loading the driver: the search, and the libraries that it needs."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from informix_capture_client.dialects import GBASE_8S
from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport.odbc.api import OdbcApi
from informix_capture_client.transport.odbc.elf_header import build_of, build_of_this_python
from informix_capture_client.transport.odbc.library import (
    find_driver,
    installation_of,
    is_driver_manager,
    load_library,
)
from odbc_driver.build import Drivers


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """A client kit's folders, with a driver that is an empty file."""
    for folder in ("lib/cli", "lib/esql"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "lib/cli/libthcli.so").touch()
    return tmp_path


# ---- the search ----


def test_the_driver_of_informixdir_is_found(kit: Path) -> None:
    assert find_driver("", {"INFORMIXDIR": str(kit)}) == str(kit / "lib/cli/libthcli.so")


def test_the_driver_is_found_under_its_other_name(kit: Path) -> None:
    other = (kit / "lib/cli/libthcli.so").rename(kit / "lib/cli/iclit09b.so")
    assert find_driver("", {"INFORMIXDIR": str(kit)}) == str(other)


def test_the_driver_of_hcls_client_15_is_found_in_lib(kit: Path) -> None:
    driver = (kit / "lib/cli/libthcli.so").rename(kit / "lib/libthcli15a.so")
    assert find_driver("", {"INFORMIXDIR": str(kit)}) == str(driver)
    (kit / "msg").mkdir()
    assert installation_of(str(driver)) == kit


def test_a_named_driver_goes_before_informixdir(kit: Path, tmp_path: Path) -> None:
    named = tmp_path / "mine.so"
    named.touch()
    assert find_driver(str(named), {"INFORMIXDIR": str(kit)}) == str(named)


def test_a_name_without_a_folder_is_left_to_the_loader() -> None:
    assert find_driver("libodbc.so.2", {}) == "libodbc.so.2"


def test_a_missing_driver_names_the_places_searched(tmp_path: Path) -> None:
    with pytest.raises(AccessRefused) as caught:
        find_driver("", {"INFORMIXDIR": str(tmp_path)})
    searched = f"libthcli.so, iclit09b.so, libthcli*.so in {tmp_path}/lib/cli and {tmp_path}/lib"
    assert searched in str(caught.value)


def test_without_informixdir_the_error_says_so() -> None:
    with pytest.raises(AccessRefused, match="INFORMIXDIR is not set"):
        find_driver("", {})


def test_a_named_driver_that_does_not_exist_is_a_bad_option(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="option driver"):
        find_driver(str(tmp_path / "none.so"), {})


def test_informixdir_is_derived_from_the_driver_s_path(kit: Path, tmp_path: Path) -> None:
    link = tmp_path / "driver.so"
    link.symlink_to(kit / "lib/cli/libthcli.so")
    assert installation_of(str(kit / "lib/cli/libthcli.so")) == kit
    assert installation_of(str(link)) == kit.resolve()
    assert installation_of("/usr/lib/libthcli.so") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("libodbc.so.2", True),
        ("/usr/lib/libodbc.so.2", True),
        ("libiodbc.so", True),
        ("/x/lib/cli/libthcli.so", False),
        ("libodbcinst.so.2", False),
    ],
)
def test_a_driver_manager_is_known_by_its_file_name(path: str, expected: bool) -> None:
    assert is_driver_manager(path) is expected


# ---- preloading, with a loader that behaves as glibc's ----


class Loader:
    """Knows what each file needs; a file is found by name once it is open."""

    def __init__(self, needs: dict[str, list[str]], *, has_soname: bool = True) -> None:
        self.needs = needs
        self.opened: list[str] = []
        self.modes: list[int] = []
        self._has_soname = has_soname

    def __call__(self, path: str, mode: int = ctypes.RTLD_LOCAL) -> ctypes.CDLL:
        name = Path(path).name
        known = {Path(each).name for each in self.opened} if self._has_soname else set()
        for needed in self.needs.get(name, []):
            if needed not in known:
                reason = "cannot open shared object file: No such file or directory"
                raise OSError(f"{needed}: {reason}")
        self.opened.append(path)
        self.modes.append(mode)
        return ctypes.CDLL(None)


def _driver(kit: Path) -> str:
    return str(kit / "lib/cli/libthcli.so")


def test_needed_libraries_are_opened_first_wherever_the_kit_has_them(kit: Path) -> None:
    for name in ("lib/libgls.so", "lib/esql/libgen.so", "lib/cli/libos.so"):
        (kit / name).touch()
    loader = Loader({"libthcli.so": ["libgen.so", "libos.so"], "libgen.so": ["libgls.so"]})
    load_library(_driver(kit), {}, loader)
    names = [str(Path(each).relative_to(kit)) for each in loader.opened]
    assert names == [
        "lib/libgls.so",
        "lib/esql/libgen.so",
        "lib/cli/libos.so",
        "lib/cli/libthcli.so",
    ]


def test_needed_libraries_are_shared_and_the_driver_s_own_names_are_not(kit: Path) -> None:
    (kit / "lib/libgls.so").touch()
    loader = Loader({"libthcli.so": ["libgls.so"]})
    load_library(_driver(kit), {}, loader)
    assert loader.modes == [ctypes.RTLD_GLOBAL, ctypes.RTLD_LOCAL]


def test_a_library_that_is_nowhere_is_named(kit: Path) -> None:
    with pytest.raises(BadOption, match=r"libgen\.so") as caught:
        load_library(_driver(kit), {}, Loader({"libthcli.so": ["libgen.so"]}))
    assert "LD_LIBRARY_PATH" in caught.value.remedy


def test_a_library_that_opening_does_not_help_is_tried_by_path_and_by_name(kit: Path) -> None:
    (kit / "lib/libgls.so").write_bytes(elf(62))
    loader = Loader({"libthcli.so": ["libgls.so"]}, has_soname=False)
    with pytest.raises(BadOption, match=r"libgls\.so"):
        load_library(_driver(kit), {}, loader)
    first, second = loader.opened
    assert first == str(kit / "lib/libgls.so")
    assert second != first


def test_a_circle_of_needs_ends(kit: Path) -> None:
    for name in ("liba.so", "libb.so"):
        (kit / "lib" / name).touch()
    needs = {"libthcli.so": ["liba.so"], "liba.so": ["libb.so"], "libb.so": ["liba.so"]}
    with pytest.raises(BadOption):
        load_library(_driver(kit), {}, Loader(needs))


def test_informixdir_is_set_before_the_driver_is_loaded(kit: Path) -> None:
    environment: dict[str, str] = {}
    seen: list[str] = []

    def dlopen(path: str, mode: int = 0) -> ctypes.CDLL:
        seen.append(environment["INFORMIXDIR"])
        return ctypes.CDLL(None)

    load_library(_driver(kit), environment, dlopen)
    assert seen == [str(kit)]


def test_a_gbase_driver_is_looked_for_under_its_own_name_and_home(tmp_path: Path) -> None:
    driver = tmp_path / "lib" / "cli" / "iclit09b.so"
    driver.parent.mkdir(parents=True)
    driver.touch()
    homes = {"INFORMIXDIR": "/opt/informix", "GBASEDBTDIR": str(tmp_path)}
    assert find_driver("", homes, GBASE_8S) == str(driver)
    with pytest.raises(AccessRefused, match=r"No GBase 8s ODBC driver .*GBASEDBTDIR is not set"):
        find_driver("", {"INFORMIXDIR": str(tmp_path)}, GBASE_8S)


def test_gbasedbtdir_is_set_before_a_gbase_driver_is_loaded(kit: Path) -> None:
    environment: dict[str, str] = {}
    load_library(_driver(kit), environment, Loader({}), GBASE_8S)
    assert environment == {"GBASEDBTDIR": str(kit)}


def test_an_informixdir_that_is_set_is_respected(kit: Path) -> None:
    environment = {"INFORMIXDIR": "/opt/informix"}
    load_library(_driver(kit), environment, Loader({}))
    assert environment == {"INFORMIXDIR": "/opt/informix"}


# ---- with the real loader ----


def test_a_file_that_is_no_library_is_a_bad_option(kit: Path) -> None:
    Path(_driver(kit)).write_text("not a library")
    with pytest.raises(BadOption, match=r"cannot be loaded.*transport=sqli needs no driver"):
        load_library(_driver(kit), {})


def test_a_library_that_is_no_driver_is_a_bad_option() -> None:
    with pytest.raises(BadOption, match="no function SQLAllocHandle"):
        OdbcApi(ctypes.CDLL("libc.so.6"), bytes.decode)


def test_a_name_that_the_loader_does_not_know_is_a_bad_option() -> None:
    with pytest.raises(BadOption, match="cannot be loaded"):
        load_library("libnosuchdriver.so", {})


def _in_a_fresh_process(code: str, driver: Path) -> subprocess.CompletedProcess[str]:
    """In this one another test may have opened the library that must be missing."""
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "INFORMIXDIR")}
    command = [sys.executable, "-c", code, str(driver)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_split_driver_cannot_be_opened_plainly(drivers: Drivers) -> None:
    done = _in_a_fresh_process("import ctypes, sys; ctypes.CDLL(sys.argv[1])", drivers.split)
    assert done.returncode == 1
    assert "libifxsupport.so: cannot open shared object file" in done.stderr


def test_the_split_driver_is_opened_after_what_it_needs(drivers: Drivers) -> None:
    code = (
        "import os, sys; from informix_capture_client.transport.odbc.library import load_library;"
        "load_library(sys.argv[1]).SQLAllocHandle; sys.stdout.write(os.environ['INFORMIXDIR'])"
    )
    done = _in_a_fresh_process(code, drivers.split)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout) == drivers.split.parents[2]


def test_libraries_with_another_soname_than_their_file_are_found(tmp_path: Path) -> None:
    """As those of HCL's client 15: opening them by their path does not help the loader."""
    lib = tmp_path / "lib"
    lib.mkdir()
    sources = {
        "libgls.so": ("int gls(void) { return 40; }", ["-Wl,-soname,libgls-15.so.1"]),
        "libgen.so": ("int gls(void); int gen(void) { return gls() + 1; }", ["-lgls"]),
        "libthcli15a.so": ("int gen(void); int SQLAllocHandle(void) { return gen() + 1; }", ["-lgen"]),
    }
    for name, (source, words) in sources.items():
        (tmp_path / "source.c").write_text(source)
        made = ["cc", "-shared", "-fPIC", "-o", str(lib / name), str(tmp_path / "source.c")]
        subprocess.run([*made, f"-L{lib}", f"-Wl,-rpath-link,{lib}", *words], check=True)
    # what needs it asks for the name of its file, which a linker does not write
    needing = (lib / "libgen.so").read_bytes()
    assert needing.count(b"libgls-15.so.1\0") == 1
    (lib / "libgen.so").write_bytes(needing.replace(b"libgls-15.so.1", b"libgls.so".ljust(14, b"\0")))
    code = (
        "import sys; from informix_capture_client.transport.odbc.library import load_library;"
        "print(load_library(sys.argv[1]).SQLAllocHandle())"
    )
    done = _in_a_fresh_process(code, lib / "libthcli15a.so")
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


def test_importing_the_transport_loads_no_driver() -> None:
    code = (
        "import sys; import informix_capture_client.transport.odbc.transport;"
        "maps = open('/proc/self/maps').read(); sys.exit('odbc.so' in maps or 'thcli' in maps)"
    )
    assert _in_a_fresh_process(code, Path()).returncode == 0


# ---- a library of another machine ----


def elf(machine: int, bits: int = 64, order: str = "<") -> bytes:
    """The first bytes of a library, as the System V ABI lays them out."""
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    return ident + struct.pack(f"{order}HH", 3, machine) + bytes(44)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (elf(183), "AArch64 (64 bits)"),
        (elf(62), "x86-64 (64 bits)"),
        (elf(3, 32), "x86 (32 bits)"),
        (elf(22, 64, ">"), "IBM Z (64 bits)"),
        (elf(4711), "machine 4711 (64 bits)"),
        (b"\x7fELF", "None"),
        (b"INPUT(libthcli.so.4)" * 3, "None"),
    ],
)
def test_a_library_says_for_which_machine_it_was_built(head: bytes, says: str, tmp_path: Path) -> None:
    library = tmp_path / "libthcli.so"
    library.write_bytes(head)
    assert str(build_of(str(library))) == says


def test_a_library_that_runs_here_is_built_for_this_python(drivers: Drivers) -> None:
    assert build_of(str(drivers.narrow)) == build_of_this_python()
    assert build_of("/no/such/library.so") is None


def test_a_driver_of_another_machine_is_called_so_and_not_a_missing_file(tmp_path: Path) -> None:
    other = tmp_path / "libarm.so"
    other.write_bytes(elf(183 if build_of_this_python().machine != "AArch64" else 62))
    with pytest.raises(BadOption) as caught:
        load_library(str(other))
    assert f"is built for {build_of(str(other))}, but this Python is" in caught.value.message
    assert "transport=sqli needs no driver." in caught.value.remedy
    assert "LD_LIBRARY_PATH" not in str(caught.value)


def test_a_driver_of_32_bits_is_called_so(tmp_path: Path) -> None:
    other = tmp_path / "libthcli.so"
    other.write_bytes(elf(3, 32))
    with pytest.raises(BadOption, match=r"is built for x86 \(32 bits\), but this Python is"):
        load_library(str(other))
