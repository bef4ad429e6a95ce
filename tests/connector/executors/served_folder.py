"""A Flight server in a process of its own, for tests that look at that process from outside.

python -m connector.executors.served_folder FOLDER    serves until its standard input ends
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from harness.servers.stores import source_options
from informix_cdc.executors import SegmentPublisher
from informix_cdc.options import SourceOptions


def main() -> None:
    publisher = SegmentPublisher(SourceOptions.parse(source_options(1, delivery="flight"), {}))
    publisher.open()
    server = publisher._server
    assert server is not None
    server.serve(Path(sys.argv[1]))
    sys.stdout.buffer.write(pickle.dumps(server.address))
    sys.stdout.buffer.flush()
    sys.stdin.read()
    publisher.close()


if __name__ == "__main__":
    main()
