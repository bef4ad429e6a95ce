"""Contents of large objects under Spark, by the reader in Python and by that in the JVM."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from connector.jvm.java_reader import has_javac
from end_to_end.test_reader_in_the_jvm import is_read_in_columns, run
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE, listening_stores, source_options

pytestmark = pytest.mark.spark

FILES = f"{DATABASE}:informix.files"


@pytest.mark.parametrize("in_jvm", rest_in_all([False, pytest.param(True, id="in the JVM")]))
def test_contents_arrive_as_a_struct(spark: SparkSession, tmp_path: Path, in_jvm: bool) -> None:
    if in_jvm and not has_javac():
        pytest.skip("there is no javac of Java 17 or later")
    session = spark.newSession()
    with listening_stores() as (server, listening):
        server.create_table(FILES, "id INTEGER NOT NULL, picture BLOB, page CLOB")
        options = source_options(
            listening.port, table="informix.files", lobs="content", spoolPath=str(tmp_path / "spool")
        )
        run(session, options, tmp_path / "checkpoint", in_jvm=in_jvm)  # notes where the stream begins
        gone = server.sbspace.create(b"soon")
        with server.transaction() as tx:
            picture, page = server.sbspace.create(b"\0\1\2"), server.sbspace.create("Zoë".encode())
            tx.insert(FILES, {"id": 1, "picture": picture, "page": page})
            tx.insert(FILES, {"id": 2, "picture": gone, "page": None})
            tx.delete(FILES, {"id": 2, "picture": gone, "page": None})
        made = run(session, options, tmp_path / "checkpoint", in_jvm=in_jvm)
    assert is_read_in_columns(made) == in_jvm
    first, second, third = made.rows
    assert first.picture == Row(content=bytearray(b"\0\1\2"), size=3, status="read")
    assert first.page == Row(content="Zoë", size=4, status="read")
    assert (second.picture, second.page) == (Row(content=None, size=None, status="gone"), None)
    assert third.picture == Row(content=None, size=None, status="not_read")
