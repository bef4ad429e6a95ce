"""Option connectionString: what the driver gets, and what is refused since an option says it."""

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
    return parse(text).connection.settings("stores").extra


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
        with pytest.raises(BadOption, match="contains a secret") as caught:
            parse(f"FET_BUF_SIZE=32767;{keyword}={value}")
        assert keyword in str(caught.value)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("value", ["{PWD=%s;a}", "{a;TPWD = {b}};%s}", "PWD=%s", "{a=1;pin=%s}"])
def test_a_secret_within_another_keyword_s_value_is_refused(value: str) -> None:
    with pytest.raises(BadOption, match="contains a secret") as caught:
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


@pytest.mark.parametrize(
    "text",
    ["hello", f"FOO={{{SECRET};BAR=1", f"FOO={{a}}{SECRET};BAR=1", f"={SECRET}", f"A=1;{SECRET};B=2"],
)
def test_what_is_no_connection_string_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(BadOption, match="option 'connectionString'") as caught:
        parse(text)
    assert SECRET not in str(caught.value)


OF_OPTIONS = {
    "HOST": "host",
    "Service": "port",
    "SERVER": "server",
    "database": "database",
    "UID": "user",
    "User": "user",
    "LogonID": "user",
    "DB_LOCALE": "dbLocale",
    "SERV": "port",
    "SRVR": "server",
    "DB": "database",
    "DLOC": "dbLocale",
}


@pytest.mark.parametrize("keyword", OF_OPTIONS)
def test_a_keyword_that_an_option_stands_for_is_refused_with_that_option(keyword: str) -> None:
    for value in ("hunter2", "{hunter2}", ""):
        with pytest.raises(BadOption, match=f"contains {keyword}; it accepts only") as caught:
            parse(f"FOO=1;{keyword}={value}")
        assert caught.value.remedy == f"Set option {OF_OPTIONS[keyword]} instead."
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("keyword", ["CLIENT_LOCALE", "Cloc"])
def test_the_locale_of_the_connection_is_one_of_them(keyword: str) -> None:
    settings = parse(f"FOO=1;{keyword}=en_us.8859-1").connection.settings("stores")
    assert (settings.client_locale, settings.extra) == ("en_us.8859-1", "FOO=1")
    assert parse("FOO=1").connection.settings("stores").client_locale == "en_us.utf8"
    with pytest.raises(BadOption, match=f"'connectionString': {keyword} must be") as refused:
        parse(f"{keyword}=hunter2")
    assert "hunter2" not in str(refused.value)


def test_all_such_keywords_are_named_at_once() -> None:
    with pytest.raises(BadOption, match="contains HOST, SERVICE and UID;") as caught:
        parse("HOST=h;FOO=1;SERVICE=9088;UID=joe")
    assert caught.value.remedy == "Set options host, port and user instead."


def test_a_secret_is_refused_first() -> None:
    with pytest.raises(BadOption, match="contains a secret") as caught:
        parse(f"HOST=h;PWD={SECRET}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["PROTOCOL=onsocssl", "Protocol={OnSocTcp}"])
def test_a_protocol_is_the_option_encryption_by_another_name(text: str) -> None:
    with pytest.raises(BadOption, match=r"contains (?i:protocol);") as caught:
        parse(text)
    assert caught.value.remedy == "Set option encryption instead."


def test_a_protocol_that_no_option_stands_for_is_the_driver_s_and_never_called_encrypted() -> None:
    assert extra_of("PROTOCOL=sesoctcp") == "PROTOCOL=sesoctcp"
    for text in ("PROTOCOL=sesoctcp", "Protocol={olsoctcp}"):
        for encryption in ("tls", "TLS", " Tls "):
            with pytest.raises(BadOption, match="other than onsocssl, which encryption=tls requires"):
                parse(text, encryption=encryption)


@given(st.text(max_size=40), st.text(alphabet=";{}= \t=AB\n", max_size=60))
def test_whatever_is_given_is_read_or_refused(any_text: str, almost: str) -> None:
    for text in (any_text, almost):
        try:
            options = parse(text)
        except BadOption:
            continue
        again = parse(extra_of(text))
        assert extra_of(text) == again.connection.settings("stores").extra
        assert options.connection.host == "127.0.0.1"
