"""Attacks on a secured broker (`secure_attacks`): each attempt sees its error, and a good client keeps nine tenths of its rate meanwhile.

The good client comes over TLS and SCRAM-SHA-512, and produces and fetches as fast as it is answered. It and the broker have one processor for
themselves, all of which they use, and the attackers have the others: what an attack costs the broker is what the client loses, and what it costs
its sender does not count, as if that were on another machine. A client with a pace of its own would lose nothing until the broker had no time
left, which hides what an attack costs. The time is that of a `ProcessorClock`, which leaves out what others use of that processor; the pace of
attackers is counted by it, too.

Attackers have a pace, `PER_S` and `ASKED_PER_S` attempts a second: without one the figure would be that of two programs that share a processor. So
the promise is that an attempt costs a broker less than 4 ms, and a request of one who is logged in less than 1 ms. How many attempts there may be is
for `max.connections.per.ip`, `max.connection.creation.rate` and quotas to say. Quiet windows and those of an attack take turns; each one of an attack
is compared with the two beside it, and the median counts. Five windows of a noisy machine can be wrong: where they say that too little is kept, twelve
times as many more are taken, once, and the median of all of them counts.

What each attempt sees is asked of every group in `make test`, the rate for three of them, which are the three ways to be a stranger: by the
handshake, by a wrong login, and by a login that has too few rights. `make test-long` asks the rate for all.
"""

import contextlib
import itertools
import os
import resource
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import pytest

from tests.harness.runs import rounds
from tests.harness.waiting import let_pass, said, until
from tests.hostile.attempts import Later
from tests.hostile.floods import MIB, peak_bytes
from tests.hostile.fort import FORGED, GOOD, OTHERS, PROCESSOR, Fort
from tests.hostile.logins import Client, dialled
from tests.hostile.neighbour import Address, ProcessorClock, SteadyNeighbourProcess
from tests.hostile.secure_attacks import ATTACKS, GROUPS, Attack, pace

pytestmark = [pytest.mark.alone, pytest.mark.skipif(not OTHERS, reason="attackers need a processor of their own")]

_KEPT = 0.9
_WINDOWS = rounds("PYLOG_SECURITY_WINDOWS", 5, 50)
#: How many times as much is measured once more where the first time says that too little is kept.
_MORE = 12
_WINDOW_S = 0.2
_GROWS_MAX = 64 * MIB
#: The groups whose rate is taken in `make test`, too.
_TIMED = ("before a login",)
#: How many connections are half open, and how many more come in a second while the rate is taken.
_HALF_OPEN, _HALF_OPEN_PER_S = 10_000, 150
#: How many the broker keeps, as is its default.
_HANDSHAKES = 1_000
_CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01"


@pytest.fixture(scope="module")
def fort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fort]:
    """The broker on its processor, and all threads of this process, which are the attackers', on the others."""
    with Fort(tmp_path_factory.mktemp("fort")) as fort:
        before = os.sched_getaffinity(0)
        _move_to(OTHERS)
        try:
            yield fort
        finally:
            _move_to(before)


def _move_to(processors: set[int]) -> None:
    for thread in map(int, os.listdir("/proc/self/task")):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, processors)


@pytest.fixture(scope="module")
def good(fort: Fort) -> Iterator[SteadyNeighbourProcess]:
    """The good client, which is there all the time."""
    host, _, port = fort.address("SECURED").rpartition(":")
    address = Address(host, int(port), fort.broker.pid)
    with SteadyNeighbourProcess(address, "honest", fort.login(GOOD), PROCESSOR) as good:
        until(lambda: good.lap().answers, "it is under way")
        yield good


class Attackers:
    """Those of one group, who take turns."""

    def __init__(self, fort: Fort, attacks: list[Attack], host: str) -> None:
        self._fort, self._attacks, self._host = fort, attacks, host
        self._later: list[tuple[str, Later]] = []
        self.made = 0
        self.seen: dict[str, Counter[str]] = defaultdict(Counter)

    def once(self) -> None:
        """Make an attempt."""
        attack = self._attacks[self.made % len(self._attacks)]
        self.made += 1
        sees = attack.attempt(self._fort, self._host)
        if isinstance(sees, str):
            self.seen[attack.name][sees] += 1
        else:
            self._later.append((attack.name, sees))

    def finish(self) -> None:
        """Make what is left, and wait for what was not over at once."""
        while self.made < len(self._attacks) * max(attack.least(self._fort) for attack in self._attacks):
            self.once()
        for name, later in self._later:
            self.seen[name][later()] += 1


class Windows:
    """Windows of the same length, and what rate the good client has in them; all by the clock of its processor."""

    def __init__(self, fort: Fort, good: SteadyNeighbourProcess) -> None:
        self._good = good
        self._clock = ProcessorClock({fort.broker.pid, good.pid}, PROCESSOR)

    def quiet(self) -> float:
        """The rate when nobody attacks."""
        return self._rate(lambda began: self._reach(began + _WINDOW_S))

    def attacked(self, once: Callable[[], None], per_s: float) -> float:
        """The rate while so many attempts are made in a second."""

        def window(began: float) -> None:
            for number in range(round(per_s * _WINDOW_S)):
                self._reach(began + number / per_s)
                once()
            self._reach(began + _WINDOW_S)

        return self._rate(window)

    def _rate(self, window: Callable[[float], None]) -> float:
        self._good.lap()
        window(self._clock.read())
        return self._good.lap().rate

    def _reach(self, due: float) -> None:
        while (left := due - self._clock.read()) > 0:
            let_pass(left)


def _kept(quiet: list[float], attacked: list[float]) -> float:
    """What part of its rate the good client keeps; `quiet` has a window before each one of the attack, and one behind the last."""
    beside = [statistics.mean(pair) for pair in itertools.pairwise(quiet)]
    return statistics.median(rate / usual for rate, usual in zip(attacked, beside, strict=True))


def _in_turns(few: int, quiet: Callable[[], float], attacked: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Rates without and under an attack, in turns, for `_kept`: `few` of the attack, and more where these say that too little is kept."""
    usual, under = [quiet()], []
    for count in (few, _MORE * few):
        for _ in range(count):
            under.append(attacked())
            usual.append(quiet())
        if _kept(usual, under) >= _KEPT:
            break
    return usual, under


def _shown(what: str, kept: float, quiet: list[float], per_s: float) -> str:
    return (
        f"{what}: {kept:.3f} of {statistics.median(quiet):,.0f} answers a second, under {per_s:.0f} attempts a second"
    )


def _check_unharmed(fort: Fort, before: int) -> None:
    assert peak_bytes(fort.broker) - before < _GROWS_MAX
    assert fort.end_of("secret") == 0
    logs = fort.broker.logs()
    assert "panicked at" not in logs
    assert not any(line.startswith(FORGED.strip()) for line in logs.splitlines())


@contextlib.contextmanager
def _attackers(fort: Fort, group: str) -> Iterator[Attackers]:
    """Those of a group, who may have begun when the block ends: they finish, see what they must, and have done no harm."""
    attacks = [attack for attack in ATTACKS if attack.group == group]
    attackers = Attackers(fort, attacks, f"127.0.9.{1 + GROUPS.index(group)}")
    before = peak_bytes(fort.broker)
    yield attackers
    attackers.finish()
    assert {name: set(seen) for name, seen in attackers.seen.items()} == {each.name: {each.sees} for each in attacks}
    for attack in attacks:
        until(lambda attack=attack: (attack.log or "") in fort.broker.logs(), f"the log says of it: {attack.log}")
    _check_unharmed(fort, before)


@pytest.mark.parametrize("group", GROUPS)
def test_each_attempt_sees_its_error_and_does_no_harm(fort: Fort, group: str) -> None:
    with _attackers(fort, group) as attackers:
        assert attackers.made == 0


@pytest.mark.parametrize(
    "group", [pytest.param(group, marks=[] if group in _TIMED else pytest.mark.long) for group in GROUPS]
)
def test_under_attempts_a_good_client_keeps_nine_tenths_of_its_rate(
    fort: Fort, good: SteadyNeighbourProcess, group: str
) -> None:
    windows = Windows(fort, good)
    with _attackers(fort, group) as attackers:
        quiet, attacked = _in_turns(_WINDOWS, windows.quiet, lambda: windows.attacked(attackers.once, pace(group)))
        made = attackers.made
    kept = _kept(quiet, attacked)
    print(_shown(group, kept, quiet, made / (len(attacked) * _WINDOW_S)))
    assert kept >= _KEPT, (quiet, attacked)


@contextlib.contextmanager
def _descriptors(count: int) -> Iterator[int]:
    """As many file descriptors as there may be, up to `count` more than now: how many more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + len(os.listdir("/proc/self/fd")) + 100
    soft = wanted if before[1] == resource.RLIM_INFINITY else min(wanted, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, before[0]), before[1]))
    try:
        yield min(count, count - wanted + max(soft, before[0]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def _half_open(fort: Fort, host: str, count: int) -> Iterator[tuple[list[Client], Callable[[], None]]]:
    """So many connections that are half open, of which the broker keeps some, and what opens one more; all are closed at the end.

    Each time from another address: one has ports for 28,000 connections a minute, and the last of them are found slowly.
    """
    sockets = fort.sockets()
    with contextlib.ExitStack() as held:
        peers: list[Client] = []

        def once() -> None:
            peers.append(held.enter_context(Client(dialled(fort.address("SECURED"), host))))
            # Some say nothing, some begin a ClientHello.
            peers[-1].socket.sendall(_CLIENT_HELLO[: len(peers) % 2 * 6])

        while len(peers) < count:
            once()
        until(lambda: fort.sockets() - sockets <= _HANDSHAKES + 50, "those that are too many are closed")
        yield peers, once
        assert fort.sockets() - sockets <= _HANDSHAKES + 50
    until(lambda: fort.sockets() <= sockets, "the broker has closed them, too")


@pytest.mark.long  # test_login_floods.py
def test_ten_thousand_half_open_connections_leave_nothing_behind_and_a_good_client_is_served(
    fort: Fort, good: SteadyNeighbourProcess
) -> None:
    before, sockets = peak_bytes(fort.broker), fort.sockets()
    with _descriptors(_HALF_OPEN) as count:
        if count < 3 * _HANDSHAKES:
            pytest.skip(f"this process may not have more than {count} connections: raise its hard limit (ulimit -Hn)")
        good.lap()
        with _half_open(fort, "127.0.10.1", count) as (peers, _):
            opening = good.lap()
            assert all(peer.closed() for peer in peers)
    print(f"{count:,} half open in {opening.wall_s:.1f} s, with {opening.rate:,.0f} answers a second meanwhile")
    assert opening.rate > 0
    assert fort.sockets() <= sockets
    said(fort.broker, f"ssl.handshake.max.connections={_HANDSHAKES} ")
    _check_unharmed(fort, before)


@pytest.mark.long  # in `make test` the rate is taken of those that do more before a login
def test_half_open_connections_that_go_on_coming_cost_a_good_client_little(
    fort: Fort, good: SteadyNeighbourProcess
) -> None:
    before = peak_bytes(fort.broker)
    windows, hosts = Windows(fort, good), (f"127.0.11.{number}" for number in itertools.count(1))

    def attacked() -> float:
        # As many as the broker keeps: the machine is not the same for as long as it takes to open ten thousand each time.
        with _half_open(fort, next(hosts), _HANDSHAKES) as (_, once):
            windows.quiet()
            return windows.attacked(once, _HALF_OPEN_PER_S)

    def quiet_again() -> float:
        windows.quiet()
        return windows.quiet()

    with _descriptors(2 * _HANDSHAKES) as count:
        if count < 2 * _HANDSHAKES:
            pytest.skip(f"this process may not have more than {count} connections: raise its hard limit (ulimit -Hn)")
        quiet, rates = _in_turns(2 * _WINDOWS, quiet_again, attacked)
    _check_unharmed(fort, before)
    kept = _kept(quiet, rates)
    print(_shown("half open", kept, quiet, _HALF_OPEN_PER_S))
    assert kept >= _KEPT, (quiet, rates)
