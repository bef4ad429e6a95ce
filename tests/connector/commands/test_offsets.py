"""`informix-cdc status --offsets`: what is told of a checkpoint, without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from harness.spark.checkpoints import offset, plan, run_batches
from informix_capture_client.positions import Position, log_page
from informix_cdc.commands.cli import main
from informix_checkpoints.spool import manifest_files as manifests
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.segments import Segment

LOG_7 = log_page(7, 0)
STREAM = "a1b2c3d4e5f60718"


def offsets(*arguments: str) -> Result:
    checkpoint, *others = arguments
    return CliRunner().invoke(main, ["status", "--offsets", f"--checkpoint={checkpoint}", *others])


def told(*arguments: str) -> str:
    result = offsets(*arguments)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def as_json(*arguments: str) -> Any:
    result = offsets(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def half_run(checkpoint: Path) -> Path:
    """A query that died in batch 2."""
    run_batches(checkpoint, offset(LOG_7, LOG_7), offset(LOG_7 + 0x20, LOG_7 + 0x10, 21, 22))
    plan(checkpoint, 2, offset(LOG_7 + 0x5E018, LOG_7 + 0x5E000), '{"logOffset":3}')
    return checkpoint


def keep_spool(folder: Path) -> None:
    end = Position(LOG_7 + 0x5E018, LOG_7 + 0x5E000)
    segment = Segment("000001-000000000000.arrow", 1200, 4096, 0, 3, LOG_7 + 0x5E018, end)
    start = Position(LOG_7 + 0x20, LOG_7 + 0x10)
    (folder / STREAM).mkdir(parents=True)
    kept = Manifest(STREAM, "5a" * 8, start, end, segments=(segment,))
    manifests.save_manifest(kept, folder / STREAM, durable=False)


def test_people_see_both_batches_in_the_servers_notation_and_what_a_restart_needs(
    tmp_path: Path,
) -> None:
    text = told(str(half_run(tmp_path)))
    assert f"{tmp_path}, source 0" in text
    assert f"Stream {STREAM}, source digest {'5a' * 8}." in text
    assert "committed 1 7:0x20 7:0x10 21, 22" in text
    assert "planned 2 7:0x5e018 7:0x5e000 -" in text
    assert "reads the log from 7:0x10: logical log 7 and all later ones must still exist" in text
    assert (
        "A restart runs batch 2 again, which is not committed: commits after 7:0x20 up to 7:0x5e018"
        in text
    )
    assert "read from the log again" in text
    assert 'source 1 does not belong to informix-cdc, skipped: {"logOffset":3}' in text


def test_machines_get_the_same_as_one_object(tmp_path: Path) -> None:
    found = as_json(str(half_run(tmp_path)))
    (entry,) = found["checkpoints"]
    source = entry["offsets"]
    assert source["committed"] == {
        "batch": 1,
        "stream": STREAM,
        "digest": "5a" * 8,
        "commit": "7:0x20",
        "restart": "7:0x10",
        "commitSequence": LOG_7 + 0x20,
        "restartSequence": LOG_7 + 0x10,
        "unseen": [21, 22],
        "lost": None,
        "chunk": 0,
        "tables": {},
    }
    assert source["planned"]["commit"] == "7:0x5e018"
    assert source["restart"] == {
        "position": "7:0x10",
        "positionSequence": LOG_7 + 0x10,
        "oldestLog": 7,
        "usesSpool": False,
        "batchRunAgain": {
            "batch": 2, "above": "7:0x20", "upto": "7:0x5e018", "isEmpty": False, "isInSpool": False,
        },
    }  # fmt: skip
    assert found["otherSources"] == [
        {"checkpoint": str(tmp_path), "source": "1", "offset": '{"logOffset":3}'}
    ]


def test_a_spool_that_was_kept_is_counted_in(tmp_path: Path) -> None:
    checkpoint, kept = half_run(tmp_path / "checkpoint"), tmp_path / "spool"
    keep_spool(kept)
    text = told(str(checkpoint), f"--spool-path={kept}")
    assert "reads the log from 7:0x5e000" in text
    assert "they are in the spool" in text
    assert "has 1,200 rows in 1 segment: commits after 7:0x20 up to 7:0x5e018" in text
    (entry,) = as_json(str(checkpoint), f"--spool-path={kept}")["checkpoints"]
    source = entry["offsets"]
    assert source["spool"]["rows"] == 1200
    assert source["spool"]["bytes"] == 4096
    assert source["restart"]["usesSpool"]


def test_a_spool_without_the_stream_is_said_to_have_nothing(tmp_path: Path) -> None:
    text = told(str(half_run(tmp_path)), f"--spool-path={tmp_path}")
    assert f"has no data of stream {STREAM}" in text


def test_a_spool_that_is_not_intact_is_one_line(tmp_path: Path) -> None:
    checkpoint = half_run(tmp_path)
    (tmp_path / STREAM).mkdir()
    (tmp_path / STREAM / "manifest.json").write_text("{")
    result = offsets(str(checkpoint), f"--spool-path={tmp_path}")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "manifest.json" in result.stderr


def test_a_loss_that_was_reported_is_shown_and_unseen_ids_in_runs(tmp_path: Path) -> None:
    last = offset(LOG_7 + 0x20, LOG_7 + 0x10, 7, 20, 21, 22)
    run_batches(tmp_path, offset(LOG_7, LOG_7), {**last, "lost": ["ROW_LOGGING_OFF", "it was off."]})
    assert "Stopped at a reported data loss: it was off." in told(str(tmp_path))
    assert "7, 20-22" in told(str(tmp_path))
    planned = as_json(str(tmp_path))["checkpoints"][0]["offsets"]["planned"]
    assert (planned["lost"], planned["unseen"]) == ("it was off.", [7, 20, 21, 22])


def test_a_query_that_has_committed_everything_runs_no_batch_again(tmp_path: Path) -> None:
    text = told(str(run_batches(tmp_path, offset(LOG_7, LOG_7), offset(LOG_7 + 8, LOG_7 + 8))))
    assert "Every planned batch is committed." in text


def test_a_stream_that_goes_on_after_a_loss_names_the_one_that_was_lost(tmp_path: Path) -> None:
    run_batches(tmp_path, offset(1, 1), offset(2, 2))
    plan(tmp_path, 2, offset(LOG_7, LOG_7, stream="f" * 16))
    text = told(str(tmp_path))
    assert f"continues from where stream {STREAM} lost data" in text
    assert "A restart runs batch 2 again, which is not committed; it is empty." in text


def test_what_is_no_checkpoint_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    result = offsets(str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "checkpointLocation" in result.stderr
