"""Options that run code in the driver are refused where its environment forbids them."""

from __future__ import annotations

import pytest

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions

LIBRARY = "/tmp/any.so"


def parse(switch: str | None, **changes: str) -> SourceOptions:
    environment = {} if switch is None else {"INFORMIX_CDC_ALLOW_DRIVER_OPTION": switch}
    return SourceOptions.parse(source_options(9088, transport="odbc", **changes), environment)


@pytest.mark.parametrize("switch", [None, "", "yes", " TRUE ", "on", "1"])
def test_a_driver_is_taken_unless_it_is_switched_off(switch: str | None) -> None:
    assert parse(switch, driver=LIBRARY).connection.driver == LIBRARY


@pytest.mark.parametrize("switch", ["no", "No", "false", "0", "off", "nonsense"])
def test_a_driver_is_refused_where_it_is_switched_off_with_what_is_loaded_instead(switch: str) -> None:
    with pytest.raises(BadOption, match=r"option 'driver' .*ALLOW_DRIVER_OPTION=") as refused:
        parse(switch, driver=LIBRARY)
    assert "INFORMIXDIR" in refused.value.remedy
    assert LIBRARY not in str(refused.value)


def test_whoever_names_no_driver_is_not_disturbed_by_the_switch() -> None:
    assert parse("no").connection.driver == ""


def test_one_switch_does_not_stand_for_the_other() -> None:
    with pytest.raises(BadOption, match="ALLOW_PASSWORD_COMMAND=no"):
        SourceOptions.parse(
            source_options(9088, password="", passwordCommand="true", driver=LIBRARY),
            {"INFORMIX_CDC_ALLOW_PASSWORD_COMMAND": "no"},
        )


@pytest.mark.parametrize("keyword", ["DRIVER", "TranslationDLL", "TDLL"])
def test_a_library_in_the_connection_string_is_one_too(keyword: str) -> None:
    text = f"OPTOFC=1;{keyword}={{{LIBRARY}}}"
    assert parse("yes", connectionString=text).connection.connection_string == text
    with pytest.raises(
        BadOption, match=f"{keyword} in option 'connectionString' is not allowed"
    ) as told:
        parse("no", connectionString=text)
    assert LIBRARY not in str(told.value)
