"""Format a position in the log for `status`, as text and as JSON.

Rule: formatting only; distances are computed in `catalog/log_distance.py`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.text import Text

from informix_capture_client.printable import shown_bytes, shown_hours

if TYPE_CHECKING:  # the commands that need these modules load them
    from informix_capture_client.catalog import LogDistance, PlaceInLog

_HOUR_SECONDS = 3600


def place_as_json(place: PlaceInLog) -> dict[str, object]:
    """Return a position in the log as JSON; `untilOverwritten` is null if it has been overwritten."""
    return {
        "behind": _distance_json(place.behind),
        "untilOverwritten": _distance_json(place.headroom) if place.headroom else None,
        "secondsUntilOverwritten": place.headroom_seconds,
        "isBeyondEnd": place.is_beyond_end,
    }


def _distance_json(distance: LogDistance) -> dict[str, object]:
    names = {"logs": "logs", "size_bytes": "bytes", "percent": "percent"}
    return {names[name]: value for name, value in asdict(distance).items()}


def headroom_text(place: PlaceInLog) -> Text:
    """Return the headroom of a position, or why it has none."""
    if place.headroom is None:
        return Text("OVERWRITTEN: a restart loses data", "bold red")
    if place.is_beyond_end:
        return Text(
            "BEYOND THE END OF THE LOG: from another server, or the server was restored", "bold red"
        )
    seconds = place.headroom_seconds
    rate = "" if seconds is None else f", {shown_hours(seconds / _HOUR_SECONDS)} at the average rate"
    return Text(distance_text(place.headroom) + rate)


def distance_text(distance: LogDistance) -> str:
    """Return a distance in the log in files, bytes and percent."""
    logs = "1 log" if distance.logs == 1 else f"{distance.logs} logs"
    return f"{logs}, {shown_bytes(distance.size_bytes)}, {distance.percent} % of the log files"
