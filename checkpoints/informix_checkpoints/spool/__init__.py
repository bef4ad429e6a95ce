"""The folder of captured rows: segments, and a manifest whose replacement is the commit point.

Rule: a crash leaves the old content or the new one; only this package calls fsync.
"""

from __future__ import annotations

from informix_checkpoints.spool.copies import SegmentCopies, copies_for
from informix_checkpoints.spool.durable_files import (
    create_file,
    disk_errors,
    make_folder,
    new_file,
    open_plain,
    read_plain,
    replace_file,
)
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.manifest_files import load_manifest
from informix_checkpoints.spool.reported_losses import ReportedLoss, ReportedLosses
from informix_checkpoints.spool.segments import (
    CutTransaction,
    OtherBytes,
    Segment,
    SegmentRange,
    stored_range,
)
from informix_checkpoints.spool.shared_spool import SharedSpool
from informix_checkpoints.spool.spill_files import SpillFiles
from informix_checkpoints.spool.spool import Spool, intact_manifest
from informix_checkpoints.spool.stored_stream import StoredStream
from informix_checkpoints.spool.writer_lock import WriterLock, has_writer, locked_folder

__all__ = [
    "CutTransaction",
    "Manifest",
    "OtherBytes",
    "ReportedLoss",
    "ReportedLosses",
    "Segment",
    "SegmentCopies",
    "SegmentRange",
    "SharedSpool",
    "SpillFiles",
    "Spool",
    "StoredStream",
    "WriterLock",
    "copies_for",
    "create_file",
    "disk_errors",
    "has_writer",
    "intact_manifest",
    "load_manifest",
    "locked_folder",
    "make_folder",
    "new_file",
    "open_plain",
    "read_plain",
    "replace_file",
    "stored_range",
]
