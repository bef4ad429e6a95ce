"""Option connectionString: what stands in for options, what the driver gets, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions

SECRET = "hunter2-77aa"


def parse(text: str, **changes: str) -> SourceOptions:
    given = source_options(9088, transport="odbc", connectionString=text)
    return SourceOptions.parse({**given, **changes}, {})


def extra_of(text: str) -> str:
    return parse(text).connection("stores").extra


@pytest.mark.parametrize(
    "keyword",
    [
        *(
            "PWD",
            "Password",
            "passwd",
            "TPWD",
            "SSL_KEYSTORE_PASSWORD",
            "APIKEY",
            "API_KEY",
            "AccessToken",
        ),
        *("ClientSecret", "PASSPHRASE", "Private Key", "NEWPWD"),
        *("PASS", "DbPass", "PW", "AUTH", "SAS", "sas_key", "PIN", "JWT", "sig", "X_Signature"),
    ],
)
def test_a_keyword_that_holds_a_secret_is_refused_and_its_value_is_not_shown(keyword: str) -> None:
    for value in (SECRET, f"{{{SECRET}}}"):
        with pytest.raises(BadOption, match="holds a secret") as caught:
            parse(f"FET_BUF_SIZE=32767;{keyword}={value}")
        assert keyword in str(caught.value)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("value", ["{PWD=%s;a}", "{a;TPWD = {b}};%s}", "PWD=%s", "{a=1;pin=%s}"])
def test_a_secret_within_another_keyword_s_value_is_refused(value: str) -> None:
    with pytest.raises(BadOption, match="holds a secret") as caught:
        parse(f"X={value % SECRET}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "keyword",
    [
        *("SSL_KEYSTORE_FILE", "SSL_KEYSTORE_STH", "ISOLATIONLEVEL", "CSM"),
        *("AUTHENTICATION", "PASSTHROUGH", "PINGTIME", "SASL", "DESIGN"),
    ],
)
def test_a_keyword_that_holds_none_goes_to_the_driver(keyword: str) -> None:
    assert extra_of(f"{keyword}=x") == f"{keyword}=x"


def test_braces_are_read_as_odbc_has_them_and_handed_on_as_they_were_written() -> None:
    assert extra_of("FOO={a;b};BAR= {c}}d} ;; BAZ=e}f") == "FOO={a;b};BAR={c}}d};BAZ=e}f"
    assert extra_of("HOST={127.0.0.1};FOO=1") == "FOO=1"


@pytest.mark.parametrize(
    "text",
    ["hello", f"FOO={{{SECRET};BAR=1", f"FOO={{a}}{SECRET};BAR=1", f"={SECRET}", f"A=1;{SECRET};B=2"],
)
def test_what_is_no_connection_string_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(BadOption, match="option 'connectionString'") as caught:
        parse(text)
    assert SECRET not in str(caught.value)


def test_a_protocol_is_the_option_encryption_by_another_name() -> None:
    assert parse("PROTOCOL=onsocssl").encryption == "tls"
    assert parse("PROTOCOL=onsoctcp").encryption == "none"
    assert parse("PROTOCOL=onsocssl", encryption="tls").encryption == "tls"
    for protocol, encryption in (("onsocssl", "none"), ("onsoctcp", "tls")):
        with pytest.raises(BadOption, match="another PROTOCOL than option 'encryption'"):
            parse(f"PROTOCOL={protocol}", encryption=encryption)


def test_a_protocol_that_no_option_stands_for_is_the_driver_s_and_never_called_encrypted() -> None:
    assert extra_of("PROTOCOL=sesoctcp") == "PROTOCOL=sesoctcp"
    for text in ("PROTOCOL=sesoctcp", "Protocol={olsoctcp}"):
        for encryption in ("tls", "TLS", " Tls "):
            with pytest.raises(BadOption, match="other than onsocssl, which encryption=tls means"):
                parse(text, encryption=encryption)
    for text in ("PROTOCOL=drsoctcp;PROTOCOL=onsocssl", "PROTOCOL=onsocssl;PROTOCOL=drsoctcp"):
        with pytest.raises(BadOption, match="other than onsocssl"):
            parse(text)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("PROTOCOL=OnSocSSL", {"encryption": "TLS"}),
        ("SERVICE=9088", {"port": "09088"}),
        ("HOST=DB.example", {"host": "db.example "}),
        ("CLIENT_LOCALE=en_us.utf8", {"clientLocale": "EN_US.UTF8"}),
        ("SERVER=ids1", {"server": ""}),
    ],
)
def test_two_ways_to_write_the_same_are_no_contradiction(text: str, given: dict[str, str]) -> None:
    assert parse(text, **given).connection("stores").extra == ""


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("SERVICE=9089", {"port": "9088"}),
        ("UID=Ann", {"user": "ann"}),
        ("HOST=db2", {"host": "db1"}),
        ("SERVICE=9088;SERVICE=9089", {"port": ""}),
    ],
)
def test_what_is_not_the_same_is_refused(text: str, given: dict[str, str]) -> None:
    with pytest.raises(BadOption, match=r"has another \w+ than option"):
        parse(text, **given)


@given(st.text(max_size=40), st.text(alphabet=";{}= \t=AB\n", max_size=60))
def test_whatever_is_given_is_read_or_refused(any_text: str, almost: str) -> None:
    for text in (any_text, almost):
        try:
            options = parse(text)
        except BadOption:
            continue
        again = parse(extra_of(text))
        assert extra_of(text) == again.connection("stores").extra
        assert options.host == "127.0.0.1"
