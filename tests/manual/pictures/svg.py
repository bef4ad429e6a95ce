"""Boxes, arrows, bars and words as SVG; what every picture of the manual is drawn with.

Rule: the same arguments give the same bytes on every machine, so that a test can tell a stale picture.
Colours are readable on a white and on a dark page: each picture brings its own ground.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

GROUND, INK, QUIET, LINE = "#fbfbf9", "#1f2933", "#5b6770", "#9aa5ad"
BLUE, GREEN, AMBER, RED, GREY = "#dbe9f6", "#dcefe0", "#fbeccb", "#f8d9d5", "#eceff1"
_FONT = "font-family='ui-sans-serif, Helvetica, Arial, sans-serif'"


@dataclass
class Drawing:
    """A picture of so many pixels; `title` is what a screen reader says."""

    width: int
    height: int
    title: str
    _parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self._parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='6' fill='{fill}'"
            f" stroke='{LINE}'/>"
        )

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 13,
        ink: str = INK,
        anchor: str = "start",
        is_bold: bool = False,
    ) -> None:
        weight = " font-weight='600'" if is_bold else ""
        self._parts.append(
            f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{ink}' text-anchor='{anchor}'"
            f"{weight}>{escape(text)}</text>"
        )

    def paragraph(self, x: float, y: float, *lines: str) -> None:
        """Write lines below each other."""
        for number, line in enumerate(lines):
            self.words(x, y + 17 * number, line)

    def step(
        self, x: float, y: float, width: float, height: float, fill: str, lines: tuple[str, ...]
    ) -> None:
        """Draw a box with a bold first line and quiet ones below it."""
        self.box(x, y, width, height, fill)
        top = y + (height - 17 * len(lines)) / 2 + 13
        for number, line in enumerate(lines):
            is_first = number == 0
            self.words(
                x + width / 2,
                top + 17 * number,
                line,
                size=13 if is_first else 11,
                ink=INK if is_first else QUIET,
                anchor="middle",
                is_bold=is_first,
            )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, is_dashed: bool = False) -> None:
        dash = " stroke-dasharray='5 4'" if is_dashed else ""
        self._parts.append(
            f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{QUIET}' stroke-width='1.6'"
            f"{dash} marker-end='url(#tip)'/>"
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self._parts.append(
            f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{LINE}'"
            " stroke-width='1.4'/>"
        )

    def text(self) -> str:
        """Return the picture as an SVG file's text."""
        return "\n".join(
            [
                f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {self.width} {self.height}'"
                f" width='{self.width}' height='{self.height}' role='img' {_FONT}>",
                f"<title>{escape(self.title)}</title>",
                "<defs><marker id='tip' viewBox='0 0 10 10' refX='9' refY='5' markerWidth='7'"
                f" markerHeight='7' orient='auto'><path d='M0 0 L10 5 L0 10 z' fill='{QUIET}'/>"
                "</marker></defs>",
                f"<rect width='{self.width}' height='{self.height}' rx='8' fill='{GROUND}'/>",
                *self._parts,
                "</svg>\n",
            ]
        )
