"""What can go wrong between a program and the agent of its host."""

from __future__ import annotations


class AgentError(Exception):
    """Any trouble with the agent."""


class AgentUnavailableError(AgentError):
    """No agent serves the socket, or it may not be used; the text says what to do."""


class AgentGoneError(AgentError):
    """The agent ended the connection."""


class AgentProtocolError(AgentError):
    """The agent sent what API.md does not allow."""


class AgentTimeoutError(AgentError):
    """The agent did not answer, or nothing came, in the time given."""


class AgentInterruptedError(AgentError):
    """The program is to end, and did not wait for the agent any longer."""


class RefusedError(AgentError):
    """The agent refuses a request; ``code`` is for programs, the text for people."""

    def __init__(self, code: str, message: str, choices: list[object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.choices = choices or []


class HandleClosedError(AgentError):
    """The agent closed a sender or receiver, e.g. because its group was removed."""
