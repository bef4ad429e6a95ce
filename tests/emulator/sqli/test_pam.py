"""PAM: messages and questions between login and first statement."""

from __future__ import annotations

from emulator.sqli.spoken import EOT, OFFER_JDBC_4, char, hexed, packed
from emulator.sqli.told import Told
from informix_emulator.sqli.conversation import Conversation
from informix_emulator.sqli.login import Greeting
from informix_emulator.sqli.pam import Prompt, PromptStyle
from informix_emulator.sqli.reading import take_from
from informix_emulator.sqli.requests import read_request

PASSWORD = Prompt(PromptStyle.HIDDEN, "Password: ")
CODE = Prompt(PromptStyle.ECHO, "Code: ", "1234")
ASKED_PASSWORD = "0081 0001 000a 50617373776f72643a20 000c"
ASKED_CODE = "0081 0002 0006 436f64653a20 000c"
ACCEPTED = "007f 000c"
REJECTED = hexed("000d f8ef")  # -1809


def conversation(*prompts: Prompt) -> Conversation:
    def admit(password: str | None) -> Told:
        return Told({"PWD": "right" if password == "in4mix" else "wrong"})

    made = Conversation(Greeting(prompts=prompts), admit, lambda: None)
    agreed = say(made, "007e", char(bytes.fromhex(OFFER_JDBC_4).decode("latin-1")))
    assert agreed == hexed("007e 0009 bdbe9ffe7fbfffeff8 00 000c")
    return made


def say(one: Conversation, *parts: str | bytes) -> str:
    return one.respond(read_request(take_from(packed(*parts, EOT)), one.dialect)).hex()


def test_the_right_password_lets_a_client_in() -> None:
    one = conversation(PASSWORD)
    assert say(one, "0080") == hexed(ASKED_PASSWORD)
    assert say(one, "0082", char("in4mix")) == hexed(ACCEPTED)
    assert say(one, "0024", char("stores"), "0000").startswith("000f0015")


def test_a_wrong_password_ends_the_connection() -> None:
    one = conversation(PASSWORD)
    say(one, "0080")
    assert say(one, "0082", char("in4nix")) == "0038"
    assert one.is_over


def test_before_pam_is_done_nothing_else_is_answered() -> None:
    one = conversation(PASSWORD)
    assert say(one, "0024", char("stores"), "0000").startswith(REJECTED)
    say(one, "0080")
    assert say(one, "0061 0000 0007 00001000 7d00").startswith(REJECTED)


def test_a_message_that_is_no_question_waits_for_no_response() -> None:
    one = conversation(
        Prompt(PromptStyle.INFO, "hello"), PASSWORD, Prompt(PromptStyle.ERROR, "old"), CODE
    )
    assert say(one, "0080") == hexed("0081 0004 0005 68656c6c6f00 000c" + ASKED_PASSWORD)
    assert say(one, "0082", char("in4mix")) == hexed("0081 0003 0003 6f6c6400 000c" + ASKED_CODE)
    assert say(one, "0082", char("1234")) == hexed(ACCEPTED)


def test_any_wrong_response_ends_the_connection_whatever_the_password() -> None:
    one = conversation(CODE, PASSWORD)
    say(one, "0080")
    assert say(one, "0082", char("4321")) == "0038"


def test_a_response_that_was_not_asked_for_is_none() -> None:
    one = conversation(PASSWORD)
    assert say(one, "0082", char("in4mix")) == hexed(ASKED_PASSWORD)
    assert say(one, "0082", char("in4mix")) == hexed(ACCEPTED)


def test_a_server_that_only_talks_asks_for_no_password_and_takes_none() -> None:
    assert say(conversation(Prompt(PromptStyle.INFO, "hello")), "0080").endswith("0038")
