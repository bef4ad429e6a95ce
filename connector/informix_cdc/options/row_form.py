"""The form of a delivered row, as the options together say it, and what becomes of large objects in it.

Rule: what a shape has no room for is refused, never left out without a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption
from informix_cdc.options.declaring import one_of, option, size, whole_number
from informix_cdc.options.snapshots import SnapshotOptions

if TYPE_CHECKING:
    from informix_cdc.options.source import SourceOptions

_OF_THEIR_OWN = ("envelope", "raw")  # shapes whose columns about a change are others
CONTENT, RESELECT = "content", "reselect"


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeObjectOptions(SnapshotOptions):
    """What BLOB, CLOB, TEXT and BYTE columns become, and how their contents are read."""

    lobs: str = option(
        "What BLOB and CLOB columns become: handle (the 76-byte handle as BINARY), content (a struct of"
        " what the object holds when it is read, its size and a status; needs spoolPath), reselect (the"
        " same of the object that a SELECT by the row's key finds), or omit (they are left out).",
        one_of("handle", CONTENT, RESELECT, "omit"),
        default="handle",
    )
    simple_lobs: str = option(
        "What TEXT and BYTE columns become, which no log has: unsupported (as unsupportedColumns says),"
        " or reselect (a struct of what a SELECT by the row's key finds, its size and a status;"
        " needs spoolPath).",
        one_of("unsupported", RESELECT),
        default="unsupported",
    )
    lob_max_bytes: int = option(
        "Maximum number of bytes of a large object that is read; a larger one has its size and the"
        " status too_large.",
        size(1, 1 << 30),
        default=16 << 20,
    )
    lob_connections: int = option(
        "Number of connections that read large objects.",
        whole_number(1, 16),
        default=2,
    )
    lob_read_seconds: int = option(
        "Seconds for which rows wait for the contents of their large objects; what is not read then has"
        " the status not_read; 0 means as long as the connections live.",
        whole_number(0, 86_400),
        default=0,
    )
    lob_unchanged: str = option(
        "What an update that leaves a large object's handle as it was does: read its content, which may"
        " have been written into, or skip it (not_read).",
        one_of("read", "skip"),
        default="read",
    )

    @property
    def reads_objects(self) -> bool:
        """Whether smart large objects are read."""
        return self.lobs in (CONTENT, RESELECT)

    @property
    def reads_contents(self) -> bool:
        """Whether any large objects are read."""
        return self.reads_objects or self.simple_lobs == RESELECT


def row_form(options: SourceOptions) -> RowForm:
    """Return the form of a delivered row."""
    return RowForm(
        shape=cast("Any", options.shape),
        truncate=cast("Any", options.truncate),
        before_image=options.before_image,
        server=options.server,
        metadata=cast("Any", options.metadata),
    )


def require_metadata_of_shape(options: SourceOptions) -> None:
    """Refuse to choose metadata columns of a shape that has none of them.

    Raises:
        BadOption: the shape is such a one.
    """
    if options.metadata != "full" and options.shape in _OF_THEIR_OWN:
        raise BadOption(
            f"option 'metadata' has no meaning with shape={options.shape}, whose columns are its own.",
            "Leave it out, or set shape to rows, json or arrow.",
            option="metadata",
        )


def require_discovery_may_be(options: SourceOptions) -> None:
    """Refuse tables that join while a query runs in a shape whose columns depend on the tables.

    Raises:
        BadOption: the shape is such a one; Spark fixes a query's schema when it starts.
    """
    if options.discovery_seconds and not options.row_form().has_fixed_schema:
        raise BadOption(
            f"option 'discoverySeconds' has no meaning with shape={options.shape}, whose columns depend"
            " on the tables and are fixed while a query runs.",
            "Set shape to json or arrow, whose columns are the same for any number of tables, or leave"
            " discoverySeconds out.",
            option="discoverySeconds",
        )


def require_contents_may_be(name: str, value: str, options: SourceOptions) -> None:
    """Refuse contents that could not be kept, or have no place in what is delivered.

    Raises:
        BadOption: names the option that is in their way.
    """
    if value not in (CONTENT, RESELECT):
        return
    if options.shape == "raw":
        raise BadOption(
            f"option '{name}' is {value}, which has no meaning with shape=raw: its records are as they"
            " came.",
            f"Set shape to rows, json, arrow or envelope, or leave {name} out.",
            option=name,
        )
    if not options.spool_path:
        raise BadOption(
            f"option '{name}' is {value}, which needs option spoolPath: an object may have changed"
            " when a batch has to show it again.",
            "Set spoolPath to a folder that outlives the query.",
            option="spoolPath",
        )
