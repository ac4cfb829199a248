"""Groups, how far a stream is, and what became of a message at each member."""

from __future__ import annotations

from dataclasses import dataclass, field

from wormcast.client.connection import Json


@dataclass(frozen=True)
class Progress:
    """How far this host's stream in a group has come; totals since the agent started."""

    accepted_bytes: int = 0
    sent_bytes: int = 0
    stable_bytes: int = 0
    retransmissions: int = 0

    @classmethod
    def parse(cls, value: Json) -> Progress:
        """Of an answer or event."""
        return cls(*(int(value.get(name, 0)) for name in cls.__dataclass_fields__))

    def since(self, base: Progress) -> Progress:
        """What has come since ``base``."""
        return Progress(
            self.accepted_bytes - base.accepted_bytes,
            self.sent_bytes - base.sent_bytes,
            self.stable_bytes - base.stable_bytes,
            self.retransmissions - base.retransmissions,
        )


@dataclass(frozen=True)
class MemberOutcome:
    """What became of a message at one member."""

    host: int
    delivered: bool
    reason: str | None = None
    left_out: bool = False
    """It took no part in the group when the message began."""


@dataclass(frozen=True)
class StableMessage:
    """What became of a message at every member but its origin."""

    message: int
    outcomes: list[MemberOutcome]

    @property
    def failed(self) -> list[MemberOutcome]:
        """Members that do not have it."""
        return [outcome for outcome in self.outcomes if not outcome.delivered]

    @property
    def left_out(self) -> list[MemberOutcome]:
        """Of these, members that took no part in the group when the message began: they were away, for instance."""
        return [outcome for outcome in self.failed if outcome.left_out]


@dataclass(frozen=True)
class MemberState:
    """What is known of a message at one member: "delivered"; "failed", with the reason;
    "pending", for the message is not ended; "unconfirmed", for it may have it or not."""

    host: int
    state: str
    reason: str | None = None
    left_out: bool = False
    """It took no part in the group when the message began."""


@dataclass(frozen=True)
class MessageState:
    """What is known at a moment of a message."""

    ended: bool
    """The agent has all of it; it goes on its way whatever becomes of the sender."""
    members: list[MemberState]


@dataclass(frozen=True)
class LeftOut:
    """A member of a group that takes no part now."""

    host: int
    reason: str


@dataclass(frozen=True)
class Group:
    """A group this host is a member of."""

    number: int
    name: str
    scheme: str
    members: list[int]
    """Those that take part."""
    left_out: list[LeftOut] = field(default_factory=list)
    """The other members; they do not get messages that begin now."""
    sink: bool = False
    """Agents take and drop what comes where nobody receives."""

    @classmethod
    def parse(cls, value: Json) -> Group:
        left_out = [LeftOut(int(one["host"]), str(one["reason"])) for one in value.get("left_out", ())]
        number, name, scheme = int(value["group"]), str(value["name"]), str(value["scheme"])
        return cls(number, name, scheme, list(value["members"]), left_out, bool(value.get("sink", False)))

    @property
    def label(self) -> str:
        """Number and name, for people."""
        return f"{self.number} ({self.name})" if self.name else str(self.number)


def read_message_state(answer: Json) -> MessageState:
    members = [
        MemberState(
            int(each["host"]), str(each["state"]), each.get("reason"), bool(each.get("left_out", False))
        )
        for each in answer["outcomes"]
    ]
    return MessageState(bool(answer["ended"]), members)


def read_outcomes(answer: Json) -> list[MemberOutcome]:
    return [
        MemberOutcome(
            int(each["host"]), bool(each["delivered"]), each.get("reason"), bool(each.get("left_out", False))
        )
        for each in answer["outcomes"]
    ]
