"""The sink of docs/operations/data-loss.md corrects a copy that differs from its table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from connector.capture.test_requests import LINES, NAME, TABLE, of_stream, requested, until_answered
from harness.capture.driving import anchor_of, reader
from harness.capture.snapshots import serving_tables
from informix_checkpoints.requests import RESYNC, Request
from informix_emulator import load_rows
from manual.made_parts import ROOT

PAGE = ROOT / "docs" / "operations" / "data-loss.md"


@pytest.mark.slow
def test_the_sink_of_the_page_corrects_its_copy(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(import json.*?)```", PAGE.read_text(), re.DOTALL)
    sink: dict[str, Any] = {}
    exec(program, sink)
    sink["copy"].update({(n,): [{"id": n, "name": "old"}] for n in (-1, 3, 50)})
    rows = [{"id": n, "name": "x"} for n in range(7)]
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, rows)
        with reader(listening.port, **of_stream(tmp_path)) as made:
            start = anchor_of(made)
            request = Request(kind=RESYNC, tables=(TABLE,))
            folder = requested(tmp_path, start["stream"], request)
            for row in until_answered(made, folder, request, start)[0]:
                sink["apply"](row)
    assert sink["present"]() == {(row["id"],): row for row in rows}
    for number in range(7):  # UPDATE lines SET id = id + 1
        before, after = ({"id": number + more, "name": "x"} for more in (0, 1))
        change = {"before": json.dumps(before), "after": json.dumps(after)}
        sink["apply"]({"_change_type": "update", "_snapshot": False, **change})
    assert sink["present"]() == {(n,): {"id": n, "name": "x"} for n in range(1, 8)}
    is_in = sink["is_in"]
    assert is_in((2, "x"), (2, None), (2, "x"))
    assert not is_in((2, "x"), (2, "x"), (None, None))
