"""Makes a topic of a file of lines (`pylog_spark.archive.lines`): the same records in the same partitions and order, with their times and headers, at new offsets.

Nothing is remembered: an import that was cut goes on behind as many records as each partition has. So nobody else may write to the topic
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pylog_spark.archive.lines import LinesReader
from pylog_spark.archive.restoring import Report, RestoreOptions, make_topic
from pylog_spark.client.admin import Admin
from pylog_spark.client.errors import LogError
from pylog_spark.client.places import bounds_of
from pylog_spark.client.producer import Producer
from pylog_spark.mirror.topics import Topic, read_topics

#: Records keep the times of the file.
_TIMES = {"message.timestamp.type": "CreateTime"}


def import_lines(
    settings: Mapping[str, str],
    reader: LinesReader,
    options: RestoreOptions,
    resume: bool,
    say: Callable[[str], None],
    report: Report,
) -> tuple[str, int]:
    """Make the topic of a file of lines, or go on with it.

    Parameters
    ----------
    settings : mapping of str to str
        The client's settings, with ``bootstrap.servers``.
    reader : LinesReader
        The file.
    options : RestoreOptions
        What the topic is.
    resume : bool
        Whether the topic is there, from an import of this file that was cut.
    say, report : callable
        As of `pylog_spark.archive.restoring.restore`.

    Returns
    -------
    tuple of str and int
        The topic's name, and how many records it has got now.

    Raises
    ------
    LogError
        The topic is there without `resume`, or is another one, the file is damaged, or brokers do not answer. What was imported stays.
    OSError
        The file cannot be read.
    """
    servers, beginning = settings["bootstrap.servers"], reader.beginning
    name = options.topic or beginning.topic
    with Admin(servers, settings) as admin:
        present = _present(admin, name, beginning.partitions, resume)
        given = replace(options, configs={**_TIMES, **options.configs})
        make_topic(admin, name, beginning, given, present, {}, say)
        numbers = [each.partition for each in beginning.ranges]
        bounds = bounds_of(admin, [(name, number) for number in numbers])
    left = {}
    for number in numbers:
        found = bounds[name, number]
        if found.start:
            sentence = f"Partition {number} of {name} has lost its first {found.start} records: delete the topic, and import anew."
            raise LogError("OFFSET_OUT_OF_RANGE", sentence)
        left[number] = found.end
    return name, _fill(settings, name, reader, left, report)


def _present(admin: Admin, name: str, partitions: int, resume: bool) -> Topic | None:
    """The topic, when it is there and may be gone on with."""
    described = admin.topics([name])[0]
    if described.error:
        return None
    if not resume:
        sentence = f"Topic {name} is there: give another name with --topic, or --resume when it is from an import of this file that was cut."
        raise LogError("TOPIC_ALREADY_EXISTS", sentence)
    if len(described.partitions) != partitions:
        sentence = f"Topic {name} has {len(described.partitions)} partitions and the file {partitions}: it is from no import of this file."
        raise LogError("INVALID_ARGUMENT", sentence)
    return read_topics(admin, [described])[name]


def _fill(settings: Mapping[str, str], name: str, reader: LinesReader, there: dict[int, int], report: Report) -> int:
    """Append the records behind those that are `there` in each partition; how many those were."""
    ranges = {each.partition: each for each in reader.beginning.ranges}
    whole = sum(each.end - each.start for each in ranges.values())
    done, appended = 0, 0
    positions = {number: each.start for number, each in ranges.items()}
    with Producer(settings["bootstrap.servers"], name, settings) as producer:
        for piece in reader.pieces():
            passed = min(there[piece.partition], len(piece.records))
            there[piece.partition] -= passed
            for record in piece.records[passed:]:
                producer.send(
                    record.value,
                    record.key,
                    partition=record.partition,
                    timestamp_ms=record.timestamp_ms if record.timestamp_ms >= 0 else None,
                    headers=record.headers,
                )
            producer.flush()
            appended += len(piece.records) - passed
            done += piece.records[-1].offset + 1 - positions[piece.partition]
            positions[piece.partition] = piece.records[-1].offset + 1
            report(done, whole)
    if any(there.values()):
        number = next(number for number, more in there.items() if more)
        sentence = f"Partition {number} of {name} has {there[number]} records more than the file: it is from no import of this file, or somebody else has written to it."
        raise LogError("INVALID_ARGUMENT", sentence)
    return appended
