"""A Flight server whose process has few descriptors, and writes its spool while strangers hold some.

python -m connector.executors.crowded_server FOLDER STRANGERS    ends with "served" on standard output

Rule: what the process does about its limit is what Spark's runner does.
"""

from __future__ import annotations

import resource
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

from checkpoints.spool.spools import SCHEMA, batch, fill, open_spool
from harness.servers.stores import source_options
from informix_capture_client.positions import Position
from informix_capture_client.shapes import change_count
from informix_cdc.executors import SegmentPublisher
from informix_cdc.executors.flight_client import fetched_range
from informix_cdc.options import SourceOptions
from informix_cdc.spark.runner_process import settle_in_runner

SOFT_LIMIT = 64
_RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"


def say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main() -> None:
    folder, strangers = Path(sys.argv[1]), int(sys.argv[2])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT_LIMIT, hard))
    sys.modules["__main__"].__spec__ = ModuleSpec(_RUNNER, None)
    restore = settle_in_runner()
    publisher = SegmentPublisher(SourceOptions.parse(source_options(1, delivery="flight"), {}))
    spool = open_spool(folder)
    publisher.places(spool)
    assert publisher._server is not None
    address = publisher._server.address
    say(address.port)
    sys.stdin.readline()  # all strangers have connected
    while sum(1 for _ in Path("/proc/self/fd").iterdir()) < strangers:
        pass  # the server accepts them in a thread of its own
    fill(spool)
    spool.append(SCHEMA, [batch((6, 150))], Position(150, 145))
    for wanted in spool.between((100, 0), (150, 0)):
        arrived = fetched_range(address, wanted)
        assert sum(map(change_count, arrived)) == wanted.end - wanted.first
    say("served")
    publisher.close()
    spool.close()
    restore()


if __name__ == "__main__":
    main()
