"""A PAM conversation: the server's prompts after the login, and its verdict on the responses.

The caller checks the password; other responses are compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ..answers import Admitted
from ..sql_errors import sql_error


class PromptStyle(IntEnum):
    """What a client does with a PAM message."""

    HIDDEN = 1
    ECHO = 2
    ERROR = 3
    INFO = 4


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message of a PAM conversation; the answer to a hidden one without `wanted` is the password."""

    style: PromptStyle
    text: str
    wanted: str | None = None


class PamDialogue:
    """The prompts that are left, and what was answered."""

    def __init__(self, prompts: Sequence[Prompt], admit: Callable[[str | None], Admitted]) -> None:
        self._prompts = list(prompts)
        self._asked: Prompt | None = None
        self._admit = admit
        self._password: str | None = None
        self._is_wrong = False

    @property
    def is_waiting(self) -> bool:
        """Whether the client has been asked for something."""
        return self._asked is not None

    def next_prompts(self) -> list[Prompt]:
        """Return the next prompts for the client: messages, then a question, if one is left.

        IBM's JDBC driver sends no response to a mere message, and reads on.
        """
        prompts: list[Prompt] = []
        self._asked = None
        while self._prompts and self._asked is None and not self._is_wrong:
            prompts.append(self._prompts.pop(0))
            if prompts[-1].style in (PromptStyle.HIDDEN, PromptStyle.ECHO):
                self._asked = prompts[-1]
        return prompts

    def take(self, response: str) -> None:
        """Take the response to what was asked last."""
        asked = self._asked
        if asked is None:
            return
        if asked.wanted is None and asked.style is PromptStyle.HIDDEN:
            self._password = response
        elif response != asked.wanted:
            self._is_wrong = True

    def admit(self) -> Admitted:
        """Let the client in; SqlError -951 if a response was wrong."""
        if self._is_wrong:
            raise sql_error(-951, "")
        return self._admit(self._password)
