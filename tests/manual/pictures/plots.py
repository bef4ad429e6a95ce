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

# What stands in the plot of throughput: stage and what, as the table has them, and our words.
THROUGHPUT = (
    ("framing + assembly", "transactions of 10 rows", "bytes -> transactions"),
    ("decoding", "ten columns to Arrow", "records -> Arrow, ten columns"),
    ("encoding", "shape=rows", "the rows of a micro-batch"),
    ("bytes -> spool", "transactions of 10 rows, synced to disk", "bytes -> spool, synced to disk"),
    ("spool -> executor", "by file, its bytes compared first", "spool -> executor, by file"),
    ("spool -> executor", "by Flight, both ends", "spool -> executor, by Flight"),
    ("spool -> Spark", "one micro-batch, noop sink", "spool -> Spark, one micro-batch"),
    ("emulator -> Spark", "transactions of 10 rows, noop sink", "all of it: emulator -> Spark"),
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
        said = self.by_name[stage, what]
        if (found := _RATE.match(said)) is None:
            raise ValueError(f"{stage}, {what}: {said!r} is no rate")
        return float(found[1]) / (1 if found[2] == "M" else 1000)

    def latencies(self) -> list[tuple[str, int, int]]:
        """Return what was measured of commit -> row seen: name, p50 and p95 in milliseconds."""
        return [
            (what, int(found[1]), int(found[2]))
            for (stage, what), said in self.by_name.items()
            if stage == "commit -> row seen" and (found := _TIMES.match(said))
        ]


def throughput(figures: Figures) -> Drawing:
    """Draw how many rows or records a second each stage passes."""
    rates = [(words, figures.rate(stage, what)) for stage, what, words in THROUGHPUT]
    most = max(rate for _, rate in rates)
    made = Drawing(900, 70 + _STEP * len(rates), "Rows or records a second, by stage")
    made.words(
        20, 30, "Millions of rows or records a second, each stage by itself, 2 cores", is_bold=True
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
    """Draw how long a committed row takes until it is seen."""
    times = figures.latencies()
    most = max(p95 for _, _, p95 in times)
    made = Drawing(900, 86 + 2 * _STEP * len(times), "From commit to the row in Spark")
    made.words(
        20, 30, "From commit to the row in Spark, milliseconds; 50 transactions a second", is_bold=True
    )
    for number, (what, p50, p95) in enumerate(times):
        y = 52 + 2 * _STEP * number
        made.words(20, y + 14, what, size=12)
        for row, (name, value, fill) in enumerate((("p50", p50, BLUE), ("p95", p95, GREY))):
            top = y + 20 + 16 * row
            made.words(_LEFT + 90, top + 11, name, size=11, ink=QUIET, anchor="end")
            made.box(_LEFT + 100, top, 380 * value / most, 13, fill)
            made.words(_LEFT + 106 + 380 * value / most, top + 11, str(value), size=11, ink=QUIET)
    return made
