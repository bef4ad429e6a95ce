"""A first start, a resume and a data loss, along the server's log."""

from __future__ import annotations

from manual.pictures.svg import AMBER, BLUE, GREEN, GREY, QUIET, RED, Drawing

_LEFT, _RIGHT = 40, 900
_TRANSACTION = 20


def _log(made: Drawing, y: float) -> None:
    made.arrow(_LEFT, y, _RIGHT, y)
    made.words(_RIGHT, y - 8, "the server's log", size=11, ink=QUIET, anchor="end")


def _mark(made: Drawing, x: float, y: float, *lines: str) -> None:
    """Draw a mark on the log, its words below it."""
    made.line(x, y - 8, x, y + 8)
    for number, line in enumerate(lines):
        made.words(x, y + 24 + 15 * number, line, size=11, ink=QUIET, anchor="middle")


def _transaction(made: Drawing, x1: float, x2: float, y: float, fill: str, text: str) -> None:
    made.box(x1, y, x2 - x1, _TRANSACTION, fill)
    made.words((x1 + x2) / 2, y + 14, text, size=11, anchor="middle")


def first_start() -> Drawing:
    """Where a new stream starts, and what it leaves out."""
    made = Drawing(940, 250, "A first start")
    made.words(20, 28, "A first start", size=15, is_bold=True)
    _transaction(made, 70, 250, 52, GREY, "committed: not delivered")
    _transaction(made, 180, 480, 80, GREY, "open at the start: left out, the start waits")
    _transaction(made, 420, 590, 108, BLUE, "begins after it: delivered")
    _transaction(made, 640, 780, 80, BLUE, "delivered")
    _log(made, 158)
    _mark(made, 330, 158, "startingPosition=latest:", "the session starts here")
    _mark(made, 500, 158, "batch 0, empty: its offset", "is the start of the stream")
    _mark(made, 640, 158, "batch 1")
    _mark(made, 780, 158, "batch 2")
    made.paragraph(
        20,
        232,
        "The start offset is in the checkpoint before the first row, so a crash cannot move it.",
    )
    return made


def resume() -> Drawing:
    """What a query reads again after a crash, and what it delivers."""
    made = Drawing(940, 250, "A resume")
    made.words(20, 28, "A resume", size=15, is_bold=True)
    _transaction(made, 90, 560, 52, BLUE, "open during the crash: delivered after it commits")
    _transaction(made, 180, 300, 80, GREEN, "delivered, batch 6")
    _transaction(made, 320, 440, 80, AMBER, "planned, batch 7")
    _transaction(made, 600, 740, 80, BLUE, "batch 8")
    _log(made, 138)
    _mark(made, 90, 138, "restart position:", "reading starts here")
    _mark(made, 300, 138, "last delivered", "commit")
    _mark(made, 440, 138, "batch 7 ends here", "in the offset log")
    _mark(made, 520, 138, "crash")
    _mark(made, 740, 138, "now")
    made.paragraph(
        20,
        212,
        "An offset contains both positions. Transactions up to the last delivered commit are read",
        "again but not delivered. Batch 7 has the same rows as before. Nothing is lost or repeated.",
    )
    return made


def data_loss() -> Drawing:
    """What happens when the log no longer reaches back to the restart position."""
    made = Drawing(940, 267, "A data loss")
    made.words(20, 28, "A data loss", size=15, is_bold=True)
    made.box(40, 52, 330, 68, RED)
    made.words(205, 80, "overwritten while the query was stopped", size=12, anchor="middle")
    made.words(205, 98, "(or: row logging off, another log, ...)", size=11, ink=QUIET, anchor="middle")
    _transaction(made, 420, 560, 76, BLUE, "still in the log")
    _log(made, 142)
    _mark(made, 110, 142, "restart position", "of the checkpoint")
    _mark(made, 370, 142, "oldest position", "the server has")
    _mark(made, 560, 142, "now")
    made.paragraph(
        20,
        204,
        "onDataLoss=fail: the query fails with IFXCDC-0006, and so does every restart.",
        "onDataLoss=continue: the loss is logged with its range and counted. The same checkpoint",
        "continues with a new stream at the oldest position.",
        "onDataLoss=resync: as continue; then the affected tables are read again.",
    )
    return made
