"""`informix-cdc mirror`: the plan, which names all problems at once, and what a file may say."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import Result
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkRuntimeError, StreamingQueryException

from connector.commands.commands import refusal, run_plain
from harness.lake.object_stores import object_store
from harness.servers.stores import PASSWORD, source_options
from harness.spark.checkpoints import run_batches
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position
from informix_cdc.commands import mirror as command
from informix_cdc.commands.configuration import read_mirror_file
from informix_cdc.lake import MirrorSettings, checked_settings, running
from informix_cdc.lake.epochs import Beginning
from informix_cdc.lake.sessions import session_settings
from informix_cdc.options import PASSWORD_VARIABLE
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.table_states import TableState
from informix_emulator import EmulatedServer, ListeningServer, keep_rows

HEAD = """\
into = "{folder}/lake"
checkpoint = "{folder}/checkpoint"
"""
SOURCE = """
[source]
host = "127.0.0.1"
port = {port}
transport = "sqli"
server = "informix"
database = "stores"
table = "informix.*"
"""


@contextmanager
def served(*tables: tuple[str, str]) -> Iterator[int]:
    server = EmulatedServer("informix", {"informix": PASSWORD})
    server.create_database("stores", logged=True, locale="en_US.utf8")
    keep_rows(server)
    for name, columns in tables:
        server.create_table(f"stores:{name}", columns)
    with ListeningServer(server) as listening:
        yield listening.port


def written(folder: Path, port: int, *, head: str = "", source: str = "", tables: str = "") -> str:
    text = HEAD.format(folder=folder) + head + SOURCE.format(port=port) + source + "\n" + tables
    path = folder / "mirror.toml"
    path.write_text(text)
    return str(path)


def test_a_plan_shows_each_table_its_key_and_its_types_and_writes_nothing(tmp_path: Path) -> None:
    orders = ("informix.orders", "order_num serial primary key, took interval hour(2) to second")
    with served(orders) as port:
        path = written(tmp_path, port)
        found = run_plain("mirror", path, "--plan", "--columns")
        short = run_plain("mirror", path, "--plan")
        shown = json.loads(run_plain("mirror", path, "--plan", "--json").stdout)
    assert found.exit_code == 0, found.output
    head = "informix.orders -> orders  (current; key order_num)\n"
    assert short.stdout == head
    assert shown["problems"] == []
    assert shown["tables"][0]["columns"][1] == {
        "name": "took", "informix": "INTERVAL HOUR(2) TO SECOND", "lake": "BIGINT"
    }  # fmt: skip
    assert found.stdout == (
        f"{head}  order_num  SERIAL -> INT\n  took       INTERVAL HOUR(2) TO SECOND -> BIGINT\n"
    )
    assert "1 table, 0 problems. Nothing was written." in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mirror.toml"]


def test_the_plan_of_iceberg_tables_has_iceberg_s_types_and_names(tmp_path: Path) -> None:
    with served(("informix.orders", "id serial primary key, size smallint")) as port:
        path = Path(written(tmp_path, port, head='format = "iceberg"\n'))
        path.write_text(path.read_text().replace(f"{tmp_path}/lake", "lake.stores"))
        found = run_plain("mirror", str(path), "--plan", "--columns")
    assert found.stdout == (
        "informix.orders -> orders  (current; key id)\n  id    SERIAL -> INT\n  size  SMALLINT -> INT\n"
    )


PROBLEMS = [
    ("informix.orders", "order_num serial primary key", None),
    ("informix.nokey", "a integer", "its rows cannot be identified"),
    ("informix.tags", "id serial primary key, t set(integer not null)", "columns cannot be captured"),
    ("informix.lines", 'id serial primary key, "Line No" integer', "that Delta Lake does not allow"),
    ("joe.orders", "id serial primary key", "its target orders is the same as that of"),
    (
        "informix.soft",
        "id serial primary key, _deleted_at date",
        "the name of a column that the mirror adds",
    ),
    ("informix._informix_cdc_x", "id serial primary key", "its target would be named"),
]


def test_a_plan_names_everything_that_is_in_the_way_in_one_run(tmp_path: Path) -> None:
    tables = '[tables."informix.soft"]\ndeletes = "soft"\n[tables."informix.gone"]\nkeep = "history"\n'
    with served(*((name, columns) for name, columns, _ in PROBLEMS)) as port:
        path = written(tmp_path, port, tables=tables)
        Path(path).write_text(Path(path).read_text().replace('"informix.*"', '"*.*,!*.x*"'))
        found = run_plain("mirror", path, "--plan")
        assert found.exit_code == 1
        shown = " ".join(found.stderr.split())
        for name, _, why in PROBLEMS:
            assert (f"Problem: {name}: " in shown) == (why is not None), name
            assert why is None or why in shown, why
        assert "Problem: informix.gone: it has settings, but is not a table of the mirror." in shown
        assert "7 problems. Nothing was written." in shown
        refused = refusal(run_plain("mirror", path), 2)
    assert all(why is None or why in refused for _, _, why in PROBLEMS)
    assert not (tmp_path / "lake").exists()


def test_a_plan_names_targets_that_a_catalog_cannot_have(tmp_path: Path) -> None:
    tables = '[tables."informix.items"]\nname = "line-items"\n'
    names = ("informix.orders", "informix.items", 'informix."größe"')
    with served(*((name, "id serial primary key") for name in names)) as port:
        plain = run_plain("mirror", written(tmp_path, port, tables=tables), "--plan")
        path = written(tmp_path, port, head='catalog = "main.stores"\n', tables=tables)
        found = run_plain("mirror", path, "--plan")
    assert "line-items" not in plain.stderr
    shown = " ".join(found.stderr.split())
    assert 'informix.items: its target "line-items" cannot be registered in main.stores.' in shown
    assert "using the letters a to z, digits and _." in shown
    assert shown.count("cannot be registered in") == 2


def test_a_plan_looks_at_tables_without_the_spark_that_writes_them(tmp_path: Path) -> None:
    into, checkpoint = f"{tmp_path}/lake", f"{tmp_path}/checkpoint"
    settings = MirrorSettings.of(into=into, checkpoint=checkpoint, engine="spark")
    assert Beginning(settings, "informix", "stores").error() is None


def test_a_plan_looks_at_folders_and_at_what_the_mirror_was(tmp_path: Path) -> None:
    """Nothing of it is found only when changes would be lost."""
    with served(("informix.orders", "order_num serial primary key")) as port:
        path = Path(written(tmp_path, port))
        text = path.read_text()
        settings = MirrorSettings.of(into=f"{tmp_path}/lake", checkpoint=f"{tmp_path}/checkpoint")
        Beginning(settings, "informix", "stores").begin(may_begin_epoch=False)
        there = sorted(tmp_path.rglob("*"))
        for changed, why in (
            ('keep = "history"\n' + text, "keep was .current. and is .history."),
            (text.replace("/lake", "/pond"), r"into was .*/lake. and is .*/pond"),
            ('table_name = "x_{table}"\n' + text, "table_name was .{table}. and is .x_{table}"),
            (
                text.replace("/checkpoint", "/other"),
                "In doubt: the checkpoint .* is new, but .*/lake has",
            ),
            (text.replace(f"{tmp_path}/lake", "/proc/lake"), "into /proc/lake cannot be written: "),
            (
                text.replace(f"{tmp_path}/checkpoint", "/proc/c"),
                "checkpoint /proc/c cannot be written: ",
            ),
        ):
            path.write_text(changed)
            found = run_plain("mirror", str(path), "--plan")
            assert re.search(why, " ".join(found.stderr.split())), (why, found.stderr)
        path.write_text('retain = "1 day"\n' + text)
        found = run_plain("mirror", str(path), "--plan")
        assert (found.exit_code, sorted(tmp_path.rglob("*"))) == (0, there)
        assert "Versions of 1 day are kept." in found.stderr
        assert "gets a commit every 1.73 s at most" in found.stderr
        path.write_text('maintain = "off"\n' + text)
        assert "No maintenance:" in run_plain("mirror", str(path), "--plan").stderr


@pytest.mark.parametrize(
    ("into", "checkpoint", "is_refused"),
    [
        ("/x/lake", "/x/lake", True),
        ("/x/lake", "/x/lake/", True),
        ("/x/lake", "/x/lake/orders", True),
        ("/x/lake", "/x", True),
        ("/x/lake", "file:///x/y/../lake/c", True),
        ("s3://b/lake", "s3a://b/lake/c", True),
        ("/x/lake", "/x/lakes", False),
        ("s3://b/lake", "/x/lake", False),
    ],
)
def test_a_checkpoint_lies_beside_the_tables(into: str, checkpoint: str, is_refused: bool) -> None:
    """VACUUM would remove it as files that no table names."""
    if is_refused:
        with pytest.raises(BadOption, match="lie in each other"):
            MirrorSettings.of(into=into, checkpoint=checkpoint)
    else:
        MirrorSettings.of(into=into, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("option", "place", "is_refused"),
    [
        ("spoolPath", "/x/lake/spool", True),
        ("captureAt", "/x", True),
        ("spoolPath", "/x/spool", False),
        ("captureAt", "grpc+tls://lake:8815", False),
    ],
)
def test_a_spool_lies_beside_the_tables(
    option: str, place: str, is_refused: bool, tmp_path: Path
) -> None:
    source = source_options(1, table="informix.*")
    if option == "captureAt":
        source = {"reader": "r"} | ({"readerFile": str(tmp_path)} if "://" in place else {})
    source[option] = place
    given = {"into": "/x/lake", "checkpoint": "/x/checkpoint"}
    if is_refused:
        with pytest.raises(BadOption, match=f"{option} {place} and into /x/lake lie in each other"):
            checked_settings(given, source)
    else:
        assert checked_settings(given, source).into == "/x/lake"


def test_the_plan_says_which_tables_are_merged_on_read(tmp_path: Path) -> None:
    tables = [("informix.orders", "id serial primary key"), ("informix.items", "id serial primary key")]
    with served(*tables) as port:
        head = 'merge = "on-read"\n'
        found = run_plain("mirror", written(tmp_path, port, head=head), "--plan")
        assert found.stdout.count("(current; key id; merged on read)") == 2
        special = '[tables."informix.items"]\nkeep = "changes"\nmerge = "on-read"\n'
        found = run_plain("mirror", written(tmp_path, port, tables=special), "--plan")
        path = Path(written(tmp_path, port, head='format = "iceberg"\n' + head))
        path.write_text(path.read_text().replace(f"{tmp_path}/lake", "lake.stores"))
        iceberg = run_plain("mirror", str(path), "--plan")
    assert iceberg.stdout.count("(current; key id; merged on read)") == 2
    assert found.exit_code == 1
    assert "informix.items: merge is on-read, which is for tables of current rows or" in found.stderr
    assert "merged on read" not in found.stdout


@pytest.mark.slow
def test_a_store_without_conditional_writes_is_for_one_writer(tmp_path: Path) -> None:
    with served(("informix.orders", "id serial primary key")) as port, object_store() as store:
        place = f'into = "{store.url("lake")}"\ncheckpoint = "{tmp_path}"\n'
        options = "".join(f'{name} = "{value}"\n' for name, value in store.options.items())

        def planned(**settings: str) -> Result:
            head = place + "".join(f'{name} = "{value}"\n' for name, value in settings.items())
            (tmp_path / "mirror.toml").write_text(
                f"{head}\n[storage_options]\n{options}{SOURCE.format(port=port)}"
            )
            return run_plain("mirror", str(tmp_path / "mirror.toml"), "--plan")

        found = planned(merge="on-read")
        assert (found.exit_code, "merged on read" in found.stdout) == (0, True)
        store.set(ignores_conditions=True)
        found = planned()
        assert found.exit_code == 1
        assert "lose rows" in found.stderr
        assert "set engine to embedded" in found.stderr
        assert planned(engine="embedded").exit_code == 0
        found = planned(engine="embedded", merge="on-read")
        assert "merge is on-read, but the store replaces files" in found.stderr


def test_large_tables_are_merged_on_read_unless_the_settings_say_otherwise() -> None:
    def on_read(rows: int, **given: str) -> bool:
        settings = MirrorSettings.of(**{"into": "/lake/t", "checkpoint": "/c", **given})
        return settings.merges_on_read("informix.orders", rows)

    assert [on_read(rows) for rows in (0, 999_999, 1_000_000)] == [False, False, True]
    assert on_read(0, merge="on-read")
    assert not on_read(10**9, merge="on-write")
    for other in ({"keep": "changes"}, {"engine": "spark"}):
        assert not on_read(10**9, merge="on-read", **other)
    for other in ({"keep": "history"}, {"deletes": "soft"}):
        assert on_read(10**6, **other)


def test_tables_of_an_object_store_are_written_eight_at_a_time_unless_set() -> None:
    store = {"into": "s3://bucket/lake", "checkpoint": "/c"}
    assert MirrorSettings.of(**store).threads == 8
    assert MirrorSettings.of(**store, parallelism=20).threads == 20


@pytest.mark.parametrize("name", ["a%20b", "100%25", "[x]", "a\\b"])
def test_a_folder_that_delta_rs_cannot_open_is_refused(name: str) -> None:
    with pytest.raises(BadOption, match="delta-rs cannot open a folder with"):
        MirrorSettings.of(into=f"/lake/{name}", checkpoint="/c")


MISTAKES: list[tuple[str, dict[str, str], list[str]]] = [
    ("not TOML", {"head": "keep = "}, ["is not TOML: Invalid value (at line"]),
    (
        "several at once",
        {"head": 'keep = "all"\nparalelism = 3\n', "tables": '[tables."informix.a"]\nkep = "history"'},
        [
            "keep must be current or history or changes, not 'all'",
            "did you mean parallelism?",
            "informix.a has no 'kep'; did you mean keep?",
        ],
    ),
    (
        "a table without quotes",
        {"tables": '[tables.informix.a]\nkeep = "history"'},
        ['the name of a table must be quoted: [tables."informix.a"].'],
    ),
    (
        "a list of other things",
        {"source": "columns = [1, 2]"},
        ["columns in [source] must be a single value", "with commas"],
    ),
    ("a list for Spark", {"tables": '[spark]\nx = ["a"]'}, ["x in [spark] must be a single value"]),
    (
        "no text",
        {"head": "trigger = 10\n"},
        ["trigger must be an interval such as '10 seconds', not 10"],
    ),
    (
        "a trigger that is no interval",
        {"head": 'trigger = "ten seconds"\n'},
        ["trigger must be an interval such as '10 seconds', not 'ten seconds'"],
    ),
    (
        "a target with the name of a control table",
        {"tables": '[tables."informix.a"]\nname = "_Informix_CDC_tables"'},
        ["name must not begin with _informix_cdc_, or be one of _delta_log, _spark_metadata"],
    ),
    ("a password", {"source": 'Password = "x"'}, ["[source] contains a password", "passwordFile"]),
    ("another shape", {"source": 'shape = "json"'}, ["option 'shape' is always arrow in a mirror"]),
    (
        "an unknown option",
        {"source": 'tabel = "x"'},
        ["Did you mean 'table'?"],
    ),
    (
        "of settings and of the source",
        {"head": 'keep = "all"\n', "source": 'tabel = "x"\nlobs = "some"'},
        ["not 'all'", "Did you mean 'table'?", "option 'lobs' must be"],
    ),
    ("a catalog", {"head": 'format = "iceberg"\n'}, ["for Iceberg tables it must be catalog.schema"]),
    ("a schema", {"head": 'catalog = "a.b.c"\n'}, ["catalog is 'a.b.c': it must be a schema"]),
    ("a name", {"head": 'table_name = "x_{tabel}"\n'}, ["table_name must have {table}"]),
    (
        "keys twice",
        {"source": 'snapshotKey = "informix.a(b)"', "tables": '[tables."informix.a"]\nkey = "b"'},
        ["keys are set both by option snapshotKey and in the settings of tables"],
    ),
]


@pytest.mark.parametrize(("changes", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_in_a_file_is_named_with_what_to_do(
    changes: dict[str, str], says: list[str], tmp_path: Path
) -> None:
    path = written(tmp_path, 9, **changes)
    line = refusal(run_plain("mirror", path, "--plan"), 2)
    for text in (path, *says):
        assert text in line


def test_a_list_of_tables_is_taken_as_the_tables(tmp_path: Path) -> None:
    with served(*((f"informix.{name}", "id serial primary key") for name in "abc")) as port:
        path = Path(written(tmp_path, port))
        path.write_text(path.read_text().replace('"informix.*"', '["informix.a", "informix.b"]'))
        found = run_plain("mirror", str(path), "--plan")
    assert found.exit_code == 0, found.output
    targets = [line.partition(" ")[0] for line in found.stdout.splitlines()]
    assert targets == ["informix.a", "informix.b"]


FAILURES = [
    (
        StreamingQueryException(
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception:"
            " [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed: Traceback\n"
            "informix_capture_client.errors.DataLoss: IFXCDC-0001: the log is gone. Start anew."
            " SQLSTATE: 38000 SQLSTATE: XXKST\n\tat org.apache.Spark\n"
        ),
        "IFXCDC-0001: the log is gone. Start anew.",
    ),
    (AnalysisException("[NOT_THERE] No such catalog.\n== plan =="), "[NOT_THERE] No such catalog."),
    (PySparkRuntimeError("[JAVA_GATEWAY_EXITED] No Java."), "[JAVA_GATEWAY_EXITED] No Java."),
    (
        Py4JError(
            "An error occurred while calling o1.start.\n: java.io.IOException: disk full\n\tat x"
        ),
        "java.io.IOException: disk full",
    ),
]


@pytest.mark.parametrize(("failure", "line"), FAILURES)
def test_a_query_that_fails_ends_in_one_line(
    failure: Exception, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_more: object) -> None:
        raise failure

    monkeypatch.setattr(command, "run_mirror", fail)
    found = run_plain("mirror", written(tmp_path, 9))
    assert (found.exit_code, found.stderr.strip()) == (1, f"Error: {line}")
    assert isinstance(found.exception, SystemExit)


@pytest.mark.parametrize(("how", "code"), [("--once", 3), ("", 0)])
def test_once_has_an_exit_code_of_its_own_when_a_table_has_stopped(
    how: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended:
        def awaitTermination(self, _seconds: float) -> bool:
            return True

        def stop(self) -> None:
            pass

        id = "x"
        estimates: ClassVar[dict[str, int]] = {}
        stopped: ClassVar[dict[str, str]] = {"informix.orders": "its columns have changed."}

    monkeypatch.setattr(command, "start_mirror", lambda *_: Ended())
    monkeypatch.setattr(running, "MIRRORS", {"x": Ended()})
    monkeypatch.setattr(command, "run_mirror", partial(command.run_mirror, session=lambda *_: None))
    with served(("informix.orders", "order_num serial primary key")) as port:
        found = run_plain("mirror", written(tmp_path, port), *filter(None, [how]))
    assert found.exit_code == code, found.output
    assert "Stopped: informix.orders: its columns have changed." in found.stderr


def test_a_defect_of_ours_is_not_taken_for_a_failed_query() -> None:
    with pytest.raises(KeyError), command.failures_in_one_line():
        raise KeyError("x")


def test_the_program_for_spark_submit_is_there() -> None:
    path = Path(run_plain("mirror", "--program").stdout.strip())
    assert path.name == "mirror_program.py"
    assert "run_mirror" in path.read_text()
    assert "Missing argument 'FILE'" in run_plain("mirror").stderr


def test_without_delta_rs_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "deltalake" else name)
    found = run_plain("mirror", written(tmp_path, 9))
    assert "pip install 'informix-cdc[delta]'" in found.stderr


PACKAGES = [
    ({}, "4.3.0", None),
    ({"engine": "spark"}, "4.2.1", "io.delta:delta-spark_4.2_2.13:4.4.0"),
    ({"format": "iceberg"}, "4.1.1", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"),
]


@pytest.mark.parametrize(("given", "version", "package"), PACKAGES)
def test_spark_is_started_with_the_packages_that_fit_it(
    given: dict[str, str], version: str, package: str | None
) -> None:
    into = "lake.stores" if given.get("format") == "iceberg" else "/lake"
    settings = MirrorSettings.of(into=into, checkpoint="/c", **given)
    assert session_settings(settings, {}, version).get("spark.jars.packages") == package
    assert session_settings(settings, {}, version)["spark.driver.maxResultSize"] == "0"
    own = session_settings(settings, {"spark.jars": "/own.jar", "spark.app.name": "x"}, version)
    assert "spark.jars.packages" not in own
    assert own["spark.app.name"] == "x"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"into": "/lake", "engine": "spark"}, "Install PySpark 4.2, or set engine to embedded"),
        ({"into": "lake.stores", "format": "iceberg"}, "Install PySpark 4.1; or set spark.jars"),
    ],
)
def test_a_spark_without_a_package_is_refused(given: dict[str, str], says: str) -> None:
    settings = MirrorSettings.of(checkpoint="/c", **given)
    with pytest.raises(BadOption, match=says):
        session_settings(settings, {}, "4.3.0")


def test_a_mirror_that_has_begun_goes_on_without_new_tables_that_cannot_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    begun = StreamOffset("a1", "5a", Position(9, 9), tables={"informix.orders": TableState("d")})
    run_batches(tmp_path / "checkpoint", begun.to_json())
    orders = ("informix.orders", "order_num serial primary key")
    tables = '[tables."informix.gone"]\nkeep = "history"\n'
    with served(orders, ("informix.nokey", "a integer")) as port:
        path = written(tmp_path, port, tables=tables)
        found = run_plain("mirror", path, "--plan")
        plan = command.plan_mirror(
            read_mirror_file(Path(path)).settings,
            {**read_mirror_file(Path(path)).source, "password": PASSWORD},
        )
        named = written(tmp_path, port, tables=tables)
        Path(named).write_text(
            Path(named).read_text().replace('"informix.*"', '"informix.orders,informix.nokey"')
        )
        refused = run_plain("mirror", named, "--plan")
    assert found.exit_code == 0, found.output
    shown = " ".join(found.stderr.split())
    assert "Left out: informix.nokey: its rows cannot be identified" in shown
    assert "Left out: informix.gone: it has settings" in shown
    assert "1 table, 0 problems." in shown
    assert set(plan.options["table"].split(",")) == {
        "informix.*",
        "!informix.nokey",
        "!informix.gone",
    }
    assert PASSWORD not in repr(plan)
    assert refused.exit_code == 1
    assert "Problem: informix.nokey" in refused.stderr
