"""Spark's offsets: a position of the stream as JSON with a fixed order of keys.

Rule: Spark compares offsets as text, so equal positions give equal text. "Not started" is a constant:
Spark never logs the start of its first batch, so that start must not mean "now".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position

VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position, and the stream and source that it belongs to."""

    stream: str
    source: str
    position: Position

    def to_json(self) -> dict[str, object]:
        """Return the dictionary that Spark writes into its checkpoint."""
        return {
            "version": VERSION,
            "stream": self.stream,
            "source": self.source,
            "commit": self.position.commit,
            "restart": self.position.restart,
            "unseen": list(self.position.unseen),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, object]) -> StreamOffset:
        """Read what `to_json` wrote.

        Raises:
            BadOption: the checkpoint is not of this source, or of a later version.
        """
        try:
            if given["version"] != VERSION:
                raise ValueError(f"its version is {given['version']!r}")
            position = Position(
                _number(given["commit"]), _number(given["restart"]), _numbers(given["unseen"])
            )
            return cls(_text(given["stream"]), _text(given["source"]), position)
        except (KeyError, ValueError) as reason:
            raise BadOption(
                f"the checkpoint holds an offset that is not of this source: {reason}.",
                "Use a checkpoint folder of its own for every query, and this version or a later one.",
            ) from None

    @property
    def is_started(self) -> bool:
        """Tell a real position from the constant that stands before the first batch."""
        return self.stream != ""


NOT_STARTED = StreamOffset("", "", Position(0, 0))


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a sequence number")
    return value


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise ValueError(f"{value!r} is not a list of transaction ids")
    return tuple(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a name")
    return value
