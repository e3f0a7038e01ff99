"""What must hold of users, ACLs and quotas while brokers die: a `Company` of the rounds on a guarded cluster.

Before the first fault it makes the load's users, each with the ACLs that it needs and no more, and lets intruders at every broker, who try
all the time until everything is read. During the faults of each round a clerk makes and deletes users, gives and takes ACLs, sets quotas
and passwords, each over and over until a broker says that it is done. Once the cluster is whole again, every broker must know exactly what
was done in all rounds, and heed it; from then on who lost something is among those whom intruders come as.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from pylog_spark.client import AclBindingFilter, Admin, LogError
from pylog_spark.cluster import documents
from pylog_spark.testing import LocalBroker
from tests.cluster.intruders import Intruder, Strangers, entered, forbidden, lets_in, may_describe
from tests.cluster.rights import Rights, as_sent, known
from tests.cluster.rounds import MIXED, PARTITIONS, SOURCE, TARGET, Company
from tests.harness.bench import Bench
from tests.harness.load import Load
from tests.harness.mixed import COPIER, GROUP, MixedLoad, allowed, rights
from tests.harness.security import ADMIN, MECHANISM, Security, secured
from tests.harness.waiting import pause, seconds_until, until

LOAD_USERS = tuple(rights(MIXED, SOURCE, TARGET))
#: Who can log in and may do nothing; who may change rights and nothing else; whose password changes.
POWERLESS, CLERK, CHANGING = "powerless", "clerk", "changing"
#: How long all brokers of a cluster that is whole may take until they know what was done.
WITHIN_S = 30.0
_QUOTA = {"request_percentage": 50.0}
_CLERK_S = 30.0
_TIMES = {"default.api.timeout.ms": "3000", "request.timeout.ms": "1500"}
_PAUSE_S = 0.05
_GONE_ALREADY = "RESOURCE_NOT_FOUND"
_LOGGED_IN = re.compile(r': (\S+) is logged in at the listener \S+ as "([^"]*)"')
_ACCEPTED = re.compile(r": accepted a connection of (\S+)$")
_DENIED = re.compile(r" User:([^:]+) at \S+ may not (.*)$")
Change = Callable[[Admin], str | None]


def late(number: int) -> str:
    """Who is made in a round, and loses its ACL in the next one."""
    return f"late-{number}"


def leaver(number: int) -> str:
    """Who is made in the round before, and deleted in this one."""
    return f"leaver-{number}"


def password(number: int) -> str:
    """Of those who are made in a round."""
    return f"password-of-round-{number}"


class Clerk:
    """Does each change once, in order and in a thread of its own: at whichever broker answers, again until one says that it is done."""

    def __init__(self, admin: Callable[[], Admin], changes: Sequence[Change]) -> None:
        self._admin, self._left = admin, list(changes)
        #: How often a change was not done.
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name="clerk", daemon=True)
        self._stopped = threading.Event()
        self._thread.start()

    def _run(self) -> None:
        with self._admin() as admin:
            while self._left and not self._stopped.is_set():
                if self._is_done(admin, self._left[0]):
                    del self._left[0]
                else:
                    self.failures += 1
                    pause(self._stopped, _PAUSE_S)

    def _is_done(self, admin: Admin, change: Change) -> bool:
        try:
            return change(admin) in (None, _GONE_ALREADY)
        except LogError:
            return False

    def finish(self) -> None:
        """Wait until all is done: the cluster is whole."""
        self._thread.join(_CLERK_S)
        self.stop()
        assert self._left == [], f"{len(self._left)} changes of rights are not done by a cluster that is whole"

    def stop(self) -> None:
        """Do no more."""
        self._stopped.set()
        self._thread.join()


class Guarded(Company):
    """See the module.

    Attributes
    ----------
    security : Security
        Of the cluster.
    intruders : list of Intruder
        One for each broker.
    took_s : list of float
        For each round the seconds after which every broker of the whole cluster knew what was done during its faults.
    failures : int
        How often a change of rights failed, and was tried again.
    again : Counter of str
        How often users have logged in once more over a connection; as `ADMIN` only brokers come for so long.
    again_under_faults : int
        How often anybody did between the faults of a round and the moment when the cluster was whole.
    """

    def __init__(self, security: Security, seed: int) -> None:
        self.security, self._seed = security, seed
        self.intruders: list[Intruder] = []
        self.took_s: list[float] = []
        self.failures = self.again_under_faults = 0
        self.again: Counter[str] = Counter()
        self._rights = Rights()
        self._strangers = Strangers()
        self._bench: Bench
        self._load: Load
        self._clerk: Clerk | None = None

    @contextmanager
    def beside(self, bench: Bench) -> Iterator[None]:
        self._bench = bench
        with bench.admin(bench.ids[0]) as admin:
            self._make_rights(admin)
        self._await_rights()
        user = LOAD_USERS[0]
        self._strangers.wrong += [(ADMIN, "guess"), (user, "guess"), ("somebody", "guess")]
        self._strangers.powerless.append((POWERLESS, self.security.passwords[POWERLESS]))
        own = (self.security, self._seed, self._strangers, forbidden(MIXED, GROUP, COPIER, user))
        self.intruders = [Intruder(broker, *own) for broker in bench.brokers.values()]
        self._load = Load(self.intruders)
        try:
            with self._load:
                yield
        finally:
            if self._clerk is not None:
                self._clerk.stop()
        self._await_rights()
        until(self._brokers_logged_in_again, "brokers log in once more at each that leads")
        self.again = self._logins_again()
        self._check_logs()
        self._check_zookeeper()

    def _make_rights(self, admin: Admin) -> None:
        passwords = {**self.security.passwords, **dict.fromkeys((CHANGING, late(-1), leaver(0)), password(-1))}
        for user in passwords.keys() - {ADMIN}:
            assert admin.set_user_scram_credential(user, passwords[user]).error is None
        acls = [acl for some in rights(MIXED, SOURCE, TARGET).values() for acl in some]
        acls += [allowed(CLERK, operation, "CLUSTER", "kafka-cluster") for operation in ("ALTER", "ALTER_CONFIGS")]
        acls.append(allowed(late(-1), "READ", "TOPIC", MIXED))
        assert {result.error for result in admin.create_acls(acls)} == {None}
        # Different ones, and too high to be felt.
        quotas = {user: {"producer_byte_rate": 1e9 + number} for number, user in enumerate(LOAD_USERS)}
        altered = admin.alter_client_quotas([({"user": user}, its) for user, its in quotas.items()])
        assert {result.error for result in altered} == {None}
        self._rights = Rights(set(passwords), {as_sent(acl) for acl in acls}, dict(quotas))

    def _await_rights(self) -> float:
        """Wait until every broker knows what was done, and nothing else; the seconds it took."""
        return seconds_until(lambda: not self._ignorant(), lambda: f"all rights at {self._ignorant()}", WITHIN_S)

    def _ignorant(self) -> list[int]:
        """Brokers that do not know exactly what was done."""
        return [number for number, broker in self._bench.brokers.items() if self._known(broker) != self._rights]

    def _known(self, broker: LocalBroker) -> Rights:
        with closing(entered(broker, self.security.client(ADMIN))) as connection:
            return known(connection)

    def harmed(self, load: MixedLoad) -> None:
        number = len(self.took_s)
        before = AclBindingFilter(principal=f"User:{late(number - 1)}")
        now = allowed(late(number), "READ", "TOPIC", MIXED)
        its = password(number)
        self.again_under_faults -= self._logins_again().total()
        self._clerk = Clerk(
            lambda: Admin(self._bench.servers, {**self.security.client(CLERK), **_TIMES}),
            [
                lambda admin: admin.delete_acls([before])[0].error,
                lambda admin: admin.set_user_scram_credential(late(number), its).error,
                lambda admin: admin.create_acls([now])[0].error,
                lambda admin: admin.set_user_scram_credential(CHANGING, its).error,
                lambda admin: admin.alter_client_quotas([({"user": late(number)}, _QUOTA)])[0].error,
                lambda admin: admin.set_user_scram_credential(leaver(number + 1), its).error,
                lambda admin: admin.delete_user_scram_credentials([(leaver(number), MECHANISM)])[0].error,
            ],
        )

    def healed(self) -> None:
        number = len(self.took_s)
        self.again_under_faults += self._logins_again().total()
        assert self._clerk is not None
        self._clerk.finish()
        self.failures += self._clerk.failures
        self._rights.users ^= {late(number), leaver(number), leaver(number + 1)}
        self._rights.acls ^= {as_sent(allowed(late(one), "READ", "TOPIC", MIXED)) for one in (number - 1, number)}
        self._rights.quotas[late(number)] = _QUOTA
        self.took_s.append(self._await_rights())
        for broker in self._bench.brokers.values():
            self._check_heeds(broker, number)
        old = password(number - 1)
        self._strangers.wrong += [(CHANGING, old), (leaver(number), old)]
        self._strangers.powerless.append((late(number - 1), old))
        self._load.check_alive()

    def _check_heeds(self, broker: LocalBroker, number: int) -> None:
        """A broker does what it knows."""
        old, new = password(number - 1), password(number)
        logins = {
            (CHANGING, old): False,
            (CHANGING, new): True,
            (leaver(number), old): False,
            (leaver(number + 1), new): True,
        }
        assert {login: lets_in(broker, self.security, *login) for login in logins} == logins, broker.broker_id
        allowed_to = {(late(number), new): True, (late(number - 1), old): False}
        found = {login: may_describe(broker, self.security, *login, MIXED) for login in allowed_to}
        assert found == allowed_to, broker.broker_id

    def _brokers_logged_in_again(self) -> bool:
        """At each broker that leads a partition now: the others follow it, over connections that outlast a login. At one that leads none
        (the last to come back after all were killed) no broker has anything to fetch."""
        leaders = {
            self._bench.leader((topic, number)) for topic in (MIXED, SOURCE, TARGET) for number in range(PARTITIONS)
        }
        return all(self._again(self._bench.brokers[leader])[ADMIN] for leader in leaders)

    def _logins_again(self) -> Counter[str]:
        return sum(map(self._again, self._bench.brokers.values()), Counter[str]())

    def _again(self, broker: LocalBroker) -> Counter[str]:
        return logins_again(broker.logs().splitlines())

    def _check_logs(self) -> None:
        """No broker has refused the load or another broker, and none has written down what is secret."""
        secrets = [*self.security.passwords.values(), password(0).rstrip("0")]
        for broker in self._bench.brokers.values():
            text = broker.logs()
            denied = [
                found for found in map(_DENIED.search, text.splitlines()) if found and found[1] in (*LOAD_USERS, CLERK)
            ]
            assert [found[0] for found in denied] == []
            assert not [line for line in text.splitlines() if re.search("refuse[sd] the login", line)]
            assert not [its for its in secrets if its in text], "a password is in a log"

    def _check_zookeeper(self) -> None:
        """Who is no broker sees no user there."""
        client = KazooClient(self._bench.documents)
        client.start()
        try:
            client.get_children("/" + documents.SCRAM_USERS.rstrip("/"))
        except NoAuthError:
            return
        finally:
            client.stop()
            client.close()
        raise AssertionError("ZooKeeper shows the users to a stranger")


def logins_again(lines: Sequence[str]) -> Counter[str]:
    """By user: how often a broker's log says that somebody is logged in over a connection that was logged in before."""
    logged_in: set[str] = set()
    again: Counter[str] = Counter()
    for line in lines:
        if found := _ACCEPTED.search(line):
            logged_in.discard(found[1])
        elif found := _LOGGED_IN.search(line):
            again[found[2]] += found[1] in logged_in
            logged_in.add(found[1])
    return again


def guarded(directory: Path, seed: int) -> Guarded:
    """For a cluster whose data will be in `directory`."""
    return Guarded(secured(directory, [*LOAD_USERS, POWERLESS, CLERK]), seed)
