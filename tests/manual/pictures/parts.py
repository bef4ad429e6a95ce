"""The parts of a stream, what each gives to the next, and where a restart begins."""

from __future__ import annotations

from manual.pictures.svg import AMBER, BLUE, GREEN, GREY, QUIET, Drawing

_WIDTH, _HEIGHT = 160, 60
_COLUMNS = (36, 254, 462, 684)
_ROWS = (64, 166, 280)
_BOXES = (
    (0, 0, "#ffffff", ("logical log", "of all changes")),
    (0, 1, "#ffffff", ("capture session", "opened over SQL")),
    (1, 1, BLUE, ("open transactions", "in memory, or spilled")),
    (2, 1, AMBER, ("spool", "Arrow files")),
    (2, 0, BLUE, ("offset", "commit and restart")),
    (3, 0, GREEN, ("micro-batch", "rows of two offsets")),
    (3, 1, GREEN, ("executors", "write into your sink")),
    (3, 2, GREY, ("checkpoint", "offset of each batch")),
)


def parts() -> Drawing:
    """Draw server, driver and Spark, and the way from the checkpoint back to the session."""
    made = Drawing(900, 362, "Parts of a stream")
    for x, width, title in (
        (20, 192, "Informix"),
        (238, 400, "driver: one Python process for each query"),
        (668, 192, "Spark"),
    ):
        made.words(x, 36, title, ink=QUIET)
        made.box(x, 46, width, 198, "#f2f5f8")
    for column, row, fill, lines in _BOXES:
        made.step(_COLUMNS[column], _ROWS[row], _WIDTH, _HEIGHT, fill, lines)
    first, second, third, fourth = _COLUMNS
    top, middle, low = (row + _HEIGHT / 2 for row in _ROWS)
    made.arrow(first + 80, _ROWS[0] + _HEIGHT, first + 80, _ROWS[1] - 3)
    for left, right in ((first, second), (second, third), (third, fourth)):
        made.arrow(left + _WIDTH, middle, right - 3, middle)
    made.arrow(third + 80, _ROWS[1], third + 80, _ROWS[0] + _HEIGHT + 3)
    made.arrow(third + _WIDTH, top, fourth - 3, top)
    made.arrow(fourth + 80, _ROWS[0] + _HEIGHT, fourth + 80, _ROWS[1] - 3)
    edge = fourth + _WIDTH + 34
    made.line(fourth + _WIDTH, top, edge, top)
    made.line(edge, top, edge, low)
    made.arrow(edge, low, fourth + _WIDTH + 3, low)
    made.line(fourth, low, first + 80, low)
    made.arrow(first + 80, low, first + 80, _ROWS[1] + _HEIGHT + 3, is_dashed=True)
    made.words(second, low - 8, "a restart reads the log from the restart position", ink=QUIET)
    made.words(edge - 6, _ROWS[2] - 14, "commit", size=11, ink=QUIET, anchor="end")
    return made
