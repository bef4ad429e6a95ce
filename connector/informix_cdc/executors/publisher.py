"""The driver's side of the delivery to executors: says where segments are, and serves them if asked.

Rule: lives in the query's runner process only, with the Flight server and its token; what leaves for
executors are `SegmentPlaces`.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from informix_cdc.executors.flight_protocol import FlightAddress
from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.options import SourceOptions
from informix_checkpoints.spool import SegmentCopies, Spool, copies_for

if TYPE_CHECKING:
    from informix_cdc.executors.flight_server import SegmentServer


_CLOSING_SECONDS = 0.5


class SegmentPublisher:
    """Tells executors where a spool's segments are; serves them over Flight unless told not to."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._server: SegmentServer | None = None
        self._served_folder: Path | None = None

    def places(self, spool: Spool) -> SegmentPlaces:
        """Return where executors look for rows of this spool.

        Raises:
            AccessRefused: the Flight server cannot listen where options say.
        """
        copies = copies_for(self._options.segment_copies, spool.stream)
        return SegmentPlaces(
            self._options.deliver_by,
            copies if isinstance(copies, SegmentCopies) else None,
            self._served(spool.folder) if self._options.deliver_by != "files" else None,
        )

    def close(self) -> None:
        """End the server; safe to call twice.

        It takes no call from here on. It would wait for those in flight, also for that of an executor
        that has stopped reading; the query's end does not wait for it.
        """
        server, self._server = self._server, None
        if server is not None:
            ending = threading.Thread(target=server.shutdown, name="informix-cdc flight", daemon=True)
            ending.start()
            ending.join(_CLOSING_SECONDS)

    def _served(self, folder: Path) -> FlightAddress:
        if self._served_folder != folder:
            self.close()  # a stream that was lost has no folder any more
        if self._server is None:
            from informix_cdc.executors.flight_server import SegmentServer  # 35 ms and 8 MB

            options = self._options
            self._server = SegmentServer(folder, options.flight_host, options.flight_port)
            self._served_folder = folder
        return self._server.address
