"""The emulator as Informix and as GBase 8s: who owns what, and who may capture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.raw_client import RawClient, Refused
from informix_emulator import EmulatedServer

Connect = Callable[..., RawClient]

POSES = [("informix", "informix", "gbasedbt"), ("gbase8s", "gbasedbt", "informix")]


@pytest.mark.parametrize(("pose", "owner", "other"), POSES)
def test_the_system_tables_belong_to_the_owner_of_the_pose(
    pose: str, owner: str, other: str, connect: Connect
) -> None:
    client = connect(
        EmulatedServer(poses_as=pose, cdc_locale="en_US.utf8"), user=owner, database="syscdcv1"
    )
    assert client.rows("SELECT owner FROM systables WHERE tabid = 1") == [(owner,)]
    assert client.rows(f"SELECT is_current FROM sysmaster:{owner}.syslogs WHERE is_current = 1")
    with pytest.raises(Refused) as refused:
        client.rows(f"SELECT is_current FROM sysmaster:{other}.syslogs")
    assert refused.value.native == -206


@pytest.mark.parametrize(("pose", "owner", "other"), POSES)
def test_the_routines_belong_to_the_owner_too_and_may_be_called_without_one(
    pose: str, owner: str, other: str, connect: Connect
) -> None:
    client = connect(
        EmulatedServer(poses_as=pose, cdc_locale="en_US.utf8"), user=owner, database="syscdcv1"
    )
    arguments = "('informix', 0, 1, 256, 1, 1)"
    with pytest.raises(Refused) as refused:
        client.rows(f"EXECUTE FUNCTION {other}.cdc_opensess{arguments}")
    assert refused.value.native == -674
    assert client.rows(f"EXECUTE FUNCTION cdc_opensess{arguments}") == [("1",)]
    assert client.rows(f"EXECUTE FUNCTION {owner}.cdc_closesess(1)") == [("0",)]


@pytest.mark.parametrize(("pose", "owner", "other"), POSES)
def test_nobody_but_the_owner_is_known_unless_named(
    pose: str, owner: str, other: str, connect: Connect
) -> None:
    with pytest.raises(Refused) as refused:
        connect(EmulatedServer(poses_as=pose), user=other)
    assert refused.value.native == -951
