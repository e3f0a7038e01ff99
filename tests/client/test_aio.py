"""`pylog_spark.client.aio`: the same as without asyncio, and what is left of a task that was cancelled: nothing."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from pylog_spark.client import Admin, LogError, aio, read_range
from tests.client.support import values_batch, write
from tests.harness.waiting import until

pytestmark = pytest.mark.cluster


_TASKS = Path("/proc/self/task")
#: Threads that ran before the test, which are of something else in this process.
_others: set[str] = set()


@pytest.fixture(autouse=True)
def _of_others() -> None:
    _others.clear()
    _others.update(os.listdir(_TASKS))


def threads() -> list[str]:
    """The threads of the test's objects, and the native ones of readers, that run now."""
    running = [each.name for each in threading.enumerate() if str(each.native_id) not in _others]
    for task in set(os.listdir(_TASKS)) - _others:
        # It may have ended meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            running.append((_TASKS / task / "comm").read_text().strip())
    return [name for name in running if name.startswith("pylog")]


@pytest.fixture
def topic(config: dict[str, str], new_topic: Callable[..., str]) -> str:
    """Two partitions with 500 records each."""
    name = new_topic(2)
    for partition in (0, 1):
        values = [b"%d-%d" % (partition, number) for number in range(500)]
        write(config, name, values_batch(values, partition=pa.array([partition] * 500, pa.int32())))
    return name


def test_a_range_is_what_it_is_without_asyncio(config: dict[str, str], topic: str) -> None:
    servers = config["bootstrap.servers"]

    async def read() -> tuple[pa.Table, list[pa.RecordBatch], pa.Table]:
        async with aio.batches(servers, topic, config=config) as stream:
            found = [batch async for batch in stream]
        empty = await aio.read_range(servers, topic, start="latest", columns=["key"], config=config)
        return await aio.read_range(servers, topic, start=3, end={0: 9}, config=config), found, empty

    table, batches, empty = asyncio.run(read())
    assert table == read_range(servers, topic, start=3, end={0: 9}, config=config).read_all()
    assert pa.Table.from_batches(batches) == read_range(servers, topic, config=config).read_all()
    assert (empty.num_rows, empty.column_names) == (0, ["key"])
    until(lambda: not threads(), lambda: f"no thread is left: {threads()}")


def test_several_readers_and_a_producer_share_a_loop_and_the_order_of_a_partition_is_kept(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    servers, name = config["bootstrap.servers"], new_topic(2)

    async def read(partition: int) -> list[bytes]:
        values: list[bytes] = []
        async with aio.follow(servers, name, start="earliest", partitions=[partition], config=config) as stream:
            async for batch in stream:
                values += batch["value"].to_pylist()
                if len(values) == 300:
                    break
            assert stream.offsets == {partition: 300}
        return values

    async def produce() -> int:
        async with aio.Producer(servers, name, config) as producer:
            for number in range(0, 600, 100):
                rows = [b"%d" % at for at in range(number, number + 100)]
                places = pa.array([at % 2 for at in range(number, number + 100)], pa.int32())
                await producer.send_all(values_batch(rows, partition=places))
                await asyncio.sleep(0)
            return (await producer.flush()).records

    async def all_at_once() -> list[object]:
        return list(await asyncio.gather(read(0), read(1), produce()))

    even, odd, written = asyncio.run(all_at_once())
    assert even == [b"%d" % at for at in range(0, 600, 2)]
    assert odd == [b"%d" % at for at in range(1, 600, 2)]
    assert written == 600
    until(lambda: not threads(), lambda: f"no thread is left: {threads()}")


def test_a_task_that_is_cancelled_while_it_waits_leaves_no_thread_and_no_connection(
    config: dict[str, str], topic: str
) -> None:
    async def cancelled_at(batches: int) -> None:
        has_read = asyncio.Event()

        async def endless() -> None:
            seen = 0
            if batches == 0:
                has_read.set()
            async for _ in aio.follow(config["bootstrap.servers"], topic, start="earliest", config=config):
                seen += 1
                if seen == batches:
                    has_read.set()

        task = asyncio.create_task(endless())
        await has_read.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    for batches in (0, 1, 2):
        asyncio.run(cancelled_at(batches))
        until(lambda: not threads(), lambda: f"no thread is left: {threads()}")


def test_a_time_limit_ends_a_stream_and_so_does_closing_it_in_another_task(config: dict[str, str], topic: str) -> None:
    servers = config["bootstrap.servers"]

    async def limited() -> None:
        async with aio.follow(servers, topic, timeout_s=0.2, config=config) as stream:
            assert [batch async for batch in stream] == []
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(aio.follow(servers, topic, config=config)), 0.3)
        stream = aio.follow(servers, topic, config=config)
        reading = asyncio.create_task(collected(stream))
        await stream.schema()
        await stream.aclose()
        assert await reading == []
        assert await collected(stream) == []

    async def collected(stream: aio.BatchStream) -> list[pa.RecordBatch]:
        return [batch async for batch in stream]

    asyncio.run(limited())
    until(lambda: not threads(), lambda: f"no thread is left: {threads()}")


def test_requests_of_an_administrator_are_awaited_side_by_side(
    config: dict[str, str], new_topic: Callable[..., str]
) -> None:
    names = [new_topic() for _ in range(3)]

    async def asked() -> None:
        async with aio.Admin(config["bootstrap.servers"], config) as admin:
            described = await asyncio.gather(*map(admin.topic, names * 4))
            assert [each.name for each in described] == names * 4
            assert len([name for name in threads() if "admin" in name]) <= aio.ADMIN_THREADS
            with pytest.raises(LogError, match="does not exist"):
                await admin.topic("absent")
            offsets = await admin.offsets([(names[0], 0, -1)])
            assert offsets[0].offset == 0

    asyncio.run(asked())
    until(lambda: not threads(), lambda: f"no thread is left: {threads()}")


def test_every_request_of_an_administrator_can_be_awaited() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(aio.Admin) == public(Admin) - {"close"} | {"aclose"}
    for name in public(Admin) - {"close"}:
        ours, theirs = getattr(aio.Admin, name), getattr(Admin, name)
        assert (ours.__doc__, inspect.signature(ours)) == (theirs.__doc__, inspect.signature(theirs))


def test_what_cannot_be_read_is_the_same_error(config: dict[str, str], topic: str) -> None:
    with pytest.raises(LogError, match="has no partition 7"):
        asyncio.run(aio.read_range(config["bootstrap.servers"], topic, partitions=[7], config=config))
    with pytest.raises(LogError, match="no column 'vlue'"):
        asyncio.run(aio.read_range(config["bootstrap.servers"], topic, columns=["vlue"], config=config))
    until(lambda: not threads(), lambda: f"no thread is left: {threads()}")
