"""The configuration file that all commands take: of a mirror, a capture, or [source] alone.

    into = "/lake/stores"
    checkpoint = "/lake/checkpoints/stores"
    trigger = "10 seconds"                  # processingTime; default: as fast as possible

    [source]                                # options of the format, as in readStream; no password
    host = "db1"
    database = "stores"
    table = "informix.*"
    passwordFile = "/run/secrets/informix"

    [tables."informix.items"]
    keep = "history"

    [spark]                                 # settings of the Spark session that the command starts
    "spark.master" = "local[4]"

Rule: a file with `into` is a mirror's. Its settings but `trigger` and `spark` are those of
`informix_cdc.lake.mirror`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from informix_capture_client.errors import BadOption
from informix_cdc.terminal import checked_options, read_source_file, require_flat

if TYPE_CHECKING:  # the commands that need these modules load them
    from informix_cdc.daemon import CaptureSettings
    from informix_cdc.lake import MirrorSettings

_UNIT = "(microsecond|millisecond|second|minute|hour|day|week)s?"
_INTERVAL = re.compile(rf"((interval\s+)?\d+\s+{_UNIT}(\s+\d+\s+{_UNIT})*)?")  # as Spark reads it
_PLACES = ("into", "checkpoint")


@dataclass(frozen=True, slots=True)
class MirrorFile:
    """The content of a mirror's file.

    Attributes:
        settings: of the mirror.
        source: options of the format.
        trigger: interval between micro-batches; empty for none.
        spark: settings of Spark.
    """

    settings: MirrorSettings
    source: Mapping[str, str]
    trigger: str
    spark: Mapping[str, str]

    @property
    def spool(self) -> str:
        """Where requests to the stream are put: captureAt or spoolPath; empty: in the checkpoint."""
        source = {name.lower(): value for name, value in self.source.items()}
        return source.get("captureat") or source.get("spoolpath", "")


def read_mirror_file(path: Path) -> MirrorFile:
    """Read a mirror's file.

    Raises:
        BadOption: it cannot be read, is not TOML, contains a password, or has an unknown setting.
    """
    from informix_cdc.lake import MirrorSettings, checked_settings

    names = {each.name for each in fields(MirrorSettings)}
    known, source = read_source_file(path, names | {"trigger", "spark"})
    spark, trigger = known.pop("spark", {}), known.pop("trigger", "")
    require_flat(path, "spark", spark, lists=False)
    if not isinstance(trigger, str) or not _INTERVAL.fullmatch(trigger.strip().lower()):
        raise BadOption(
            f"{path}: trigger must be an interval such as '10 seconds', not {trigger!r}.", "Correct it."
        )
    settings = {name: str(spark[name]) for name in spark}
    try:
        checked = checked_settings(known, source)
    except BadOption as reason:
        raise BadOption(f"{path}: {reason.message}", reason.remedy) from None
    return MirrorFile(checked, source, trigger, settings)


def read_capture_file(path: Path) -> CaptureSettings:
    """Read the settings of a capture.

    Raises:
        BadOption: the file cannot be read, contains a password, or a setting is not valid.
    """
    from informix_cdc.daemon import CaptureSettings

    given, source = read_source_file(path, _PLACES)
    try:
        return CaptureSettings.of(given, source)
    except BadOption as reason:
        raise BadOption(f"{path}: {reason.message}", reason.remedy) from None


def of_commands(path: Path) -> dict[str, Any]:
    """Return what a file sets for a command, by the parameters of commands.

    Raises:
        BadOption: the file has a problem.
    """
    settings, source = read_source_file(path, _PLACES)
    found: dict[str, Any] = {}
    if "into" in settings:
        if find_spec("deltalake") is None:
            raise BadOption(
                f"{path} is the file of a mirror, which requires deltalake.",
                "Run: pip install 'informix-cdc[delta]'; or give flags instead of the file.",
            )
        from informix_cdc.lake import stream_options

        found["mirror"] = file = read_mirror_file(path)
        source = stream_options(file.settings, file.source)
    if checkpoint := settings.get("checkpoint"):
        found |= {"checkpoint": checkpoint, "checkpoints": [checkpoint]}
    source = checked_options(path, source)
    spool = source.get("captureAt") or source.get("spoolPath", "")
    return {**source, **found, "spool": spool, "spools": [spool] if spool else []}
