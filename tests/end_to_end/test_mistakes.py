"""What a user sees who got something wrong: one sentence, soon, with cause and remedy; no password."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.runs.patience import patiently, wait_until
from harness.servers.stores import (
    DATABASE,
    ORDERS,
    PASSWORD,
    listening_stores,
    order_row,
    source_options,
)
from informix_emulator import EmulatedServer, ListeningServer
from odbc_driver.build import Drivers

pytestmark = pytest.mark.spark

SECONDS_TO_SAY_SO = 5
MOST_LINES_AT_LOAD = 5  # Spark's own head, our entry in two lines, our line, Spark's SQLSTATE
# Spark wraps our error in its own; ours is the line with the code.
OUR_LINE = re.compile(r"^\S*\.(\w+): (IFXCDC-\d{4}: .+)$", re.MULTILINE)


@dataclass(frozen=True)
class Mistake:
    """Something wrong with the options.

    Args:
        connects: whether the server has to say so; what options alone tell has no transport.
    """

    changes: dict[str, str]
    error: str
    says: str
    connects: bool = True


MISTAKES = {
    "wrong password": Mistake({"password": "not-it-8d1f"}, "AccessRefused", "password"),
    "wrong server name": Mistake({"server": "elsewhere"}, "AccessRefused", "server"),
    "wrong database": Mistake(
        {"database": "shops"}, "AccessRefused", "database to one of: scratch, stores."
    ),
    "wrong table": Mistake(
        {"table": "informix.ordres"}, "BadOption", "stores:informix.ordres does not exist"
    ),
    "table without owner": Mistake(
        {"table": "orders"}, "BadOption", "Correct option table: the server has informix.orders."
    ),
    "misspelt table": Mistake({"table": "informix.custmers"}, "BadOption", "has informix.customers."),
    "several at once": Mistake(
        {"maxRowsPerTrigger": "x", "shape": "y"},
        "BadOption",
        "2 options are invalid: (1)",
        connects=False,
    ),
    "unlogged database": Mistake({"database": "scratch"}, "BadOption", "not logged"),
    "column that cannot be captured": Mistake(
        {"table": "informix.notes"},
        "UnsupportedColumn",
        "column body of table stores:informix.notes has type TEXT",
    ),
    "misspelt option": Mistake(
        {"databse": "stores"}, "BadOption", "Did you mean 'database'?", connects=False
    ),
    "option out of range": Mistake(
        {"snapshotParallelism": "1000"}, "BadOption", "from 1 to 8", connects=False
    ),
    "password in the connection string": Mistake(
        {"connectionString": "PWD=hunter2-77aa"}, "BadOption", "passwordFile"
    ),
    "two tables of which one is missing": Mistake(
        {"table": "informix.orders,informix.gone"}, "BadOption", "informix.gone does not exist"
    ),
    "code set unknown": Mistake({"dbLocale": "xx_xx.99999"}, "BadOption", "dbLocale"),
    "spool in an object store": Mistake(
        {"spoolPath": "s3://bucket/spool"}, "BadOption", "s3: is the scheme of a URL", connects=False
    ),
    "transport unknown": Mistake({"transport": "jdbc"}, "BadOption", "odbc or sqli", connects=False),
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with listening_stores() as (server, listening):
        server.create_database("scratch", logged=False, locale="en_US.utf8")
        server.create_table("scratch:informix.orders", "order_num integer")
        server.create_table("stores:informix.notes", "id integer, body text")
        yield server, listening


def refusal(spark: SparkSession, options: dict[str, str]) -> tuple[str, str]:
    """Return the class and the text of our error at load(), and check that it came soon."""
    begun = time.monotonic()
    with pytest.raises(PySparkException) as caught:
        spark.readStream.format("informix-cdc").options(**options).load()
    assert time.monotonic() - begun < patiently(SECONDS_TO_SAY_SO)
    text = str(caught.value)
    found = OUR_LINE.findall(text)
    assert found, text[-2000:]
    assert len(text.splitlines()) <= MOST_LINES_AT_LOAD
    for key in ("password", "connectionString"):
        secret = options.get(key, "").partition("=")[2] or options.get(key, "")
        assert not secret or secret not in text
    return found[-1]


@pytest.mark.parametrize(
    ("name", "transport"),
    [
        (name, transport)
        for name, mistake in MISTAKES.items()
        for transport in (["sqli", "odbc"] if mistake.connects else ["odbc"])
    ],
)
def test_a_mistake_is_named_at_load(
    name: str,
    transport: str,
    served: tuple[EmulatedServer, ListeningServer],
    drivers: Drivers,
    spark: SparkSession,
) -> None:
    mistake = MISTAKES[name]
    driver = {"driver": str(drivers.narrow)} if transport == "odbc" else {}
    options = source_options(served[1].port, **{"transport": transport, **driver, **mistake.changes})
    error, text = refusal(spark, options)
    assert error == mistake.error
    assert mistake.says in text


def test_a_dead_port_is_named_at_load(drivers: Drivers, spark: SparkSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for more in ({}, {"transport": "odbc", "driver": str(drivers.narrow)}):
        error, text = refusal(spark, source_options(port, **more))
        assert error == "AccessRefused"
        assert f"127.0.0.1:{port}" in text or "127.0.0.1" in text


def test_a_driver_that_is_not_there_is_named_at_load(
    served: tuple[EmulatedServer, ListeningServer], spark: SparkSession
) -> None:
    options = source_options(served[1].port, transport="odbc", driver="/opt/nowhere/libthcli.so")
    error, text = refusal(spark, options)
    assert error == "BadOption"
    assert "/opt/nowhere/libthcli.so" in text


def test_a_table_as_it_is_now_is_refused_with_what_to_use_instead(
    served: tuple[EmulatedServer, ListeningServer], spark: SparkSession
) -> None:
    frame = spark.read.format("informix-cdc").options(**source_options(served[1].port)).load()
    with pytest.raises(PySparkException, match=r"IFXCDC-0003: .* Use spark\.readStream"):
        frame.collect()


def test_a_declared_schema_is_compared_in_the_words_of_sql(
    served: tuple[EmulatedServer, ListeningServer], spark: SparkSession, tmp_path: Path
) -> None:
    source = spark.readStream.format("informix-cdc").options(**source_options(served[1].port))
    query = (
        source.schema("a int")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    with pytest.raises(PySparkException) as caught:
        query.awaitTermination(int(patiently(60)))
    told = OUR_LINE.findall(str(caught.value))[-1][1]
    assert "is 'a' int, but the source has 'order_num' int." in told
    assert "pyarrow" not in told


def test_an_error_of_the_capture_ends_the_query_with_our_line_last_and_no_stack_of_sockets(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., object]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port)).start()  # type: ignore[attr-defined]
    stream.wait_for_start()
    server.inject_error_record(None, 0x1, "CDC_E_INTERNAL")
    with pytest.raises(PySparkException) as caught:
        stream.wait_until(lambda: False)
    text = str(caught.value)
    assert "CDC_E_INTERNAL" in OUR_LINE.findall(text)[-1][1]
    assert "socket" not in text


def test_a_wrong_flight_host_ends_the_query_at_its_start_although_nothing_changes(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., object]
) -> None:
    options = source_options(served[1].port, delivery="grpc+tls://192.0.2.1")
    stream = collect(options).start()  # type: ignore[attr-defined]
    with pytest.raises(PySparkException) as caught:
        stream.wait_until(lambda: False)
    error, text = OUR_LINE.findall(str(caught.value))[-1]
    assert error == "AccessRefused"
    assert "the Flight server cannot listen on 192.0.2.1:any port" in text


PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
streams, checkpoints = json.loads(sys.argv[1]), Path(sys.argv[2])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("DEBUG")
def run(how, options):
    frame = spark.readStream.format("informix-cdc").options(**options).load()
    print(frame._jdf.queryExecution().toString())
    frame.explain(extended=True)
    def show(batch, number):
        batch.explain(extended=True); print(how, batch.collect())
    query = frame.writeStream.foreachBatch(show).option("checkpointLocation", str(checkpoints / how))
    query = query.trigger(availableNow=True).start()
    query.awaitTermination(60)
    print(query.lastProgress)
    print(query.explain(True))
    try:
        spark.readStream.format("informix-cdc").options(**{**options, "table": "informix.gone"}).load()
    except Exception as reason:
        print(how, *str(reason).split())
for _ in range(2):
    for how, options in streams.items():
        run(how, options)
    print("went through", flush=True)
    sys.stdin.readline()
"""
HOW = ["option", "file", "environment"]


def wait_for_rounds(process: subprocess.Popen[str], count: int, told: Path, logged: Path) -> None:
    """Wait until the program has run its queries so many times."""
    wait_until(
        lambda: process.poll() is not None or told.read_text().count("went through") == count, 90
    )
    assert process.poll() is None, logged.read_text()[-3000:]


def test_the_password_is_in_no_log_plan_error_progress_checkpoint_or_spool(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Path
) -> None:
    server, listening = served
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    streams = {how: source_options(listening.port, spoolPath=str(tmp_path / how)) for how in HOW}
    del streams["file"]["password"], streams["environment"]["password"]
    streams["file"]["passwordFile"] = str(tmp_path / "secret")
    environment = {**os.environ, "INFORMIX_CDC_PASSWORD": PASSWORD}
    command = [sys.executable, "-c", PROGRAM, json.dumps(streams), str(tmp_path / "checkpoints")]
    told, logged = tmp_path / "told", tmp_path / "logged"
    with (
        told.open("w") as output,
        logged.open("w") as errors,
        subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdin is not None
        for queries_ran in (1, 2):  # the first time they are anchored, the second they deliver a row
            wait_for_rounds(process, queries_ran, told, logged)
            with server.transaction() as transaction:
                transaction.insert(ORDERS, order_row((4711, None, "a row", None)))
            process.stdin.write("go on\n")
            process.stdin.flush()
        assert process.wait(patiently(60)) == 0
    said, log = told.read_text(), logged.read_text()
    assert " DEBUG " in log
    for how in HOW:
        assert re.search(rf"^{how} .*order_num=4711", said, re.MULTILINE), log[-3000:]
        told_of_gone = rf"^{how} .*{DATABASE}:informix.gone does not exist"
        assert re.search(told_of_gone, said, re.MULTILINE)
    # With the log at DEBUG Spark prints the command line that it was started with: ours is in the
    # program's argument, so that line is the test's own doing.
    assert [line for line in (said + log).splitlines() if PASSWORD in line] == []
    searched = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "secret"]
    assert len(searched) > 5 * len(HOW)
    assert [path for path in searched if PASSWORD.encode() in path.read_bytes()] == []
