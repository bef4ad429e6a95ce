"""Bars from the table of figures that `make bench` printed: docs/evidence/performance.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from manual.pictures.svg import AMBER, BLUE, GREY, QUIET, Drawing

_ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|")
_RATE = re.compile(r"^([\d.]+) (M|k)(?: rows| records)?/s")
_TIMES = re.compile(r"p50 (\d+) ms, p95 (\d+) ms")
_LEFT, _WIDTH, _STEP = 330, 470, 30

# The bars of the throughput plot: stage and what, as in the table, and the label.
THROUGHPUT = (
    ("framing + assembly", "transactions of 10 rows", "bytes -> transactions"),
    ("decoding", "ten columns to Arrow", "records -> Arrow, ten columns"),
    ("bytes -> spool", "transactions of 10 rows, synced to disk", "bytes -> spool, synced to disk"),
    ("spool -> executor", "by file, its bytes compared first", "spool -> executor, by file"),
    ("spool -> executor", "by Flight, both ends", "spool -> executor, by Flight"),
    ("spool -> Spark", "one micro-batch, noop sink", "spool -> Spark, one micro-batch"),
    ("emulator -> Spark", "transactions of 10 rows, noop sink", "end to end: emulator -> Spark"),
)


@dataclass(frozen=True)
class Figures:
    """The table, by stage and what."""

    by_name: dict[tuple[str, str], str]

    @classmethod
    def read(cls, page: Path) -> Figures:
        rows = (_ROW.match(line) for line in page.read_text(encoding="utf-8").splitlines())
        return cls({(row[1], row[2]): row[3] for row in rows if row})

    def rate(self, stage: str, what: str) -> float:
        """Return a rate, in millions a second.

        Raises:
            KeyError: the table has no such row.
            ValueError: it holds no rate.
        """
        figure = self.by_name[stage, what]
        if (found := _RATE.match(figure)) is None:
            raise ValueError(f"{stage}, {what}: {figure!r} is not a rate")
        return float(found[1]) / (1 if found[2] == "M" else 1000)

    def latencies(self) -> list[tuple[str, int, int]]:
        """Return what was measured of commit -> row seen: name, p50 and p95 in milliseconds."""
        return [
            (what, int(found[1]), int(found[2]))
            for (stage, what), figure in self.by_name.items()
            if stage == "commit -> row seen" and (found := _TIMES.match(figure))
        ]


def throughput(figures: Figures) -> Drawing:
    """Draw how many rows or CDC records per second each stage processes."""
    rates = [(words, figures.rate(stage, what)) for stage, what, words in THROUGHPUT]
    most = max(rate for _, rate in rates)
    made = Drawing(900, 70 + _STEP * len(rates), "Rows or CDC records per second, by stage")
    made.words(
        20, 30, "Millions of rows (or CDC records) per second, each stage alone, 2 cores", is_bold=True
    )
    for number, (words, rate) in enumerate(rates):
        y = 52 + _STEP * number
        made.words(_LEFT - 10, y + 15, words, anchor="end")
        made.box(
            _LEFT, y, max(2.0, _WIDTH * rate / most), 20, BLUE if number < len(rates) - 1 else AMBER
        )
        made.words(_LEFT + _WIDTH * rate / most + 8, y + 15, f"{rate:.2f}", ink=QUIET)
    return made


def latency(figures: Figures) -> Drawing:
    """Draw the time from a commit to its row in Spark, over the whole width, with an axis."""
    times = figures.latencies()
    left, width = 60, 780
    end = 200 * -(-max(p95 for _, _, p95 in times) // 200)  # the axis ends at a whole tick
    bottom = 48 + 62 * len(times)
    made = Drawing(900, bottom + 40, "Time from commit to the row in Spark")
    made.words(20, 30, "Time from commit to the row in Spark, at 50 transactions/s", is_bold=True)
    for tick in range(0, end + 1, 200):
        x = left + width * tick / end
        made.line(x, bottom, x, bottom + 5)
        label = f"{tick} ms" if tick else "0"
        made.words(x, bottom + 20, label, size=11, ink=QUIET, anchor="middle")
    made.line(left, bottom, left + width, bottom)
    for number, (what, p50, p95) in enumerate(times):
        y = 48 + 62 * number
        made.words(left, y + 14, what, size=12)
        for row, (name, value, fill) in enumerate((("p50", p50, BLUE), ("p95", p95, GREY))):
            top = y + 20 + 17 * row
            made.words(left - 8, top + 11, name, size=11, ink=QUIET, anchor="end")
            made.box(left, top, width * value / end, 14, fill)
            made.words(left + 6, top + 11, f"{value} ms", size=11)
    return made
