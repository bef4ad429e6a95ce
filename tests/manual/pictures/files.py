"""Which picture lies in which file of docs/pictures."""

from __future__ import annotations

from pathlib import Path

from manual.pictures.plots import Figures, latency, throughput
from manual.pictures.timelines import data_loss, first_start, resume
from manual.pictures.way import way

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs" / "pictures"
FIGURES = ROOT / "docs" / "evidence" / "performance.md"


def drawn() -> dict[str, str]:
    """Return the text of every picture that is drawn from words and figures, by the file's name."""
    figures = Figures.read(FIGURES)
    pictures = {
        "way": way(),
        "first-start": first_start(),
        "resume": resume(),
        "data-loss": data_loss(),
        "throughput": throughput(figures),
        "latency": latency(figures),
    }
    return {f"{name}.svg": picture.text() for name, picture in pictures.items()}
