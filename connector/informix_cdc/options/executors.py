"""Options of how rows get from the driver to executors, and in how many shares.

Rule: declarations only; `source.py` joins them with all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from informix_capture_client.errors import BadOption
from informix_cdc.options.connection import ConnectionOptions
from informix_cdc.options.copies_url import url_of_copies
from informix_cdc.options.declaring import (
    one_of,
    option,
    size,
    whole_number,
)

LOOPBACK = "127.0.0.1"
_WILDCARDS = {"0.0.0.0", "::"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def address(text: str) -> str:
    """Read the address of a host, without a port."""
    if text in _WILDCARDS:
        raise ValueError("must be one address that executors can connect to")
    return listening_address(text)


def listening_address(text: str) -> str:
    """Read an address to listen on, without a port; it may be a wildcard."""
    if not text.isascii() or any(sign in text for sign in " /@[]") or text.count(":") == 1:
        raise ValueError("must be a host name or an address, without a port")
    return text


def local_folder(text: str) -> str:
    """Read the path of a folder; `s3://bucket` and `~/x` would become folders in the working one."""
    if scheme := _SCHEME.match(text):
        raise ValueError(
            f"must be a path that the driver's system knows: {scheme[0]} is a URL's scheme, and an"
            " object store has neither the lock nor the renaming that the spool rests on; mount a"
            " folder, or set segmentCopies to a URL for executors"
        )
    if not PurePosixPath(text).is_absolute():
        raise ValueError(
            "must be a path from the root on, such as /var/lib/informix-cdc: no shell expands ~ here,"
            " and another path would be another folder wherever the query is started"
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions(ConnectionOptions):
    """Where segments are kept, how executors get at them, and how a batch is shared out."""

    spool_path: str = option(
        "Folder of the spool, which keeps captured rows until Spark has committed them; default: a"
        " private temporary folder.",
        local_folder,
        default="",
    )
    deliver_by: str = option(
        "How executors get rows: files (from spoolPath or segmentCopies), flight (from the driver by"
        " Arrow Flight), or auto (the first of these that works; Flight only if flightHost is set).",
        one_of("auto", "files", "flight"),
        default="auto",
        name="delivery",
    )
    flight_host: str = option(
        "Address on which the driver's Arrow Flight server listens and which executors connect to;"
        " default: no server, or 127.0.0.1 with delivery=flight.",
        address,
        default="",
    )
    flight_port: int = option(
        "TCP port of the driver's Arrow Flight server; 0 picks a free one.",
        whole_number(0, 65535),
        default=0,
    )
    segment_copies: str = option(
        "URL, such as s3://bucket/path or file:///mnt/path, to which spool segments are copied for"
        " executors; a secret in it is refused.",
        url_of_copies,
        default="",
    )
    min_partitions: int = option(
        "Approximate minimum number of tasks that read a micro-batch.",
        whole_number(1, 10_000),
        default=1,
    )
    max_partition_bytes: int = option(
        "Approximate maximum number of spool bytes that one task reads, such as 64m.",
        size(1 << 16),
        default=64 << 20,
    )

    @property
    def has_flight_server(self) -> bool:
        """Whether rows may go by Flight: it is the only way, or its address was named."""
        return self.deliver_by == "flight" or (self.deliver_by == "auto" and self.flight_host != "")

    def refuse_unused_addresses(self) -> None:
        """Refuse an address of a Flight server that there would not be.

        Raises:
            BadOption: names the option and the remedy.
        """
        if self.flight_host and self.deliver_by == "files":
            raise BadOption(
                "option 'flightHost' means nothing with delivery=files.",
                "Keep one of them.",
                option="flightHost",
            )
        if self.flight_port and not self.has_flight_server:
            raise BadOption(
                "option 'flightPort' means nothing where no Flight server is asked for.",
                "Set flightHost to an address of the driver, or delivery=flight; or leave it out.",
                option="flightPort",
            )
