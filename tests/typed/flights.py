"""Messages of Protobuf that several tests read and write, made by Google's library."""

from __future__ import annotations

import base64
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

F: Any = descriptor_pb2.FieldDescriptorProto


def descriptors() -> descriptor_pb2.FileDescriptorSet:
    """Of `flights.Flight` and, second in its file, `flights.Airport`; of `flights.Tree`, which holds itself."""
    file = descriptor_pb2.FileDescriptorProto(name="flights.proto", package="flights", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    flight = file.message_type.add(name="Flight")
    flight.field.add(name="id", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_INT64)
    flight.field.add(name="to", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_MESSAGE, type_name=".flights.Airport")
    flight.field.add(name="tags", number=3, label=F.LABEL_REPEATED, type=F.TYPE_STRING)
    at = ".google.protobuf.Timestamp"
    flight.field.add(name="at", number=4, label=F.LABEL_OPTIONAL, type=F.TYPE_MESSAGE, type_name=at)
    entry = flight.nested_type.add(name="SeatsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_INT32)
    entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    seats = ".flights.Flight.SeatsEntry"
    flight.field.add(name="seats", number=5, label=F.LABEL_REPEATED, type=F.TYPE_MESSAGE, type_name=seats)
    flight.field.add(name="offset", number=6, label=F.LABEL_OPTIONAL, type=F.TYPE_UINT32)
    airport = file.message_type.add(name="Airport")
    airport.field.add(name="code", number=1, label=F.LABEL_OPTIONAL, type=F.TYPE_STRING)
    tree = file.message_type.add(name="Tree")
    tree.field.add(name="trees", number=1, label=F.LABEL_REPEATED, type=F.TYPE_MESSAGE, type_name=".flights.Tree")
    found = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(found.file.add())
    found.file.append(file)
    return found


SET = descriptors()
POOL = descriptor_pool.DescriptorPool()
for _file in SET.file:
    POOL.Add(_file)
Flight: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName("flights.Flight"))
Airport: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName("flights.Airport"))
TYPED = {
    "valueFormat": "protobuf",
    "valueSchema": base64.b64encode(SET.SerializeToString()).decode(),
    "valueMessage": "flights.Flight",
}


def flight(**fields: Any) -> bytes:
    return bytes(Flight(**fields).SerializeToString())
