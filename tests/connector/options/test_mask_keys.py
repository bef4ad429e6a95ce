"""The file with the key of masks."""

from __future__ import annotations

from pathlib import Path

import pytest

from informix_capture_client.errors import BadOption
from informix_cdc.options.mask_keys import mask_key


def test_a_key_is_required_and_long_enough(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="cannot be read: No such file"):
        mask_key(str(tmp_path / "none"))
    (tmp_path / "short").write_bytes(b"x" * 31 + b"\n")
    with pytest.raises(BadOption, match="has 31 bytes, which is fewer than 32") as caught:
        mask_key(str(tmp_path / "short"))
    assert "x" * 31 not in str(caught.value)


def test_white_space_around_a_key_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"x" * 32)
    (tmp_path / "line").write_bytes(b"x" * 32 + b"\r\n")
    assert mask_key(str(tmp_path / "plain")) == mask_key(str(tmp_path / "line"))
