"""What a figure is, and those of the contents of large objects.

Rule: declared once; names for Spark's progress and for Prometheus are made from the one name.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "informix_cdc_"
COUNTER, GAUGE, FLAG, POSITION = "counter", "gauge", "flag", "position"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: in words with underscores; its unit, where it has one, at the end.
        kind: counter (since the process began), gauge, flag, or position (in the progress only).
        source: where it is read, in a `View`.
        meaning: for the manual and for Prometheus.
        key: in Spark's progress, where that is not the name in camel case.
    """

    name: str
    kind: str
    source: str
    meaning: str
    key: str = ""

    @property
    def progress_key(self) -> str:
        """The key in Spark's progress."""
        first, *rest = self.name.split("_")
        return self.key or first + "".join(part.capitalize() for part in rest)

    @property
    def metric(self) -> str | None:
        """The name for Prometheus; None where it is no number to be charted."""
        if self.kind == POSITION:
            return None
        return f"{PREFIX}{self.name}{'_total' if self.kind == COUNTER else ''}"


CONTENT_FIGURES = tuple(
    Figure(f"lob_{name}", COUNTER, f"counters.contents.{name}", meaning)
    for name, meaning in (
        ("read", "large objects whose content was read"),
        ("gone", "large objects that were not there any more when they were opened"),
        ("too_large", "large objects left unread, since they have more bytes than lobMaxBytes"),
        ("not_read", "large objects left unread, since lobReadSeconds were over"),
        ("read_bytes", "bytes of contents of large objects"),
    )
)
