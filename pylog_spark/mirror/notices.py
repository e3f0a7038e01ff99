"""What a mirror says to its user: each thing once, and not what passes by itself."""

import time
from collections.abc import Callable, Sequence

from pylog_spark.results.mirror import MirroredPartition

#: An error that is gone after this time is not worth a line.
_WORTH_A_LINE_S = 2.0
#: Most lines about single partitions that do not go on; what is left out is counted.
_NAMED_MAX = 20


class Notices:
    """Lines for the user of one mirror.

    Parameters
    ----------
    say : callable
        Takes each line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._said: dict[str, str] = {}
        self._since: dict[str, float] = {}

    def once(self, key: str, sentence: str) -> None:
        """Say something about `key`, unless that was said last."""
        if self._said.get(key) != sentence:
            self._said[key] = sentence
            self.say(sentence)

    def forget(self, key: str) -> None:
        """What was said about `key` is over."""
        self._said.pop(key, None)

    def failing(self, partitions: Sequence[MirroredPartition], failures: Sequence[tuple[str, str]]) -> None:
        """Say which partitions do not go on, when that lasts, and which do again."""
        now = time.monotonic()
        wrong = {f"{at.topic}-{at.partition}": at.message or at.error for at in partitions if at.error}
        wrong |= {f"failure {message}": message for _kind, message in failures}
        self._since = {key: self._since.get(key, now) for key in wrong}
        lasting = {key: wrong[key] for key, since in self._since.items() if now - since >= _WORTH_A_LINE_S}
        news = [key for key in lasting if key not in self._said]
        for key in news[:_NAMED_MAX]:
            self.once(key, f"does not go on: {lasting[key]}")
        if len(news) > _NAMED_MAX:
            self.say(f"does not go on: {len(news) - _NAMED_MAX} more partitions")
            self._said.update(dict.fromkeys(news[_NAMED_MAX:], ""))
        known = {f"{at.topic}-{at.partition}" for at in partitions}
        over = [key for key in self._said if key not in wrong and (key in known or key.startswith("failure "))]
        for key in over:
            self.forget(key)
        if over:
            self.say(f"goes on: {', '.join(key for key in over if key in known) or 'all brokers answer'}")

    def progress(self, partitions: Sequence[MirroredPartition], bytes_per_second: float) -> None:
        """Say how far all are."""
        lags = [at.lag for at in partitions]
        behind = sum(lag for lag in lags if lag is not None)
        unknown = sum(lag is None for lag in lags)
        more = f", {unknown} not known yet" if unknown else ""
        self.say(f"lag {behind} records in {len(lags) - unknown} partitions{more}, {bytes_per_second / 1e6:.1f} MB/s")
