"""How a change gets from the server's log into your table."""

from __future__ import annotations

from manual.pictures.svg import AMBER, BLUE, GREEN, GREY, QUIET, Drawing

_STEPS = (
    (GREY, ("Informix", "logical log,", "CDC session")),
    (BLUE, ("CDC records", "over ODBC or SQLI,", "checked")),
    (BLUE, ("transactions", "committed only,", "in commit order")),
    (BLUE, ("columns", "decoded into", "Arrow")),
    (AMBER, ("spool", "on disk, until", "Spark commits")),
    (GREEN, ("micro-batch", "same offsets,", "same rows")),
    (GREY, ("your table", "Delta, Iceberg,", "any sink")),
)
_WIDTH, _GAP, _TOP, _HEIGHT = 118, 24, 62, 84


def way() -> Drawing:
    """Draw the seven steps, and the arrow from the checkpoint back to the log."""
    width = 20 + len(_STEPS) * (_WIDTH + _GAP) - _GAP + 20
    made = Drawing(width, 258, "How a change gets from Informix's log into a table")
    places = [20 + number * (_WIDTH + _GAP) for number in range(len(_STEPS))]
    for x, (fill, lines) in zip(places, _STEPS, strict=True):
        made.step(x, _TOP, _WIDTH, _HEIGHT, fill, lines)
    middle = _TOP + _HEIGHT / 2
    for x in places[:-1]:
        made.arrow(x + _WIDTH + 2, middle, x + _WIDTH + _GAP - 3, middle)
    made.words(places[1], 40, "in Spark's driver, no Kafka", ink=QUIET)
    made.line(places[1], 48, places[4] + _WIDTH, 48)
    made.words(places[5], 40, "Spark", ink=QUIET)
    made.line(places[5], 48, places[6] + _WIDTH, 48)
    bottom = _TOP + _HEIGHT
    x = places[5] + _WIDTH / 2
    made.step(places[3], 190, 3 * _WIDTH + 2 * _GAP, 46, GREEN, (
        "checkpoint: the offset of each micro-batch",
        "last delivered commit, and the restart position in the log",
    ))  # fmt: skip
    made.arrow(x, bottom + 2, x, 187)
    made.line(places[3], 213, places[0] + _WIDTH / 2, 213)
    made.arrow(places[0] + _WIDTH / 2, 213, places[0] + _WIDTH / 2, bottom + 3, is_dashed=True)
    made.words(places[0] + _WIDTH / 2 + 10, 232, "a restart reads the log from there", ink=QUIET)
    return made
