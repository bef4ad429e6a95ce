"""What PySpark sends to executors: the data source beside the reader, and neither has a secret."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import CaseInsensitiveDict

from harness.servers.stores import source_options
from harness.spark.sent_to_executors import sent_to_executors
from informix_capture_client.errors import BadOption
from informix_cdc.spark.connect_plans import refuse_password_in_plan
from informix_cdc.spark.datasource import InformixCdcDataSource
from informix_cdc.testing import emulated_source

SECRET = "Can4ryPw_Zq7xWv"


def ways(folder: Path) -> dict[str, dict[str, str]]:
    """Return the options of each way to give a password, and put the password there."""
    (folder / "where-it-is").write_text(SECRET)
    command = f"{sys.executable} -c 'print(open(\"{folder}/where-it-is\").read())'"
    return {
        "option": {"password": SECRET},
        "file": {"password": "", "passwordFile": str(folder / "where-it-is")},
        "command": {"password": "", "passwordCommand": command},
        "environment": {"password": ""},
    }


@pytest.mark.parametrize("way", ["option", "file", "command", "environment"])
def test_no_password_and_no_way_to_it_is_sent_to_executors(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "environment":
        monkeypatch.setenv("INFORMIX_CDC_PASSWORD", SECRET)
    given = source_options(1, **ways(tmp_path)[way])
    sent = sent_to_executors(given)
    assert b"InformixStreamReader" in sent
    assert SECRET.encode() not in sent
    assert b"where-it-is" not in sent


@pytest.mark.parametrize("way", ["file", "command", "environment"])
def test_a_data_source_knows_where_a_password_is_and_not_the_password(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "environment":
        monkeypatch.setenv("INFORMIX_CDC_PASSWORD", SECRET)
    given = source_options(1, **ways(tmp_path)[way])
    source = InformixCdcDataSource(CaseInsensitiveDict(given))
    assert SECRET.encode() not in CloudPickleSerializer().dumps(source)


CONNECT = {"SPARK_JOB_ARTIFACT_UUID": "de844315-60bd-4c75-9e23-2b5ee21425b3"}


def test_over_spark_connect_option_password_is_refused_and_the_ways_out_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(*next(iter(CONNECT.items())))
    with pytest.raises(BadOption, match="passwordFile, passwordCommand") as caught:
        InformixCdcDataSource(source_options(1, password=SECRET))
    assert SECRET not in str(caught.value)


def test_the_emulator_for_tests_of_users_is_reached_over_spark_connect_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(*next(iter(CONNECT.items())))
    with emulated_source({"informix.orders": "order_num serial"}) as (_, options):
        assert InformixCdcDataSource(options).schema().names[0] == "order_num"


def test_in_a_classic_session_option_password_is_taken(tmp_path: Path) -> None:
    parsed = InformixCdcDataSource(source_options(1, password=SECRET))._parsed
    refuse_password_in_plan(parsed.connection, {"SPARK_JOB_ARTIFACT_UUID": "default"})
    refuse_password_in_plan(parsed.connection, {})
    with pytest.raises(BadOption):
        refuse_password_in_plan(parsed.connection, CONNECT)
