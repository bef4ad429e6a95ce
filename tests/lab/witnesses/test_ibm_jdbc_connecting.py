"""IBM's JDBC driver is let in, turned away, asked, sent on, encrypted and interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from informix_cdc.commands.emulator import jdbc_url
from informix_emulator import ListeningServer
from informix_emulator.listening import ServerSocket
from informix_emulator.shop import demo_server
from informix_emulator.sqli import Greeting, Prompt
from informix_emulator.sqli.pam import PromptStyle
from lab.witnesses.jdbc import VERSIONS, Conversation, Refused, conversing, pam_class, url
from lab.witnesses.receptions import STORE_PASSWORD, WAITS, encryption, received_with, waiting_listener
from lab.witnesses.served import DATABASE, PASSWORD, USER, witnessed_server

pytestmark = pytest.mark.witness

TOKEN = "314159"
QUESTION = "select dbservername from systables where tabid = 1"


@pytest.fixture(scope="module", params=VERSIONS)
def jdbc(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Conversation]:
    folder: Path = tmp_path_factory.mktemp("jdbc")
    with conversing(request.param, folder, f"-Dwitness.pam={TOKEN}") as talk:
        yield talk


@pytest.fixture
def plain() -> Iterator[ListeningServer]:
    with ListeningServer(witnessed_server()) as listening:
        yield listening


def is_working(jdbc: Conversation) -> bool:
    return [name.strip() for (name,) in jdbc.rows(QUESTION)] == ["informix"]


def refusal(jdbc: Conversation, where: str, user: str = USER, password: str = PASSWORD) -> list[int]:
    with pytest.raises(Refused) as refused:
        jdbc.ask("connect", where, user, password)
    return refused.value.codes


class TestRefused:
    def test_a_wrong_password(self, jdbc: Conversation, plain: ServerSocket) -> None:
        assert refusal(jdbc, url(plain.port, DATABASE), password="wrong")[0] == -951

    def test_a_user_that_is_not_there(self, jdbc: Conversation, plain: ServerSocket) -> None:
        assert refusal(jdbc, url(plain.port, DATABASE), user="nobody")[0] == -951

    def test_a_database_that_is_not_there(self, jdbc: Conversation, plain: ServerSocket) -> None:
        assert refusal(jdbc, url(plain.port, "nowhere"))[:2] == [-329, -111]

    def test_a_locale_that_is_not_the_database_s(self, jdbc: Conversation, plain: ServerSocket) -> None:
        where = url(plain.port, DATABASE).replace("DB_LOCALE=en_US.utf8", "DB_LOCALE=en_US.819")
        assert refusal(jdbc, where)[0] == -23197

    def test_after_a_refusal_the_next_connection_works(
        self, jdbc: Conversation, plain: ServerSocket
    ) -> None:
        refusal(jdbc, url(plain.port, DATABASE), password="wrong")
        jdbc.ask("connect", url(plain.port, DATABASE), USER, PASSWORD)
        assert is_working(jdbc)


class TestReceived:
    def test_by_the_url_that_the_command_prints(self, jdbc: Conversation) -> None:
        with ListeningServer(demo_server()) as listening:
            jdbc.ask("connect", jdbc_url(listening), USER, PASSWORD)
            assert is_working(jdbc)
            assert jdbc.rows('select count(*) from "informix".orders') == [["0"]]
            jdbc.ask("close")

    def test_over_tls(self, jdbc: Conversation, tmp_path: Path) -> None:
        context, store = encryption(tmp_path)
        trust = (f"SSL_TRUSTSTORE={store}", f"SSL_TRUSTSTORE_PASSWORD={STORE_PASSWORD}")
        with ListeningServer(witnessed_server(), tls=context) as listening:
            where = url(listening.port, DATABASE, "SSLCONNECTION=true", *trust)
            jdbc.ask("connect", where, USER, PASSWORD)
            assert is_working(jdbc)
            jdbc.ask("close")

    def test_with_a_question_of_pam(self, jdbc: Conversation) -> None:
        prompts = (Prompt(PromptStyle.HIDDEN, "Token: ", TOKEN),)
        assert_asked(jdbc, prompts)

    def test_with_two_questions_and_a_message_of_pam(self, jdbc: Conversation) -> None:
        prompts = (
            Prompt(PromptStyle.INFO, "Good morning."),
            Prompt(PromptStyle.ECHO, "Token: ", TOKEN),
            Prompt(PromptStyle.HIDDEN, "Again: ", TOKEN),
        )
        assert_asked(jdbc, prompts)

    def test_a_wrong_answer_to_pam_is_refused(self, jdbc: Conversation) -> None:
        greeting = Greeting(prompts=(Prompt(PromptStyle.HIDDEN, "Token: ", "another"),))
        with received_with(witnessed_server(), greeting) as listening:
            where = url(listening.port, DATABASE, f"IFX_PAM_CLASS={pam_class(jdbc.version)}")
            assert refusal(jdbc, where)

    def test_and_sent_on_to_another_server(self, jdbc: Conversation, plain: ServerSocket) -> None:
        greeting = Greeting(redirect_to=f"informix=127.0.0.1|{plain.port}")
        with received_with(witnessed_server(), greeting) as listening:
            jdbc.ask("connect", url(listening.port, DATABASE), USER, PASSWORD)
            assert is_working(jdbc)
            jdbc.ask("close")


def assert_asked(jdbc: Conversation, prompts: tuple[Prompt, ...]) -> None:
    server = witnessed_server()
    with received_with(server, Greeting(server.name, server.version, prompts=prompts)) as listening:
        where = url(listening.port, DATABASE, f"IFX_PAM_CLASS={pam_class(jdbc.version)}")
        jdbc.ask("connect", where, USER, PASSWORD)
        assert is_working(jdbc)
        jdbc.ask("close")


class TestInterrupted:
    @pytest.fixture
    def waiting(self, jdbc: Conversation) -> Iterator[ServerSocket]:
        with waiting_listener(witnessed_server()) as listening:
            jdbc.ask("connect", url(listening.port, DATABASE), USER, PASSWORD)
            yield listening

    def test_a_cancelled_statement_ends_with_its_code(
        self, jdbc: Conversation, waiting: ServerSocket
    ) -> None:
        with pytest.raises(Refused) as refused:
            jdbc.ask("cancelled", 300, WAITS)
        assert refused.value.codes[0] == -213
        assert is_working(jdbc)

    def test_a_statement_out_of_time_ends_with_its_code(
        self, jdbc: Conversation, waiting: ServerSocket
    ) -> None:
        with pytest.raises(Refused) as refused:
            jdbc.ask("timed", 1, WAITS)
        assert refused.value.codes[0] == -80505
        assert is_working(jdbc)

    def test_a_broken_connection_is_an_error_and_a_new_one_works(
        self, jdbc: Conversation, waiting: ServerSocket
    ) -> None:
        waiting.disconnect_all()
        with pytest.raises(Refused) as refused:
            jdbc.rows(QUESTION)
        assert refused.value.codes[0] in (-79716, -80507), refused.value
        jdbc.ask("connect", url(waiting.port, DATABASE), USER, PASSWORD)
        assert is_working(jdbc)


def test_what_a_server_poses_as_is_what_the_driver_reports(
    jdbc: Conversation, plain: ServerSocket
) -> None:
    told = jdbc.ask("connect", url(plain.port, DATABASE), USER, PASSWORD)
    assert told["version"].startswith("14.10"), told
    assert told["transactions"] is True
