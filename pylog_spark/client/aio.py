"""The client for asyncio: the same names as in `pylog_spark.client`, with methods to be awaited.

The native client waits in threads, and so do these classes: each has a few of its own, which end when it is closed, and none of the event
loop's. A call that is cancelled goes on in its thread to its end; closing waits for it. An object belongs to one event loop.

Examples
--------
>>> from pylog_spark.client import aio
>>> async def print_new(servers):
...     async with aio.follow(servers, "events") as batches:
...         async for batch in batches:
...             print(batch.num_rows)
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from pylog_spark.client import admin as blocking
from pylog_spark.client import following, producer, ranges
from pylog_spark.client.places import Place
from pylog_spark.client.pulling import Pull
from pylog_spark.client.typed import FormatOptions, read_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self, Unpack

    from pylog_spark.audit.document import Audit
    from pylog_spark.client.producer import ArrowStream, Headers
    from pylog_spark.results.writes import FlushResult

__all__ = ["Admin", "BatchStream", "Producer", "batches", "follow", "read_range"]

#: Most requests of one `Admin` that are under way at the same time; others wait for their turn.
ADMIN_THREADS = 4
#: How long a thread waits for records at a time: a program that ends without closing a stream waits no longer than that.
_WAIT_S = 1.0

Given = ParamSpec("Given")
Result = TypeVar("Result")


class _Threads:
    """Threads of one object, and what they are doing."""

    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, f"pylog-{name}")
        self._running = 0
        self._idle = asyncio.Event()

    async def run(self, function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """Call `function` in a thread. Cancelling leaves it running."""
        call = functools.partial(function, *args, **kwargs)
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        self._running += 1
        self._idle.clear()
        future.add_done_callback(self._ended)
        return await asyncio.shield(future)

    def _ended(self, future: asyncio.Future[Result]) -> None:
        self._running -= 1
        if not self._running:
            self._idle.set()
        if not future.cancelled():
            # Looked at here, since nobody else does where the task was cancelled.
            future.exception()

    async def end(self) -> None:
        """Wait for what is running, and end the threads."""
        while self._running:
            await self._idle.wait()
        self._pool.shutdown(wait=False)


class _Closed:
    """What is closed at the end of an ``async with`` block."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, and end the threads."""
        raise NotImplementedError


def _awaited(
    method: Callable[Concatenate[blocking.Admin, Given], Result],
) -> Callable[Concatenate[Admin, Given], Awaitable[Result]]:
    async def call(self: Admin, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        return await self._threads.run(method, self._admin, *args, **kwargs)

    functools.update_wrapper(call, method)
    return call


class Admin(_Closed):
    """Admin requests to one cluster: the methods of `pylog_spark.client.Admin`, to be awaited.

    Parameters
    ----------
    bootstrap_servers : str
        ``HOST:PORT``, several separated by commas.
    config : mapping of str to str, optional
        Settings of the client by Kafka's names.
    """

    def __init__(self, bootstrap_servers: str, config: Mapping[str, str] | None = None) -> None:
        self._admin = blocking.Admin(bootstrap_servers, config)
        self._threads = _Threads(ADMIN_THREADS, "admin")

    async def aclose(self) -> None:
        """Close the connections, once all requests are answered."""
        await self._threads.run(self._admin.close)
        await self._threads.end()

    abort_transaction = _awaited(blocking.Admin.abort_transaction)
    alter_client_quotas = _awaited(blocking.Admin.alter_client_quotas)
    alter_configs = _awaited(blocking.Admin.alter_configs)
    alter_group_offsets = _awaited(blocking.Admin.alter_group_offsets)
    alter_share_group_offsets = _awaited(blocking.Admin.alter_share_group_offsets)
    append_batches = _awaited(blocking.Admin.append_batches)
    cluster = _awaited(blocking.Admin.cluster)
    configs = _awaited(blocking.Admin.configs)
    create_acls = _awaited(blocking.Admin.create_acls)
    create_partitions = _awaited(blocking.Admin.create_partitions)
    create_topic = _awaited(blocking.Admin.create_topic)
    dead_brokers = _awaited(blocking.Admin.dead_brokers)
    delete_acls = _awaited(blocking.Admin.delete_acls)
    delete_group_offsets = _awaited(blocking.Admin.delete_group_offsets)
    delete_groups = _awaited(blocking.Admin.delete_groups)
    delete_records = _awaited(blocking.Admin.delete_records)
    delete_topics = _awaited(blocking.Admin.delete_topics)
    delete_user_scram_credentials = _awaited(blocking.Admin.delete_user_scram_credentials)
    describe_acls = _awaited(blocking.Admin.describe_acls)
    describe_client_quotas = _awaited(blocking.Admin.describe_client_quotas)
    describe_groups = _awaited(blocking.Admin.describe_groups)
    describe_transactions = _awaited(blocking.Admin.describe_transactions)
    describe_user_scram_credentials = _awaited(blocking.Admin.describe_user_scram_credentials)
    elect_leaders = _awaited(blocking.Admin.elect_leaders)
    end_mirror = _awaited(blocking.Admin.end_mirror)
    features = _awaited(blocking.Admin.features)
    fence_producer = _awaited(blocking.Admin.fence_producer)
    fetch_batches = _awaited(blocking.Admin.fetch_batches)
    group = _awaited(blocking.Admin.group)
    group_offsets = _awaited(blocking.Admin.group_offsets)
    groups = _awaited(blocking.Admin.groups)
    list_topics = _awaited(blocking.Admin.list_topics)
    offsets = _awaited(blocking.Admin.offsets)
    producers = _awaited(blocking.Admin.producers)
    raise_level = _awaited(blocking.Admin.raise_level)
    reassign = _awaited(blocking.Admin.reassign)
    reassignments = _awaited(blocking.Admin.reassignments)
    set_user_scram_credential = _awaited(blocking.Admin.set_user_scram_credential)
    share_group_offsets = _awaited(blocking.Admin.share_group_offsets)
    topic = _awaited(blocking.Admin.topic)
    topics = _awaited(blocking.Admin.topics)
    transaction = _awaited(blocking.Admin.transaction)
    transactions = _awaited(blocking.Admin.transactions)
    unregister_broker = _awaited(blocking.Admin.unregister_broker)


class Producer(_Closed):
    """Appends records to one topic: `pylog_spark.client.Producer`, with methods to be awaited. One call is carried out after the other.

    Parameters
    ----------
    bootstrap_servers, topic, config, audit
        As of `pylog_spark.client.Producer`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        config: Mapping[str, str] | None = None,
        audit: Audit | None = None,
    ) -> None:
        self._producer = producer.Producer(bootstrap_servers, topic, config, audit)
        self._threads = _Threads(1, "producer")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until every record is acknowledged, unless the block failed, and close."""
        try:
            if kind is None:
                await self._threads.run(self._producer.publish)
        finally:
            await self.aclose()

    async def send(
        self,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Queue one record; see `pylog_spark.client.Producer.send`. Many records are better sent by `send_all`."""
        await self._threads.run(
            self._producer.send, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def send_all(self, frame: ArrowStream, **formats: Unpack[FormatOptions]) -> None:
        """Queue the rows of a frame; see `pylog_spark.client.Producer.send_all`."""
        await self._threads.run(self._producer.send_all, frame, **formats)

    async def flush(self) -> FlushResult:
        """Wait until every record is acknowledged; see `pylog_spark.client.Producer.flush`."""
        return await self._threads.run(self._producer.flush)

    async def aclose(self) -> None:
        """Close the connections. Records that are not acknowledged yet may be lost."""
        await self._threads.run(self._producer.close)
        await self._threads.end()


class _Source(Protocol):
    """What batches are polled from, by one thread at a time; `close` ends a poll that waits."""

    def poll(self, timeout_s: float) -> pa.RecordBatch | None:
        """Give the next batch; None where none came."""

    def close(self) -> None:
        """Close the connections."""

    @property
    def at_end(self) -> bool:
        """Whether no more will come."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""


class _Range:
    """What lies between two places, as a source."""

    def __init__(self, pull: Pull, schema: pa.Schema) -> None:
        self._pull, self.schema = pull, schema

    def poll(self, timeout_s: float) -> pa.RecordBatch | None:
        """See `_Source`."""
        return self._pull.poll(int(timeout_s * 1000))

    def close(self) -> None:
        """See `_Source`."""
        self._pull.close()
        self._pull.say_left_out()

    @property
    def at_end(self) -> bool:
        """See `_Source`."""
        return self._pull.at_end


class BatchStream(_Closed):
    """Batches of a topic; an asynchronous iterator. Made by `follow` and `batches`.

    It connects when the first batch is asked for. A task that is cancelled while it waits for a batch closes the stream, and is
    over when nothing of it is left; one that is cancelled at another place leaves that to the end of the ``async with`` block.
    """

    def __init__(self, opened: Callable[[], _Source], timeout_s: float | None) -> None:
        self._opened, self._timeout_s = opened, timeout_s
        self._source: _Source | None = None
        # One waits for records while the other closes.
        self._threads = _Threads(2, "stream")
        self._is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        last = time.monotonic()
        try:
            source = None if self._is_closed else await self._running_source()
            while source is not None and not self._is_closed:
                left = _WAIT_S if self._timeout_s is None else last + self._timeout_s - time.monotonic()
                batch = await self._threads.run(source.poll, min(max(left, 0.0), _WAIT_S))
                if batch is not None:
                    return batch
                if source.at_end or (self._timeout_s is not None and left <= 0):
                    break
        except asyncio.CancelledError:
            await self.aclose()
            raise
        raise StopAsyncIteration

    async def schema(self) -> pa.Schema:
        """Give the schema of the batches; connects where that has not happened yet."""
        return (await self._running_source()).schema

    @property
    def offsets(self) -> dict[int, int]:
        """Of `follow`: where each partition is read on, as `pylog_spark.client.BatchStream.offsets`; nothing before the first batch."""
        return self._source.offsets if isinstance(self._source, following.BatchStream) else {}

    async def _running_source(self) -> _Source:
        if self._source is None:
            await self._threads.run(self._open)
        assert self._source is not None
        return self._source

    def _open(self) -> None:
        self._source = self._opened()
        if self._is_closed:
            # Its task was cancelled meanwhile.
            self._source.close()

    async def aclose(self) -> None:
        """Close the connections, and end the threads. Iteration ends, also where another task waits in it."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._source is not None:
            await self._threads.run(self._source.close)
        await self._threads.end()


def follow(
    bootstrap_servers: str,
    topic: str,
    *,
    start: Place = "latest",
    timeout_s: float | None = None,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    config: Mapping[str, str] | None = None,
    **formats: Unpack[FormatOptions],
) -> BatchStream:
    """Follow a topic, as `pylog_spark.client.follow`. ``latest`` is where the topic ends when the first batch is asked for."""
    opened = functools.partial(
        following.follow,
        bootstrap_servers,
        topic,
        start=start,
        partitions=partitions,
        columns=columns,
        config=config,
        **formats,
    )
    return BatchStream(opened, timeout_s)


def batches(
    bootstrap_servers: str,
    topic: str,
    *,
    start: Place = "earliest",
    end: Place = "latest",
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    local_reads: bool = False,
    config: Mapping[str, str] | None = None,
    **formats: Unpack[FormatOptions],
) -> BatchStream:
    """Give what `pylog_spark.client.read_range` reads, batch by batch."""

    def opened() -> _Source:
        wanted = read_columns(columns, formats)
        settings = {**(config or {}), "bootstrap.servers": bootstrap_servers}
        spans = ranges.spans_of(settings, topic, partitions, start, end)
        return _Range(Pull(settings, spans, wanted, local_reads=local_reads), wanted.schema)

    return BatchStream(opened, None)


async def read_range(
    bootstrap_servers: str,
    topic: str,
    *,
    start: Place = "earliest",
    end: Place = "latest",
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    local_reads: bool = False,
    config: Mapping[str, str] | None = None,
    **formats: Unpack[FormatOptions],
) -> pa.Table:
    """Give what `pylog_spark.client.read_range` reads as a table, all of it in memory."""
    import pyarrow as pa

    async with batches(
        bootstrap_servers,
        topic,
        start=start,
        end=end,
        partitions=partitions,
        columns=columns,
        local_reads=local_reads,
        config=config,
        **formats,
    ) as stream:
        schema = await stream.schema()
        return pa.Table.from_batches([batch async for batch in stream], schema)
