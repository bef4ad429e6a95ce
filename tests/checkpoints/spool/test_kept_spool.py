"""A spool that an earlier version has kept is read by this one: the format of files has not changed.

tests/golden/kept_spool was written by the version before the rooms, over the emulator: three inserts in
two transactions. Its manifest, its segments, and the rows that Spark got of them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from harness import GOLDEN
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import Spool, in_row_form, stored_range

KEPT = GOLDEN / "kept_spool"
EXPECTED = json.loads((KEPT / "expected.json").read_text())
OPTIONS = SourceOptions.parse(
    {
        "host": "127.0.0.1",
        "server": "informix",
        "database": "stores",
        "table": "informix.orders",
        "password": "x",
    }
)


def digest_now() -> str:
    rules, form = OPTIONS.decode_rules("utf-8"), OPTIONS.row_form()
    return SourceTables((), "en_us.utf8", rules, form, "").row_digest


def test_rows_kept_by_an_earlier_version_are_the_rows_that_spark_got_then(tmp_path: Path) -> None:
    start, end = StreamOffset.from_json(EXPECTED["start"]), StreamOffset.from_json(EXPECTED["end"])
    folder = shutil.copytree(KEPT, tmp_path / start.stream)
    folder.chmod(0o700)  # as it was made; a clone's folders may be open to a group
    spool = Spool(
        folder, start.stream, start.source, start.position, rows=(digest_now(),), durable=True
    )
    try:
        assert (spool.manifest.high_watermark, len(spool.manifest.segments)) == (end.position, 2)
        ranges = spool.between(start.position.place, end.position.place)
        batches = [in_row_form(b) for r in ranges for b in stored_range(r)]
    finally:
        spool.close()
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert json.loads(json.dumps(rows, default=str)) == EXPECTED["rows"]


def test_offsets_written_by_an_earlier_version_are_written_the_same() -> None:
    for kept in (EXPECTED["start"], EXPECTED["end"]):
        assert json.dumps(StreamOffset.from_json(kept).to_json()) == json.dumps(kept)
