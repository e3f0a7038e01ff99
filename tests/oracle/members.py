"""Members of groups, for cases: what a consumer would send."""

import struct
from dataclasses import dataclass
from typing import Any

from tests.oracle.script import Answer, Line, Script

PROTOCOL = {"protocol_type": "consumer", "protocol_name": "range"}
SESSION_MS = REBALANCE_MS = 10_000


def subscription(*topics: str) -> str:
    """The metadata of a consumer that subscribes to `topics`, as hexadecimal text (ConsumerProtocolSubscription v0)."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return (struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)).hex()


def joining(group: str, member_id: str = "", **fields: Any) -> dict[str, Any]:
    """The fields of a JoinGroup request of a consumer with one protocol."""
    return {
        "group_id": group,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription("t")}],
        **fields,
    }


@dataclass
class Member:
    """One that has joined."""

    line: Line
    group: str
    member_id: str
    generation: int

    @property
    def named(self) -> dict[str, Any]:
        """The fields that name it in most requests."""
        return {"group_id": self.group, "generation_id": self.generation, "member_id": self.member_id}

    def sync(self, *assignments: tuple[str, str], **fields: Any) -> Answer:
        """SyncGroup; as the leader with (member id, bytes in hexadecimal)."""
        given = [{"member_id": member, "assignment": bytes_} for member, bytes_ in assignments]
        return self.line.call("SyncGroup", **{**self.named, **PROTOCOL, "assignments": given, **fields})

    def heartbeat(self, **fields: Any) -> Answer:
        """Heartbeat."""
        return self.line.call("Heartbeat", **{**self.named, **fields})

    def rejoin(self, **fields: Any) -> None:
        """Send JoinGroup again; `joined` takes the answer."""
        self.line.send("JoinGroup", **joining(self.group, self.member_id, **fields))

    def joined(self) -> Answer:
        """Receive the answer to JoinGroup."""
        answer = self.line.receive()
        self.generation = answer.get("generation_id", -1)
        return answer


def new_member(s: Script, group: str, **fields: Any) -> Member:
    """The first member of a group: it has joined, and is its leader. Not compared; not synced yet."""
    line = s.line()
    answer = line.call("JoinGroup", 4, **joining(group, **fields))
    answer = line.call("JoinGroup", 4, **joining(group, answer["member_id"], **fields))
    del s.transcript[-2:]
    return Member(line, group, answer["member_id"], answer["generation_id"])


def stable_member(s: Script, group: str, assignment: str = "01", **fields: Any) -> Member:
    """The only member of a group that is stable. Not compared."""
    member = new_member(s, group, **fields)
    member.sync((member.member_id, assignment))
    s.transcript.pop()
    return member


def static_member(s: Script, group: str, instance: str, *, synced: bool = True) -> Member:
    """The only member of a group, static. Not compared."""
    line = s.line()
    answer = line.call("JoinGroup", **joining(group, group_instance_id=instance))
    member = Member(line, group, answer["member_id"], answer["generation_id"])
    s.transcript.pop()
    if synced:
        member.sync((member.member_id, "01"), group_instance_id=instance)
        s.transcript.pop()
    return member
