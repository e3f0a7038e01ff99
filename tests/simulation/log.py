"""A model of the log of one replica on one disk: records with the epoch of the leader that appended them."""

from bisect import bisect_right
from operator import itemgetter
from random import Random

_EPOCH = itemgetter(0)


class Log:
    """`records[offset]` is (epoch, value); up to `synced` they survive the loss of power, up to `high_watermark` readers see them."""

    def __init__(self) -> None:
        self.records: list[tuple[int, str]] = []
        self.high_watermark = 0
        self.synced = 0
        self.checkpoint = 0

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def latest_epoch(self) -> int:
        return self.records[-1][0] if self.records else -1

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The largest epoch of a record that is not above `epoch`, and where its records end; (-1, 0) when there is none."""
        end = bisect_right(self.records, epoch, key=_EPOCH)
        return (self.records[end - 1][0], end) if end else (-1, 0)

    def truncate(self, end: int) -> None:
        del self.records[end:]
        self.synced = min(self.synced, end)
        self.high_watermark = min(self.high_watermark, end)
        self.checkpoint = min(self.checkpoint, end)

    def restart(self) -> None:
        """The process ended: the high watermark is what the checkpoint says."""
        self.high_watermark = min(self.checkpoint, self.end)

    def lose_power(self, random: Random) -> bool:
        """Give up some of what was not synced; whether anything was."""
        keep = random.choice([self.synced, self.end, random.randint(self.synced, self.end)])
        lost = keep < self.end
        self.truncate(keep)
        self.synced = keep
        return lost
