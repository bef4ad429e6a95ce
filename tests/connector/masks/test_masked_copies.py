"""Masked columns in what commands, mirrors and other deliveries make of a stream."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from connector.commands.conftest import start
from connector.masks.people import CLEAR, TABLE, People, clear_values, files_with, hashed, people
from harness.capture.driving import anchor_of, drained, failure_of, reader
from harness.capture.shared import capturing, shared_reader
from harness.lake.mirroring import MirrorRun, until
from harness.runs.patience import patiently, wait_until
from harness.servers.stores import DATABASE, PASSWORD
from informix_cdc.capture.start import CaptureStart
from informix_cdc.doctor import diagnose
from informix_cdc.options.authentication import PASSWORD_VARIABLE
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.source_tables import look_up_tables
from informix_checkpoints.spool.spill_files import SpilledBytes, SpillFiles

pytestmark = pytest.mark.slow


def options_of(of: People, **changes: str) -> SourceOptions:
    given = {
        **of.options,
        "host": "127.0.0.1",
        "port": str(of.port),
        "server": "informix",
        "database": DATABASE,
        "password": PASSWORD,
        "transport": "sqli",
        **changes,
    }
    return SourceOptions.parse({name: value for name, value in given.items() if value})


def test_a_mirror_keeps_rows_apart_by_a_hashed_key(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        of.existing(1, 2, 3)
        given = {name: of.options[name] for name in ("lobs", "mask", "maskKeyFile")}
        run = MirrorRun(tmp_path, of.port, table="informix.people", **given)
        with run.running() as step:
            until(step, lambda: bool(run.batches) and not run.batches[-1].loading)
            of.insert(4, 5)
            with of.server.transaction() as transaction:
                transaction.delete(TABLE, of.row(2))
                transaction.update(TABLE, of.row(3), {**of.row(3), "town": "elsewhere"})
            until(step, lambda: {row["town"] for row in run.rows("people")} >= {"elsewhere", "town 5"})
        rows = {row["ssn"]: row["town"] for row in run.rows("people")}
    assert rows == {
        hashed(f"{CLEAR}-001"): "town 1",
        hashed(f"{CLEAR}-003"): "elsewhere",
        hashed(f"{CLEAR}-004"): "town 4",
        hashed(f"{CLEAR}-005"): "town 5",
    }
    assert files_with(tmp_path, clear_values(1, 2, 3, 4, 5)) == []


def test_one_capture_masks_for_every_reader(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Clear values are in no file of spool, journal, checkpoint and lake, in no log, and in no row."""
    caplog.set_level("DEBUG")
    folder, rows = tmp_path / "capture", list[str]()
    with people(tmp_path) as of:
        of.existing(1, 2)
        given = {name: of.options[name] for name in ("table", "lobs", "mask", "maskKeyFile")}
        with capturing(of.port, folder, {"mirror": True}, **given):
            run = MirrorRun(tmp_path, of.port)
            run.source = {"captureAt": str(folder), "reader": "mirror"}
            with run.running() as step:
                until(step, lambda: bool(run.batches) and not run.batches[-1].loading)
                upto = of.insert(3)
                until(step, lambda: {row["town"] for row in run.rows("people")} >= {"town 1", "town 3"})
            for shape in ("rows", "json", "envelope"):
                with shared_reader(folder, shape, shape=shape) as made:
                    found, end = drained(made, anchor_of(made), upto)
                    rows += [str(found), str(end)]
    assert all("town 3" in text for text in rows[::2])
    assert [
        text for text in [*rows, caplog.text] for clear in clear_values(1, 2, 3) if clear in text
    ] == []
    assert files_with(tmp_path, clear_values(1, 2, 3)) == []


@pytest.mark.only_in_all
def test_a_mirror_of_several_tables_masks_those_that_are_named(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        of.existing(1)
        of.server.create_table(f"{DATABASE}:informix.towns", "name VARCHAR(20), PRIMARY KEY (name)")
        with of.server.transaction() as transaction:
            transaction.insert(f"{DATABASE}:informix.towns", {"name": "Zürich"})
        given = {name: of.options[name] for name in ("lobs", "mask", "maskKeyFile")}
        run = MirrorRun(tmp_path, of.port, table="informix.*", **given)
        with run.running() as step:
            until(step, lambda: bool(run.batches) and not run.batches[-1].loading)
        assert [row["ssn"] for row in run.rows("people")] == [hashed(f"{CLEAR}-001")]
        assert [row["name"] for row in run.rows("towns")] == ["Zürich"]


def test_options_of_some_tables_have_their_masks_and_columns(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        columns = "people.ssn,people.id,informix.towns.name"
        options = options_of(of, table="informix.people,informix.towns", columns=columns)
    [people_, towns] = options.table_names()
    assert options.of_tables([towns]).columns.masks == ()
    assert options.of_tables([towns]).columns.chosen == (("informix", "towns", "name"),)
    assert options.of_tables([people_]).columns.masks == options.columns.masks
    assert options.without_tables({"informix.people"}).columns.masks == ()


@pytest.mark.parametrize("kind", ["null", "last4"])
def test_a_key_may_only_be_hashed(tmp_path: Path, kind: str) -> None:
    masked = {"mask": f"people.ssn={kind}", "maskKeyFile": "", "initialSnapshot": "all"}
    with people(tmp_path) as of:
        given = {name: value for name, value in {**of.options, **masked}.items() if value}
        with reader(of.port, **given) as made:
            error = failure_of(lambda: anchor_of(made))
    assert f"has mask {kind}, which makes different keys equal" in str(error)


@pytest.mark.only_in_all
def test_flight_delivers_masked_rows(tmp_path: Path) -> None:
    with (
        people(tmp_path, delivery="grpc+tls://127.0.0.1") as of,
        reader(of.port, **of.options) as made,
    ):
        rows, _ = drained(made, anchor_of(made), of.insert(1))
    assert [row["ssn"] for row in rows] == [hashed(f"{CLEAR}-001")]
    assert rows[0]["name"] is None


def begun(of: People, command: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a command that follows the table, and wait until it captures."""
    process = start(
        *(command, "--host=127.0.0.1", f"--port={of.port}", "--server=informix"),
        *(f"--database={DATABASE}", "--transport=sqli", "--table=informix.people"),
        *(f"--mask={of.options['mask']}", f"--mask-key-file={of.options['maskKeyFile']}"),
        *arguments,
        environment={PASSWORD_VARIABLE: PASSWORD},
    )
    assert process.stderr is not None
    printed: list[str] = []
    for line in iter(process.stderr.readline, ""):
        printed.append(line)
        if "from now on" in line:
            return process
    raise AssertionError("".join(printed))


def test_a_recording_does_not_have_masked_columns(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    with people(tmp_path) as of:
        process = begun(of, "record", f"--to={path}")
        of.insert(1)
        wait_until(lambda: b"town 1" in recorded(path))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=patiently(30))
    assert process.returncode == 0, errors
    assert CLEAR.encode() not in recorded(path)
    assert CLEAR not in path.read_text()
    header = json.loads(path.read_text().splitlines()[0])
    assert header["options"]["columns"] == "informix.people.id,informix.people.town"


def recorded(path: Path) -> bytes:
    """Return the bytes of the log in a recording."""
    lines = path.read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith("\n")]
    return b"".join(base64.b64decode(event["bytes"]) for event in events if "bytes" in event)


@pytest.mark.only_in_all
def test_tail_prints_masked_values(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        process = begun(of, "tail", "--limit=1", "--format=json", "--yes")
        of.insert(1)
        printed, errors = process.communicate(timeout=patiently(30))
    assert hashed(f"{CLEAR}-001") in printed
    assert CLEAR not in printed + errors


def test_doctor_lists_masked_columns(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        checks = [each for of_check in diagnose(options_of(of), ()) for each in of_check]
    [found] = [each.sentence for each in checks if "; masked: " in each.sentence]
    assert "masked: ssn (hash), name (null), phone (last4), salary (hash), born (hash)" in found


def test_spilled_rows_are_encrypted(tmp_path: Path) -> None:
    parts = [memoryview(CLEAR.encode() * 1000), memoryview(b"others")]
    for is_encrypted in (False, True):
        kept = SpillFiles(tmp_path, is_encrypted=is_encrypted).keep(parts)
        stored = os.pread(kept.file._descriptor, kept.size_bytes, kept.first)
        assert (CLEAR.encode() in stored) is not is_encrypted
        assert kept.load() == b"".join(parts)


def test_a_stream_with_masks_encrypts_what_it_spills(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        for changes, is_encrypted in (({}, True), ({"mask": "", "maskKeyFile": ""}, False)):
            options = options_of(of, **changes)
            limit = CaptureStart(options, look_up_tables(options), None)._memory_limit()
            kept = limit.store.keep([memoryview(b"x" * 99)])
            assert isinstance(kept, SpilledBytes)
            assert (kept.cipher is not None) is is_encrypted


def test_the_wire_is_not_traced_with_masks(tmp_path: Path) -> None:
    with people(tmp_path) as of:
        process = start(
            *("doctor", "--host=127.0.0.1", f"--port={of.port}", "--server=informix"),
            *(f"--database={DATABASE}", "--transport=sqli", "--table=informix.people"),
            *("--mask=ssn=null", f"--trace-wire={tmp_path / 'trace'}"),
            environment={PASSWORD_VARIABLE: PASSWORD},
        )
        _, errors = process.communicate(timeout=patiently(30))
    assert process.returncode == 2, errors
    assert "--trace-wire writes all that the server sends" in errors
