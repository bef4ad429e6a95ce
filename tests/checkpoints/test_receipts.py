"""A receipt is its user's own file, and of a file that is none nothing is quoted."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from informix_capture_client.errors import AccessRefused, BadOption
from informix_checkpoints.receipts import Acquired, Receipt, load_receipt, save_receipt

BEGUN = Receipt("s", {"a": 7}, {"t": "d"}, {"t": 104})
COMPLETE = replace(BEGUN, acquired=Acquired(1, 2, (3,), {"t": "e"}))


@pytest.fixture
def no_umask() -> Iterator[None]:
    former = os.umask(0)
    yield
    os.umask(former)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


@pytest.mark.usefixtures("no_umask")
def test_whatever_the_umask_only_its_user_can_open_a_receipt(tmp_path: Path) -> None:
    path = tmp_path / "receipt"
    for receipt, is_new in ((BEGUN, True), (COMPLETE, False)):
        save_receipt(receipt, path, is_new=is_new)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_beside_a_receipt_is_not_followed(tmp_path: Path, victim: Path) -> None:
    path = tmp_path / "receipt"
    save_receipt(BEGUN, path, is_new=True)
    path.with_name("receipt.new").symlink_to(victim)
    save_receipt(COMPLETE, path, is_new=False)
    assert load_receipt(path) == COMPLETE
    assert (victim.read_text(), path.is_symlink()) == ("precious", False)


@pytest.mark.parametrize("is_new", [True, False])
def test_no_receipt_is_written_through_a_link(tmp_path: Path, victim: Path, is_new: bool) -> None:
    path = tmp_path / "receipt"
    path.symlink_to(victim)
    with pytest.raises(AccessRefused, match="receipt"):
        save_receipt(BEGUN, path, is_new=is_new)
    assert (victim.read_text(), path.readlink()) == ("precious", victim)


@pytest.mark.parametrize(
    "content",
    [
        '["S3cret-token"]',
        '"S3cret-token"',
        "8436219",
        "S3cret-token",
        '{"S3cret-token": 1}',
        '{"version": 1, "source": ["S3cret-token"], "checksum": "8436219"}',
        '{"version": 1, "acquired": "S3cret-token"}',
    ],
)
def test_nothing_of_a_file_that_is_no_receipt_is_quoted(content: str, tmp_path: Path) -> None:
    path = tmp_path / "another"
    path.write_text(content)
    with pytest.raises(BadOption, match="is not a receipt of informix-cdc release") as refused:
        load_receipt(path)
    assert not any(secret in str(refused.value) for secret in ("S3cret", "8436219"))


def test_a_pipe_a_device_and_a_file_without_an_end_are_no_receipts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for path, why in (
        (tmp_path / "pipe", "it is not a file"),
        (Path("/dev/zero"), "it is not a file"),
        (tmp_path / "large", "it is larger than 16 MiB"),
    ):
        with pytest.raises(BadOption, match=why):
            load_receipt(path)


def test_a_receipt_that_was_edited_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "receipt"
    save_receipt(BEGUN, path, is_new=True)
    path.write_text(json.dumps({**json.loads(path.read_text()), "source": "other"}))
    with pytest.raises(BadOption, match="its checksum does not match its content"):
        load_receipt(path)
