"""What can befall a cluster. Each fault picks its victims with the randomness it is given and happens at once; `Bench.heal`
undoes it."""

import random
from collections.abc import Callable, Sequence

from tests.harness.bench import ZOOKEEPER, Bench, end_name
from tests.harness.history import Place
from tests.harness.waiting import let_pass
from tests.harness.watch import expire_session

_JUMPS, _FURTHEST_S, _BETWEEN_JUMPS_S = 3, 3_600, 0.3

Harm = Callable[[Bench, int, random.Random], None]
Fault = Callable[[Bench, random.Random, Sequence[Place]], None]


def _leader(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> int:
    leader = bench.leader(randomness.choice(places))
    return leader if leader in bench.ids else randomness.choice(bench.ids)


def _follower(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> int:
    followers = bench.followers(randomness.choice(places))
    return randomness.choice(followers)


def _controller(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> int:
    controller = bench.watcher.controller
    return controller if controller in bench.ids else randomness.choice(bench.ids)


_VICTIMS = {"leader": _leader, "follower": _follower, "controller": _controller}


def victim_of(role: str, bench: Bench, randomness: random.Random, places: Sequence[Place]) -> int:
    """A broker that has the role: "leader", "follower" or "controller"."""
    return _VICTIMS[role](bench, randomness, places)


def _kill(bench: Bench, victim: int, randomness: random.Random) -> None:
    bench.kill(victim)


def _stop(bench: Bench, victim: int, randomness: random.Random) -> None:
    bench.stop(victim)


def _pause(bench: Bench, victim: int, randomness: random.Random) -> None:
    bench.pause(victim)


def _expire(bench: Bench, victim: int, randomness: random.Random) -> None:
    # A second fault of a round may find ZooKeeper down already.
    if bench.zookeeper_answers:
        expire_session(bench.documents, victim)


def _isolate(bench: Bench, victim: int, randomness: random.Random) -> None:
    bench.isolate(victim)


def _mute(bench: Bench, victim: int, randomness: random.Random) -> None:
    """What it sends reaches no other broker; what they send arrives."""
    for other in bench.ids:
        if other != victim:
            bench.network.cut(end_name(victim), end_name(other))


def _part_two(bench: Bench, victim: int, randomness: random.Random) -> None:
    """It and one other broker do not see each other; both see the third."""
    other = next(broker_id for broker_id in bench.ids if broker_id != victim)
    bench.network.cut(end_name(victim), end_name(other))
    bench.network.cut(end_name(other), end_name(victim))


def _cut_off_zookeeper(bench: Bench, victim: int, randomness: random.Random) -> None:
    bench.cut_off_zookeeper(victim)


def _break_connections(bench: Bench, victim: int, randomness: random.Random) -> None:
    for other in (ZOOKEEPER, *(end_name(broker_id) for broker_id in bench.ids if broker_id != victim)):
        bench.network.reset(end_name(victim), other)


def _slow(bench: Bench, victim: int, randomness: random.Random) -> None:
    for other in bench.ids:
        if other != victim:
            bench.network.delay(end_name(victim), end_name(other), 0.3)


def _cut_power(bench: Bench, victim: int, randomness: random.Random) -> None:
    bench.cut_power(victim, randomness)


def _shift_clock(bench: Bench, victim: int, randomness: random.Random) -> None:
    """Its wall clock jumps by up to an hour, to and fro."""
    for _ in range(_JUMPS):
        bench.machines[victim].set_clock(randomness.choice((-1, 1)) * randomness.randint(1, _FURTHEST_S))
        let_pass(_BETWEEN_JUMPS_S)


def _on(role: str, harm: Harm) -> Fault:
    def fault(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> None:
        victim = victim_of(role, bench, randomness, places)
        # A second fault of a round may find its victim down already.
        if bench.brokers[victim].running and victim not in bench.paused:
            harm(bench, victim, randomness)

    return fault


def _kill_all(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> None:
    for broker in bench.ids:
        if bench.brokers[broker].running:
            bench.kill(broker)


def _kill_zookeeper(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> None:
    if bench.zookeeper.running:
        bench.zookeeper.kill()


def _stop_zookeeper(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> None:
    if bench.zookeeper.running:
        bench.zookeeper.terminate()


def _pause_zookeeper(bench: Bench, randomness: random.Random, places: Sequence[Place]) -> None:
    if bench.zookeeper.running:
        bench.pause_zookeeper()


_OF_BROKERS = {
    "kill": _kill,
    "stop": _stop,
    "pause": _pause,
    "expire the session of": _expire,
    "isolate": _isolate,
    "cut off ZooKeeper from": _cut_off_zookeeper,
    "cut the power of": _cut_power,
    "shift the clock of": _shift_clock,
}

_OTHERS: dict[str, Fault] = {
    "mute the leader": _on("leader", _mute),
    "part two brokers": _on("leader", _part_two),
    "break the leader's connections": _on("leader", _break_connections),
    "slow the leader's answers": _on("leader", _slow),
    "kill all brokers": _kill_all,
    "kill ZooKeeper": _kill_zookeeper,
    "stop ZooKeeper": _stop_zookeeper,
    "pause ZooKeeper": _pause_zookeeper,
}
#: The faults of each kind: what befalls any of several brokers is of one kind.
KINDS: dict[str, dict[str, Fault]] = {
    **{verb: {f"{verb} the {role}": _on(role, harm) for role in _VICTIMS} for verb, harm in _OF_BROKERS.items()},
    **{name: {name: fault} for name, fault in _OTHERS.items()},
}
FAULTS: dict[str, Fault] = {name: fault for kind in KINDS.values() for name, fault in kind.items()}
