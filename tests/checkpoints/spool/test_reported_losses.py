"""Marks of losses in files: kept in one folder, looked for in all, and no alarm where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from informix_capture_client.errors import DataLoss, Gap
from informix_checkpoints.spool.reported_losses import ReportedLosses

LOSS = DataLoss("row logging was off.", gap=Gap.ROW_LOGGING_OFF)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_mark_is_found_with_and_without_a_spool_path(home: Path, tmp_path: Path) -> None:
    ReportedLosses.beside("").record("s1", "d", LOSS)
    kept = str(tmp_path / "spool")
    ReportedLosses.beside(kept).record("s2", "d", LOSS)
    assert ReportedLosses.beside(kept).find("s1") == ReportedLosses.beside("").find("s1") is not None
    assert ReportedLosses.beside(kept).find("s2") is not None
    assert ReportedLosses.beside(kept).find("s3") is None
    assert (home / ".local" / "state" / "informix-cdc" / "losses" / "s1.lost.json").is_file()


def test_a_home_that_is_a_file_or_nowhere_is_no_mark(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text("")
    losses = ReportedLosses.beside("")
    assert losses.find("s1") is None
    losses.remove("s1")
    with pytest.raises(OSError, match="home"):
        losses.record("s1", "d", LOSS)
    monkeypatch.setattr(Path, "home", homeless)
    assert ReportedLosses.beside("").find("s1") is None
    with pytest.raises(OSError, match="no home directory"):
        ReportedLosses.beside("").record("s1", "d", LOSS)


def homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_a_mark_that_this_user_may_not_read_is_no_mark(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where HOME is that of another user: who cannot read there has kept nothing there."""

    def refused(_path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    ReportedLosses.beside("").record("s1", "d", LOSS)
    monkeypatch.setattr("informix_checkpoints.spool.reported_losses.read_own", refused)
    assert ReportedLosses.beside("").find("s1") is None


def test_a_mark_is_forgotten_in_all_folders(home: Path, tmp_path: Path) -> None:
    losses = ReportedLosses.beside(str(tmp_path / "spool"))
    ReportedLosses.beside("").record("s1", "d", LOSS)
    losses.record("s1", "d", LOSS)
    losses.remove("s1")
    assert losses.find("s1") is None
