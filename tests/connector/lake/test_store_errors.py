"""Errors of the lake have one line and a code, and quote no cell."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException

from harness.servers.stores import source_options
from informix_capture_client.errors import TargetUnavailable
from informix_cdc.lake.mirrored_table import TableStopped
from informix_cdc.lake.mirroring import begin_mirror
from informix_cdc.lake.places import Lake, why_not_writable
from informix_cdc.lake.refused_writes import coded_errors, permanent_errors
from informix_cdc.lake.settings import MirrorSettings
from informix_cdc.options import SourceOptions

BRANCH = "\n          \x1b[31m↳\x1b[0m "
CLOSED = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "a secret",
    "AWS_REGION": "us-east-1",
}
PASSING: dict[str, tuple[Exception, str]] = {
    "a store": (
        OSError(f"Generic S3 error{BRANCH}Error performing PUT http://s3/b/t?sig=secret in 3 s"),
        "Generic S3 error: Error performing PUT http://s3/b/t in 3 s.",
    ),
    "credentials": (
        PermissionError(
            "The operation lacked the necessary privileges to complete for path t/x: Error performing"
            " PUT http://s3/b/t/x?sig=secret in 1 ms - Server returned non-2xx status code: 403"
            ' Forbidden: <?xml version="1.0"?><Error><Code>ExpiredToken</Code><Id>secret</Id></Error>'
        ),
        "The operation lacked the necessary privileges to complete for path t/x: Error performing PUT"
        " http://s3/b/t/x in 1 ms - Server returned non-2xx status code: 403 Forbidden: ExpiredToken.",
    ),
    "a disk": (OSError(28, "No space left on device"), "No space left on device."),
    "a system call": (
        OSError(28, "No space left on device", "/lake"),
        "No space left on device: /lake.",
    ),
    "values": (
        DeltaError("Generic DeltaTable error: Arrow error: Parser error: Cannot parse secret as INT"),
        "DeltaError Generic DeltaTable error: Arrow error: Parser error.",
    ),
    "nothing known": (DeltaError("secret"), "DeltaError."),
    "Spark": (
        AnalysisException("[SOME_CONDITION.PART] secret", errorClass="SOME_CONDITION.PART"),
        "AnalysisException [SOME_CONDITION.PART].",
    ),
}
LASTING: dict[str, tuple[Exception, str]] = {
    "a constraint, in Spark": (
        AnalysisException("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint: secret"),
        "a CHECK constraint or NOT NULL column of its target refuses a row.",
    ),
    "a value": (
        pa.ArrowInvalid("Failed to parse string: 'secret' as a scalar of type int32"),
        "a value does not fit the type of its column in the target.",
    ),
    "rights": (
        OSError(
            f"Generic LocalFileSystem error{BRANCH}Unable to open: Permission denied (os error 13)"
        ),
        "its target cannot be written: permission is denied.",
    ),
}


@pytest.mark.parametrize("kind", PASSING)
def test_an_error_that_may_pass_has_a_code_and_names_the_place(kind: str) -> None:
    error, shown = PASSING[kind]
    with pytest.raises(TargetUnavailable) as found, coded_errors("/lake"), permanent_errors():
        raise error
    assert f"the tables in /lake cannot be read or written: {shown}" in str(found.value)
    assert "secret" not in str(found.value)
    assert found.value.__cause__ is None
    assert found.value.__suppress_context__


@pytest.mark.parametrize("kind", LASTING)
def test_an_error_that_lasts_stops_the_table(kind: str) -> None:
    error, shown = LASTING[kind]
    with pytest.raises(TableStopped) as found, coded_errors("/lake"), permanent_errors():
        raise error
    assert found.value.reason == shown


def test_a_store_that_does_not_answer_is_named_by_plan_and_at_the_start(tmp_path: Path) -> None:
    place = "s3://bucket/lake"
    why = why_not_writable(place, CLOSED)
    assert "Connection refused" in why
    assert "secret" not in why
    options = {**CLOSED, "max_retries": "0"}
    settings = MirrorSettings.of(into=place, checkpoint=str(tmp_path / "c"), storage_options=options)
    with pytest.raises(TargetUnavailable, match=r"in s3://bucket/lake cannot be read.*refused"):
        begin_mirror(settings, SourceOptions.parse(source_options(1, table="informix.*")))


def test_a_store_is_waited_for_unless_the_user_says_otherwise() -> None:
    def options(**given: str) -> dict[str, str]:
        settings = MirrorSettings.of(into="s3://bucket/lake", checkpoint="/c", storage_options=given)
        return dict(Lake(settings, "informix-cdc/1").target("t").storage_options)

    assert options() == {"max_retries": "100", "retry_timeout": "120s"}
    assert options(max_retries="3") == {"max_retries": "3", "retry_timeout": "120s"}
