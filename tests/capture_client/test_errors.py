"""What an error carries survives the way out of the process that raised it."""

from __future__ import annotations

import pickle

import pytest

from informix_capture_client import errors
from informix_capture_client.errors import DriverAnswer, Gap, InformixCdcError

ANSWER = DriverAnswer("08S01", -908, (("08S01", -908, "Attempt to connect failed."),))
KINDS = [InformixCdcError, *InformixCdcError.__subclasses__()]
RAISED = [
    *(kind("it broke.", "Mend it.", is_temporary=True, answer=ANSWER, place=7) for kind in KINDS),
    errors.ServerRefused("it was ended.", one_more_session=True),
    errors.ConnectionLost("it is silent.", is_silence=True),
    errors.DataLoss("it is unreadable.", gap=Gap.LOG_UNREADABLE, goes_on_at=2 << 32),
    errors.DataLoss("it is gone.", gap=Gap.OTHER_SOURCE, expected="a", found="b"),
    errors.ProtocolViolation("it is odd.", record=3, stream_byte=40),
    errors.UnsupportedColumn("it is unknown.", columns=[("t", "c", "row(a int)")]),
]


@pytest.mark.parametrize(
    "error", RAISED, ids=lambda error: f"{type(error).__name__} {vars(error)}"[:60]
)
def test_an_error_is_the_same_after_pickling_with_all_that_a_program_decides_by(
    error: InformixCdcError,
) -> None:
    revived = pickle.loads(pickle.dumps(error))
    assert (type(revived), str(revived)) == (type(error), str(error))
    assert vars(revived) == vars(error)


def test_what_a_program_decides_by_is_not_among_the_facts() -> None:
    assert all(not set(vars(error)) & set(error.facts) for error in RAISED)


def test_codes_are_those_that_operators_know() -> None:
    assert {kind.__name__: kind.code for kind in KINDS[1:]} == {
        "ConnectionLost": "IFXCDC-0001",
        "AccessRefused": "IFXCDC-0002",
        "BadOption": "IFXCDC-0003",
        "UnsupportedColumn": "IFXCDC-0004",
        "ServerRefused": "IFXCDC-0005",
        "DataLoss": "IFXCDC-0006",
        "ProtocolViolation": "IFXCDC-0007",
        "TargetUnavailable": "IFXCDC-0008",
        "RestartRequired": "IFXCDC-0009",
    }
