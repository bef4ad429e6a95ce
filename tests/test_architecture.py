"""What the contracts of pyproject.toml cannot say: who owns a dependency, and how a room is made."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytestmark = pytest.mark.only_in_all  # `make check` runs them

ROOT = Path(__file__).parent.parent
SOURCE_ROOTS = ("connector", "capture_client", "checkpoints")
CLIENT = "capture_client/informix_capture_client/"
EMULATOR = "capture_client/informix_emulator/"
CONNECTOR = "connector/informix_cdc/"
# checkpoints knows positions, errors, failpoints, what may be logged, and the stored form of changes.
CHECKPOINTS_MAY_IMPORT = {
    f"informix_capture_client.{name}"
    for name in ("positions", "errors", "failpoints", "log_events", "shapes")
}
OWNERS = {
    "pyspark": (
        f"{CONNECTOR}spark/",
        f"{CONNECTOR}demo/",
        f"{CONNECTOR}lake/",
        f"{CONNECTOR}db2/",
        f"{CONNECTOR}monitoring/progress_listener.py",
    ),
    "ctypes": (
        *(f"{CLIENT}{room}/odbc" for room in ("transport", "row_fetch", "object_readers")),
        f"{CONNECTOR}lake/durable.py",  # syncfs
    ),
    "deltalake": (f"{CONNECTOR}lake/", f"{CONNECTOR}merge_on_read/"),
    "obstore": (f"{CONNECTOR}merge_on_read/",),
    "pyroaring": (f"{CONNECTOR}merge_on_read/",),
    "tenacity": ("connector/",),
    "click": (f"{CONNECTOR}commands/", f"{CONNECTOR}terminal/"),
    "rich": (f"{CONNECTOR}commands/", f"{CONNECTOR}terminal/", f"{CONNECTOR}demo/"),
    "prometheus_client": (f"{CONNECTOR}monitoring/",),
    # a lock there; here: whether an interrupt came before a request or after it
    "fcntl": ("checkpoints/", f"{EMULATOR}sqli/stream.py"),
    "cryptography": (
        f"{CONNECTOR}executors/certificates.py",
        f"{CONNECTOR}snapshots/sealed_keys.py",
        "checkpoints/informix_checkpoints/spool/spill_files.py",
    ),
}
# Bytes and values in, values out: all of the client but what speaks to a server or runs a thread.
IMPURE_PLACES = (
    *(f"{CLIENT}transport/{name}" for name in ("base.py", "errors.py", "recorder.py", "odbc/")),
    *(f"{CLIENT}transport/sqli/{name}.py" for name in ("admission", "cursor", "transport", "wire")),
    f"{CLIENT}session/",
    f"{CLIENT}failpoints.py",
    f"{CLIENT}log_events.py",
)
MOST_LINES_OF_A_FUNCTION = 50
IMPURE = {"os", "socket", "time", "logging", "pathlib", "threading", "subprocess"}

MODULES = sorted(path for folder in SOURCE_ROOTS for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def docstring_and_imports(path: Path) -> tuple[str, list[ast.Import | ast.ImportFrom]]:
    """Return what all these tests ask of a module, which is parsed once."""
    module = ast.parse(path.read_text())
    found = [node for node in ast.walk(module) if isinstance(node, ast.Import | ast.ImportFrom)]
    return ast.get_docstring(module) or "", found


def imported_names(path: Path) -> Iterator[str]:
    for node in docstring_and_imports(path)[1]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(path: Path) -> list[str]:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return [part for part in parts if part != "__init__"]


# One room each, with one door: their folders are their own affair.
WHOLE_PACKAGES = {("informix_db2",), ("informix_emulator",)}


def room_of(module: list[str]) -> tuple[str, ...]:
    return tuple(module[:1]) if tuple(module[:1]) in WHOLE_PACKAGES else tuple(module[:2])


FILES = {tuple(module_of(path)) for path in MODULES}
PACKAGES = {tuple(module_of(path)) for path in MODULES if path.name == "__init__.py"}
ROOMS = {
    room_of(module_of(init))
    for init in MODULES
    if init.name == "__init__.py" and len(module_of(init)) > 1
} | WHOLE_PACKAGES


def test_other_rooms_import_from_the_room_and_its_own_files_from_the_file() -> None:
    """Only so the names that a room offers stand in one place, its `__all__`."""
    strangers = []
    for path in MODULES:
        own = room_of(module_of(path))
        for node in docstring_and_imports(path)[1]:
            if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
                continue
            parts = node.module.split(".")
            room = room_of(parts)
            from_init = tuple(parts) == room and not all(
                (*room, alias.name) in FILES for alias in node.names
            )
            is_bad = from_init if room == own else tuple(parts) not in PACKAGES
            if room in ROOMS and room != ("informix_cdc", "commands") and is_bad:
                strangers.append(f"{name_of(path)}: from {node.module} import ...")
    assert not strangers


def test_a_room_says_what_it_is_its_rule_and_what_it_offers() -> None:
    for room in ROOMS:
        (init,) = ROOT.glob(f"*/{'/'.join(room)}/__init__.py")
        text, _ = docstring_and_imports(init)
        assert "\n\nRule: " in text, room
        module = import_module(".".join(room))
        assert all(hasattr(module, name) for name in module.__all__), room


def test_each_heavy_dependency_has_one_owner() -> None:
    strangers = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        for name in imported_names(path)
        if not name_of(path).startswith(OWNERS.get(name.partition(".")[0], ""))
    ]
    assert not strangers


def test_checkpoints_know_only_positions_errors_and_stored_changes_of_the_client() -> None:
    strangers = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        if name_of(path).startswith("checkpoints/")
        for name in imported_names(path)
        if name.startswith("informix_capture_client.")
        and ".".join(name.split(".")[:2]) not in CHECKPOINTS_MAY_IMPORT
    ]
    assert not strangers


def test_the_core_is_pure() -> None:
    strangers = [
        f"{name_of(path)} imports {name}"
        for path in MODULES
        if name_of(path).startswith(CLIENT) and not name_of(path).startswith(IMPURE_PLACES)
        for name in imported_names(path)
        if name.partition(".")[0] in IMPURE
    ]
    assert not strangers


def test_every_package_is_shipped_and_says_that_it_is_typed() -> None:
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    shipped = {init.parent for folder in SOURCE_ROOTS for init in (ROOT / folder).glob("*/__init__.py")}
    assert {ROOT / folder for folder in hatch["targets"]["wheel"]["packages"]} == shipped
    assert all((package / "py.typed").exists() for package in shipped)


def test_every_module_opens_with_its_purpose() -> None:
    assert not [name_of(path) for path in MODULES if not docstring_and_imports(path)[0]]


def test_no_folder_of_tests_hides_an_installed_package() -> None:
    """They are importable by their names: tests/docker/ would stand before the package docker."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    assert not folders & set(packages_distributions())


def test_a_function_fits_on_a_screen() -> None:
    long = [
        f"{name_of(path)}: {node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and (node.end_lineno or 0) - node.lineno >= MOST_LINES_OF_A_FUNCTION
    ]
    assert not long


def test_each_public_class_is_defined_once() -> None:
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(path))
    assert not {name: places for name, places in homes.items() if len(places) > 1}


# Of statements that we send: a column's name without the alias of its table may be a built-in function
# (docs/assumptions.md, row 111).
_STATEMENT = re.compile(r"SELECT .* FROM \S|UPDATE \S+ .*SET |DELETE FROM \S", re.DOTALL)
_PART_OF_ONE = re.compile(r" (WHERE|ORDER BY|AND) ")
_TABLES = re.compile(r"\b(FROM|UPDATE|INTO|JOIN|,(?= sysmaster:))\s*[\w:.{}\"]+( t| s)?\b")
_UNQUALIFIED = re.compile(r"""(?<![\w.:{"'])(?:"[^"]*"|[a-z_]\w*)(?![\w(.:])""")
_SENT_FROM = (f"{CLIENT}", f"{CONNECTOR}snapshots/", f"{CONNECTOR}proving/", f"{CONNECTOR}server/")


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module, with `{}` for what is put in; docstrings are none."""
    tree = ast.parse(path.read_text())
    within = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
            yield node.value


def unqualified_columns(statement: str) -> list[str]:
    """Return the columns of a statement, or of a part of one, that have no alias before them."""
    text = re.sub(r"'[^']*'|/\*.*?\*/|\{\+.*?\}", "", statement)
    text = re.sub(r"SET \w+ =|SET \{\} =", "=", _TABLES.sub("", text))
    return _UNQUALIFIED.findall(text)


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SELECT t.a, MAX(t.b) FROM informix.x t WHERE t.c IN (?) ORDER BY t.d", []),
        ("SELECT t.a, b FROM {} t", ["b"]),
        ('SELECT t."a" FROM {} t WHERE "user" = ?', ['"user"']),
        ("UPDATE {} t SET v = t.v WHERE t.id = 1", []),
        ("UPDATE {} SET v = w WHERE id = 1", ["w", "id"]),
        ("DELETE FROM {} t WHERE id = 1", ["id"]),
        (" WHERE tabid > 99 AND t.kind = 'user'", ["tabid"]),
    ],
)
def test_an_unqualified_column_is_found(statement: str, columns: list[str]) -> None:
    assert unqualified_columns(statement) == columns


def test_every_column_of_a_statement_that_we_send_has_the_alias_of_its_table() -> None:
    sent = {
        name_of(path): [
            text for text in texts_of(path) if _STATEMENT.match(text) or _PART_OF_ONE.match(text)
        ]
        for path in MODULES
        if name_of(path).startswith(_SENT_FROM)
    }
    assert sum(map(len, sent.values())) > 60
    assert {
        (name, text): found
        for name, texts in sent.items()
        for text in texts
        if (found := unqualified_columns(text))
    } == {}
    # names that are put into a statement are delimited by `column_of`, but for targets of SET
    delimiting = "informix_capture_client.sql_names.delimited"
    assert {name_of(path) for path in MODULES if delimiting in imported_names(path)} == {
        f"{CONNECTOR}snapshots/connection.py",
        f"{CONNECTOR}proving/sql_text.py",
    }
