"""When a Flight server is there, and when it is told that it cannot be: at the query's start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    numbers,
    own_capture_of,
    reader,
)
from harness.runs.patience import patiently
from harness.servers.stores import source_options
from informix_cdc.executors import FlightProcess, SegmentPublisher
from informix_cdc.executors import flight_process as process_module
from informix_cdc.options.source import SourceOptions

LOOPBACK = "127.0.0.1"


@pytest.mark.parametrize("options", [{}, {"delivery": "files"}], ids=repr)
@pytest.mark.only_in_all
def test_where_files_serve_there_is_no_server(
    options: dict[str, str], served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FlightProcess, "__init__", None)
    server, listening = served
    with reader(listening.port, **options) as made:
        rows, _ = drained(made, anchor_of(made), insert(server, 1))
    assert numbers(rows) == [1]


@pytest.mark.fault(
    fault="option delivery is no address of the driver, or its port is taken",
    outcome="IFXCDC-0002 when the query starts, before anything is captured",
)
def test_a_wrong_flight_host_is_refused_at_the_start_and_not_at_the_first_row(
    served: Served,
) -> None:
    _, listening = served
    with reader(listening.port, delivery="grpc+tls://192.0.2.1") as made:
        refused = failure_of(lambda: anchor_of(made))
        assert own_capture_of(made).thread is None
    assert "the Flight server cannot listen on 192.0.2.1:any port. Set option delivery" in str(refused)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_refused_flight_host_is_told_in_no_lines_of_grpc() -> None:
    program = (
        "from harness.servers.stores import source_options\n"
        "from informix_cdc.executors import SegmentPublisher\n"
        "from informix_cdc.options import SourceOptions\n"
        "options = SourceOptions.parse(source_options(1, delivery='grpc+tls://192.0.2.1'), {})\n"
        "try: SegmentPublisher(options).open()\n"
        "except Exception as refused: print(refused)\n"
    )
    known = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(known)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_port_that_the_query_before_still_holds_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_module, "PORT_WAIT_SECONDS", patiently(10))
    former, create = socket.create_server((LOOPBACK, 0)), socket.create_server
    port, attempts = former.getsockname()[1], []

    def attempt(*arguments: Any, **named: Any) -> socket.socket:
        attempts.append(arguments)
        if len(attempts) == 2:
            former.close()
        return create(*arguments, **named)

    monkeypatch.setattr(socket, "create_server", attempt)
    options = source_options(1, delivery=f"grpc+tls://127.0.0.1:{port}")
    publisher = SegmentPublisher(SourceOptions.parse(options, {}))
    publisher.open()
    publisher.close()
    assert len(attempts) == 2
