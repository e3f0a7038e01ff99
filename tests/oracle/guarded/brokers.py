"""Apache Kafka with its StandardAuthorizer and pylog with the same ACLs and users: how both are run, and how a script changes who may what.

Each broker has two listeners: one where nobody says who it is (`User:ANONYMOUS`), and one where `alice`, `bob` and the super user `admin`
log in by SCRAM. ACLs and users are made by requests of `admin`, the same at both. A script is of one thread.
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pylog_spark.scram import Mechanism, salted_password
from pylog_spark.testing import LocalBroker
from pylog_spark.testing.login import Login
from pylog_spark.testing.process import free_ports
from tests.harness.kafka import KAFKA_SETTINGS, SHARED_SETTINGS
from tests.harness.security import AUTHORIZER
from tests.oracle.compare import Brokers
from tests.oracle.script import Answer, Entrance, Script

ALICE, BOB, ANONYMOUS, EVERYBODY = "User:alice", "User:bob", "User:ANONYMOUS", "User:*"
#: Those who act in the cases; what the ACLs of one say need not hold for the others.
PRINCIPALS = (ALICE, BOB, ANONYMOUS)
SUPER_USER = "User:admin"
CLUSTER = "kafka-cluster"
#: Kafka's numbers.
RESOURCES = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5}
PATTERNS = {"LITERAL": 3, "PREFIXED": 4}
OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9, "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12, "TWO_PHASE_COMMIT": 15,
}  # fmt: skip
PERMISSIONS = {"DENY": 2, "ALLOW": 3}
_ANY = 1
EVERY_ACL: dict[str, Any] = {
    "resource_type_filter": _ANY, "pattern_type_filter": _ANY, "operation": _ANY, "permission_type": _ANY,
}  # fmt: skip
_MECHANISM, _ITERATIONS, _SALT = Mechanism.SCRAM_SHA_256, 4096, b"salt"
_PASSWORD = "swordfish"  # of brokers of these tests alone
#: Records of cases are old: they stay, where they were written.
_OLD_RECORDS = {"log.retention.ms": "-1", "log.roll.ms": str(20 * 365 * 86_400_000)}
_LOGIN_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Acl:
    """An ACL by Kafka's words."""

    permission: str
    operation: str
    kind: str
    name: str
    principal: str
    pattern: str = "LITERAL"
    host: str = "*"

    def creation(self) -> dict[str, Any]:
        """What CreateAcls makes it of."""
        return {
            "resource_type": RESOURCES[self.kind],
            "resource_name": self.name,
            "resource_pattern_type": PATTERNS[self.pattern],
            "principal": self.principal,
            "host": self.host,
            "operation": OPERATIONS[self.operation],
            "permission_type": PERMISSIONS[self.permission],
        }


def entrance(servers: str, principal: str) -> Entrance:
    """How a principal comes in, at the listener where it has to log in."""
    name = principal.removeprefix("User:")
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": _MECHANISM.text,
        "sasl.username": name,
        "sasl.password": _PASSWORD,
    }
    return Entrance(servers, settings, name)


@dataclass(frozen=True)
class Guarded:
    """Both brokers; `logins` has the addresses where principals log in, of Apache Kafka and of pylog."""

    brokers: Brokers
    logins: tuple[str, str]

    def act(self, s: Script, principal: str) -> None:
        """Go on in a script as this principal."""
        if principal == ANONYMOUS:
            s.enter(Entrance(self.brokers.both[not s.is_kafka], {}, "ANONYMOUS"))
        else:
            s.enter(entrance(self.logins[not s.is_kafka], principal))

    def apply(self, s: Script, *acls: Acl) -> None:
        """Exchange all ACLs, as the super user, who the script goes on as; they hold when this returns."""
        self.act(s, SUPER_USER)
        s.quietly("DeleteAcls", 3, filters=[EVERY_ACL])
        if acls:
            s.quietly("CreateAcls", 3, creations=[acl.creation() for acl in acls])
        wanted = {tuple(sorted(acl.creation().items())) for acl in acls}
        s.until(lambda answer: set(_described(answer)) == wanted, "DescribeAcls", 3, **EVERY_ACL)
        s.transcript.pop()


def _described(answer: dict[str, Any]) -> Iterator[tuple[tuple[str, Any], ...]]:
    for resource in answer["resources"]:
        of_it = {name: resource[name] for name in ("resource_type", "resource_name")}
        of_it["resource_pattern_type"] = resource["pattern_type"]
        for acl in resource["acls"]:
            yield tuple(sorted({**of_it, **acl}.items()))


def _kafka_settings(port: int, login: int, controller: int) -> dict[str, str]:
    password = f'username="admin" password="{_PASSWORD}"'
    plain = f'{_LOGIN_MODULES}.plain.PlainLoginModule required {password} user_admin="{_PASSWORD}";'
    return {
        **KAFKA_SETTINGS,
        **_OLD_RECORDS,
        "authorizer.class.name": AUTHORIZER,
        "super.users": SUPER_USER,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},LOGIN://127.0.0.1:{login},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},LOGIN://127.0.0.1:{login}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "inter.broker.listener.name": "LOGIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.sasl.enabled.mechanisms": f"PLAIN,{_MECHANISM.text}",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": plain,
        "listener.name.login.scram-sha-256.sasl.jaas.config": f"{_LOGIN_MODULES}.scram.ScramLoginModule required;",
        "listener.name.controller.plain.sasl.jaas.config": plain,
    }


@contextmanager
def running(folder: Path) -> Iterator[Guarded]:
    """Both, with `alice` and `bob`, ready to coordinate groups and transactions."""
    from tests.peers.kafka import KafkaBroker

    port, login, controller = free_ports(3)
    kafka = KafkaBroker(
        folder / "kafka",
        _kafka_settings(port, login, controller),
        heap="512m",
        port=port,
        quick=True,
        format_options=("--add-scram", f"{_MECHANISM.text}=[name=admin,password={_PASSWORD}]"),
    )
    ours = {name.replace(".", "_"): value for name, value in {**SHARED_SETTINGS, **_OLD_RECORDS}.items()}
    pylog = LocalBroker(
        folder / "pylog",
        listeners={"PLAINTEXT": "PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"},
        sasl=_first_user(folder / "login"),
        authorizer_class_name=AUTHORIZER,
        **ours,
    )
    with kafka, pylog:
        both = Guarded(
            Brokers(kafka.bootstrap_servers, pylog.bootstrap_servers),
            (f"127.0.0.1:{login}", pylog.address_of("LOGIN")),
        )
        scripts = [Script(servers, "first", not number) for number, servers in enumerate(both.brokers.both)]
        for script in scripts:
            _let_everybody_in(both, script)
        both.brokers.warmed_up()
        for script in scripts:
            _keep_share_groups(script)
            script.close()
        yield both


def _first_user(folder: Path) -> Login:
    folder.mkdir()
    login = Login(_MECHANISM.text, "admin", _PASSWORD, folder / "login.properties")
    login.file.write_text(f"sasl.jaas.config={login.jaas}\n")
    return login


def _let_everybody_in(both: Guarded, s: Script) -> None:
    both.apply(s, *(Acl("ALLOW", "ALL", kind, any_of(kind), ANONYMOUS) for kind in RESOURCES))
    salted = salted_password(_MECHANISM, _PASSWORD, _SALT, _ITERATIONS).hex()
    credential = {
        "mechanism": _MECHANISM.number, "iterations": _ITERATIONS, "salt": _SALT.hex(), "salted_password": salted,
    }  # fmt: skip
    names = [principal.removeprefix("User:") for principal in (ALICE, BOB)]
    s.quietly("AlterUserScramCredentials", 0, upsertions=[{"name": name, **credential} for name in names])
    s.until(
        lambda answer: all(not result["error_code"] for result in answer["results"]),
        "DescribeUserScramCredentials",
        0,
        users=[{"name": name} for name in names],
    )


def _keep_share_groups(s: Script) -> None:
    """Wait until states of share groups are kept: pylog makes their topic for the first member, Apache Kafka for who asks where they are."""
    group, topic_id = s.new("group"), s.topic_id(s.topic())
    member = {"group_id": group, "member_id": "AAAAAAAAAAAAAAAAAAAAAQ"}
    s.until(_is_kept, "ShareGroupHeartbeat", 1, **member, member_epoch=0, subscribed_topic_names=["none"])
    s.until_good("FindCoordinator", 6, key_type=2, coordinator_keys=[f"{group}:{'A' * 22}:0"])
    partitions = [{"partition": 0, "state_epoch": 1, "start_offset": 0}]
    topics = [{"topic_id": topic_id, "partitions": partitions}]
    s.until_good("InitializeShareGroupState", 0, group_id=group, topics=topics)
    s.quietly("ShareGroupHeartbeat", 1, **member, member_epoch=-1)


def _is_kept(answer: Answer) -> bool:
    return answer["error_code"] not in (14, 15, 16)


def any_of(kind: str) -> str:
    """The name that stands for all resources of a kind."""
    return CLUSTER if kind == "CLUSTER" else "*"


def everything(principal: str, **more: str) -> tuple[Acl, ...]:
    """All rights on everything."""
    return tuple(Acl("ALLOW", "ALL", kind, any_of(kind), principal, **more) for kind in RESOURCES)


def rights(principal: str, kind: str, *operations: str, name: str = "MINE", **more: str) -> tuple[Acl, ...]:
    """These rights on what is called `name`; MINE stands for what the case's script made."""
    return tuple(Acl("ALLOW", operation, kind, name, principal, **more) for operation in operations)


def denied(principal: str, kind: str, *operations: str, name: str = "MINE", **more: str) -> tuple[Acl, ...]:
    """As `rights`, denied."""
    return tuple(Acl("DENY", operation, kind, name, principal, **more) for operation in operations)


def at_once(*acls: tuple[Acl, ...]) -> tuple[Acl, ...]:
    """Several of them."""
    return tuple(itertools.chain(*acls))
