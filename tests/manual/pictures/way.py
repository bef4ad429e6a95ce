"""The way a change takes, from the server's log into a table of yours."""

from __future__ import annotations

from manual.pictures.svg import AMBER, BLUE, GREEN, GREY, QUIET, Drawing

_STEPS = (
    (GREY, ("Informix", "logical log,", "CDC session")),
    (BLUE, ("bytes", "over ODBC or SQLI,", "cut into records")),
    (BLUE, ("transactions", "whole, committed,", "in commit order")),
    (BLUE, ("columns", "Arrow, decoded by", "NumPy, not by row")),
    (AMBER, ("spool", "segment, then", "manifest, synced")),
    (GREEN, ("micro-batch", "same offsets,", "same rows")),
    (GREY, ("your table", "Delta, Parquet,", "anything")),
)
_WIDTH, _GAP, _TOP, _HEIGHT = 118, 24, 62, 84


def way() -> Drawing:
    """Draw it: seven steps, and what comes back to the first after a restart."""
    width = 20 + len(_STEPS) * (_WIDTH + _GAP) - _GAP + 20
    made = Drawing(width, 258, "The way a change takes from Informix' log into a table")
    places = [20 + number * (_WIDTH + _GAP) for number in range(len(_STEPS))]
    for x, (fill, lines) in zip(places, _STEPS, strict=True):
        made.step(x, _TOP, _WIDTH, _HEIGHT, fill, lines)
    middle = _TOP + _HEIGHT / 2
    for x in places[:-1]:
        made.arrow(x + _WIDTH + 2, middle, x + _WIDTH + _GAP - 3, middle)
    made.words(places[1], 40, "one process beside Spark's driver, no Kafka", ink=QUIET)
    made.line(places[1], 48, places[4] + _WIDTH, 48)
    made.words(places[5], 40, "Spark", ink=QUIET)
    made.line(places[5], 48, places[6] + _WIDTH, 48)
    bottom = _TOP + _HEIGHT
    x = places[5] + _WIDTH / 2
    made.step(places[3], 190, 3 * _WIDTH + 2 * _GAP, 46, GREEN, (
        "checkpoint: the offset of each micro-batch",
        "last delivered commit, and where a restart must begin to read",
    ))  # fmt: skip
    made.arrow(x, bottom + 2, x, 187)
    made.line(places[3], 213, places[0] + _WIDTH / 2, 213)
    made.arrow(places[0] + _WIDTH / 2, 213, places[0] + _WIDTH / 2, bottom + 3, is_dashed=True)
    made.words(places[0] + _WIDTH / 2 + 10, 232, "after a restart: read again from there", ink=QUIET)
    return made
