"""What must hold at every moment of a simulation. It sees everything at once; the brokers see nothing of it."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pylog_spark.cluster.model import Partition, Topic

if TYPE_CHECKING:
    from tests.simulation.broker import Broker


class Violation(AssertionError):
    """A promise was broken."""


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Violation(sentence)


class Oracle:
    """The promises of a cluster.

    Attributes
    ----------
    lossless : bool
        No unclean election is allowed, so what is committed stays.
    flushed : bool
        A replica has only what is on its disk.
    damaged : dict
        Partition -> brokers that stopped uncleanly and were not back in its ISR since.
    """

    def __init__(
        self, brokers: Mapping[int, "Broker"], topic: Callable[[], Topic], lossless: bool, flushed: bool, min_isr: int
    ) -> None:
        self.lossless = lossless
        self.flushed = flushed
        self._min_isr = min_isr
        self.damaged: defaultdict[int, set[int]] = defaultdict(set)
        self.committed: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        self.acknowledged: defaultdict[int, dict[int, str]] = defaultdict(dict)
        self._brokers = brokers
        self._topic = topic
        self._elected: dict[tuple[int, int], float] = {}
        self._leaders: dict[tuple[int, int], int] = {}
        self._appended: dict[tuple[int, int, int], str] = {}

    def broker(self, number: int) -> "Broker":
        return self._brokers[number]

    # The documents.

    def stored(self, before: Topic, after: Topic, now: float) -> None:
        """Each change of the topic document."""
        for old, new in zip(before.partitions, after.partitions, strict=True):
            if new != old:
                self._changed(old, new)
                self._elected.setdefault((new.partition, new.leader_epoch), now)
                if self.lossless:
                    self._safe(old, new)

    def _changed(self, old: Partition, new: Partition) -> None:
        where = f"partition {new.partition}: {old} -> {new}"
        require(new.partition_epoch > old.partition_epoch, f"a change has its partition_epoch; {where}")
        require(new.leader_epoch >= old.leader_epoch, f"leader epochs never go back; {where}")
        require(new.leader_epoch > old.leader_epoch or new.leader == old.leader, f"a leader has its epoch; {where}")
        require(0 < len(new.isr) == len(set(new.isr)), f"the ISR is a set that is never empty; {where}")
        require(set(new.isr) | set(new.elr) <= set(new.replicas), f"ISR and ELR are replicas; {where}")
        require(not set(new.isr) & set(new.elr), f"no broker is in both ISR and ELR; {where}")
        require(new.leader == -1 or new.leader in new.isr, f"the leader is in the ISR; {where}")
        require(set(new.adding) | set(new.removing) <= set(new.replicas), f"what moves is a replica; {where}")
        # Who comes into the ISR has caught up, unless what it had caught up with was lost again meanwhile.
        back = {broker for broker in set(new.isr) - set(old.isr) if self._brokers[broker].clean}
        self.damaged[new.partition] -= back
        self.damaged[new.partition].intersection_update(new.replicas)

    def _safe(self, old: Partition, new: Partition) -> None:
        """Who joins the ISR has what is committed; nothing committed is left to fewer replicas than min.insync.replicas."""
        where = f"partition {new.partition}: {old} -> {new}"
        for broker in set(new.isr) - {*old.isr, *old.elr}:
            log, known = self._brokers[broker].disk.get(new.partition), self.committed[new.partition]
            whole = log is not None and log.records[: len(known)] == known
            require(whole or not self._brokers[broker].clean, f"{broker} joins without committed records; {where}")
        before = {broker for broker in (*old.isr, *old.elr) if self._brokers[broker].clean}
        enough = min(self._min_isr, len(before))
        require(len({*new.isr, *new.elr}) >= enough, f"too few that have what is committed; {where}")

    def controls(self, epoch: int | None, current: int) -> None:
        """A controller of `epoch` writes while the present one's is `current`."""
        require(epoch in (None, current), f"controller {epoch} writes after controller {current} was elected")

    # The brokers.

    def acts(self, broker: "Broker", partition: int, epoch: int) -> None:
        """A broker does something as the leader of an epoch."""
        require(broker.session_lives(), f"broker {broker.id} leads partition {partition} after its session ended")
        since = self._elected.get((partition, epoch + 1))
        late = since is not None and broker.session is not None and broker.session.began > since
        require(
            not late, f"broker {broker.id} leads partition {partition} in epoch {epoch} in a session after the next one"
        )
        leader = self._leaders.setdefault((partition, epoch), broker.id)
        require(leader == broker.id, f"{leader} and {broker.id} lead partition {partition} in epoch {epoch}")

    def leads(self, broker: "Broker", partition: int, epoch: int) -> None:
        """A broker begins to lead: it must have all that is committed, unless others were elected since."""
        if self.lossless and self._topic().partitions[partition].leader_epoch == epoch:
            log = broker.disk[partition]
            known = self.committed[partition]
            missing = next(
                (offset for offset, record in enumerate(known) if log.records[offset : offset + 1] != [record]), None
            )
            require(
                missing is None,
                f"broker {broker.id} leads partition {partition} in epoch {epoch} without committed record {missing}",
            )

    def appended(self, partition: int, epoch: int, offset: int, value: str) -> None:
        """A leader appends a record."""
        other = self._appended.setdefault((partition, epoch, offset), value)
        require(other == value, f"two records of epoch {epoch} at offset {offset} of partition {partition}")

    def exposed(self, broker: "Broker", partition: int, old: int, new: int) -> None:
        """A high watermark moved: these records can be read."""
        if not self.lossless:
            return
        known = self.committed[partition]
        records = broker.disk[partition].records
        for offset in range(old, new):
            if offset < len(known):
                same = records[offset] == known[offset]
                require(same, f"record {offset} of partition {partition} changed for a reader of broker {broker.id}")
            else:
                known.append(records[offset])
                self._held(partition, offset, records[offset])

    def _held(self, partition: int, offset: int, record: tuple[int, str]) -> None:
        """A record is committed for the first time: everybody who may lead next has it."""
        stored = self._topic().partitions[partition]
        for member in {*stored.isr, *stored.elr} - self.damaged[partition]:
            log = self._brokers[member].disk.get(partition)
            has = log is not None and log.records[offset : offset + 1] == [record]
            require(
                has and (not self.flushed or log.synced > offset),
                f"record {offset} of partition {partition} is committed without broker {member}: {stored}",
            )

    def truncated(self, broker: "Broker", partition: int, end: int) -> None:
        """A running replica gives up its records from `end` on."""
        if self.lossless:
            mark = broker.disk[partition].high_watermark
            require(end >= mark, f"broker {broker.id} truncates partition {partition} to {end}, below {mark}")

    def answered(self, partition: int, offset: int, value: str) -> None:
        """A producer with acks=all gets its acknowledgement."""
        self.acknowledged[partition][offset] = value

    # The end.

    def healed(self) -> str | None:
        """What is still wrong after everybody is back; None when nothing is."""
        for partition in self._topic().partitions:
            if (
                partition.leader == -1
                or partition.adding
                or partition.removing
                or partition.elr
                or set(partition.isr) != set(partition.replicas)
            ):
                return f"not reconciled: {partition}"
            led = self._brokers[partition.leader].replicas.led.get(partition.partition)
            if (
                led is None
                or led.partition.leader_epoch != partition.leader_epoch
                or not self._brokers[partition.leader].may_lead()
            ):
                return f"broker {partition.leader} does not know that it leads: {partition}"
            logs = [self._brokers[broker].disk.get(partition.partition) for broker in partition.replicas]
            if any(log is None for log in logs):
                return f"somebody has no replica: {partition}"
            ends = {(tuple(log.records), log.high_watermark == log.end) for log in logs}
            if len(ends) != 1 or not all(whole for _, whole in ends):
                return f"replicas differ: {partition} {[(log.end, log.high_watermark) for log in logs]}"
        return None

    def finished(self) -> None:
        """After the end: what was acknowledged is there."""
        wrong = self.healed()
        require(wrong is None, f"after the faults stopped: {wrong}")
        for partition, answers in self.acknowledged.items() if self.lossless else ():
            records = self._brokers[self._topic().partitions[partition].leader].disk[partition].records
            for offset, value in answers.items():
                found = records[offset][1] if offset < len(records) else None
                require(found == value, f"acknowledged {value} at {offset} of partition {partition} is {found}")
