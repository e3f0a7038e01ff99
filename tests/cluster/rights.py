"""Users, ACLs and quotas: what one broker knows of them, asked of that broker alone, as values to compare."""

from dataclasses import dataclass, field

from pylog_spark._native import RawConnection
from pylog_spark.client import AclBinding
from tests.cluster.sharing import ask

#: For a filter of ACLs: all of them.
EVERY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
_KINDS = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5}
_OPERATIONS = {"READ": 3, "WRITE": 4, "ALTER": 7, "DESCRIBE": 8, "ALTER_CONFIGS": 11}
_LITERAL, _ALLOW = 3, 3

#: (kind, name, pattern, principal, host, operation, permission), as requests have them.
Acl = tuple[int, str, int, str, str, int, int]


@dataclass
class Rights:
    """Users, ACLs, and the quotas of users by their names."""

    users: set[str] = field(default_factory=set)
    acls: set[Acl] = field(default_factory=set)
    quotas: dict[str, dict[str, float]] = field(default_factory=dict)


def as_sent(acl: AclBinding) -> Acl:
    """An ACL that allows something on a resource of one name, as requests have it."""
    kind, operation = _KINDS[acl.resource_type], _OPERATIONS[acl.operation]
    return (kind, acl.resource_name, _LITERAL, acl.principal, acl.host, operation, _ALLOW)


def known(connection: RawConnection) -> Rights:
    """What the broker at the other end knows; who asks must be allowed to know it."""
    users = ask(connection, "DescribeUserScramCredentials", 0, users=None)["results"]
    acls = ask(connection, "DescribeAcls", 3, **EVERY_ACL)["resources"]
    quotas = ask(connection, "DescribeClientQuotas", 1, components=[], strict=False)["entries"]
    found = Rights(users={user["user"] for user in users})
    for resource in acls:
        name = (resource["resource_type"], resource["resource_name"], resource["pattern_type"])
        for acl in resource["acls"]:
            found.acls.add((*name, acl["principal"], acl["host"], acl["operation"], acl["permission_type"]))
    for entry in quotas:
        user = entry["entity"][0]["entity_name"]
        found.quotas[user] = {value["key"]: value["value"] for value in entry["values"]}
    return found
