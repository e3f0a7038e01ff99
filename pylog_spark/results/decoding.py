"""Documents of the native half become dataclasses here, and nowhere else.

A document consists of JSON's values in Python: dict, list, str, int, float, bool, None. It fits a class when it has exactly the
class's fields, each with a value of the field's type; anything else means that the two halves are of different builds, and is
a `DocumentError` that names the class and the field. The class's annotations are the whole description of a document. Pure;
thread-safe.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

Decoded = TypeVar("Decoded")

#: Takes a value and gives the field's; raises `_DoesNotFit`.
_Decoder = Callable[[object], object]

#: The kind of every `DocumentError`.
MISMATCH = "MISMATCHED_BUILDS"


class DocumentError(Exception):
    """A document does not fit its class: the two halves are of different builds. `args == (kind, message)`, as `NativeError`'s."""


class _DoesNotFit(Exception):
    """What is wrong with a value."""


def decoded(kind: type[Decoded], document: object) -> Decoded:
    """Make a `kind` of a document.

    Parameters
    ----------
    kind : type
        A dataclass of this package.
    document : object
        A dict with exactly its fields.

    Raises
    ------
    DocumentError
        A field is missing, unknown or of another type.
    """
    try:
        found = _decoder(kind)(document)
    except _DoesNotFit as error:
        sentence = (
            f"The native module gave a document that is no {kind.__name__}, {error}: the two halves of pylog-spark are of different "
            "builds; install it again."
        )
        raise DocumentError(MISMATCH, sentence) from None
    assert isinstance(found, kind)
    return found


def all_decoded(kind: type[Decoded], documents: Iterable[object]) -> list[Decoded]:
    """Make a `kind` of each of `documents`; see `decoded`."""
    return [decoded(kind, document) for document in documents]


#: The decoder of each type that a class or a field has.
_known: dict[object, _Decoder] = {}


def _decoder(kind: object) -> _Decoder:
    """Give the decoder of the type `kind`, which is made once for each type."""
    decode = _known.get(kind)
    if decode is None:
        decode = _known[kind] = _new_decoder(kind)
    return decode


def _new_decoder(kind: object) -> _Decoder:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _optional(arguments)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return _sequence(_decoder(arguments[0]))
    if origin is dict:
        return _mapping(_decoder(arguments[0]), _decoder(arguments[1]))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return _named_tuple(kind)
    if kind in (str, int, float, bool):
        return _scalar(kind)
    raise TypeError(f"a document has no values of type {kind}")


def _scalar(kind: object) -> _Decoder:
    def scalar(value: object) -> object:
        # Not isinstance: a bool is no int here.
        if type(value) is not kind:
            raise _DoesNotFit(f"{value!r} is no {getattr(kind, '__name__', kind)}")
        return value

    return scalar


def _optional(arguments: tuple[object, ...]) -> _Decoder:
    (kind,) = (argument for argument in arguments if argument is not types.NoneType)
    decode = _decoder(kind)
    return lambda value: None if value is None else decode(value)


def _sequence(decode: _Decoder) -> _Decoder:
    def sequence(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _DoesNotFit(f"{value!r} is no list")
        return tuple([decode(item) for item in value])

    return sequence


def _mapping(decode_key: _Decoder, decode_value: _Decoder) -> _Decoder:
    def mapping(value: object) -> object:
        if not isinstance(value, dict):
            raise _DoesNotFit(f"{value!r} is no object")
        return {decode_key(key): decode_value(item) for key, item in value.items()}

    return mapping


def _named_tuple(kind: type[tuple[object, ...]]) -> _Decoder:
    decoders = [_decoder(hint) for hint in typing.get_type_hints(kind).values()]

    def named_tuple(value: object) -> object:
        if not isinstance(value, list | tuple) or len(value) != len(decoders):
            raise _DoesNotFit(f"{value!r} is no {kind.__name__}")
        return tuple.__new__(kind, [decode(item) for decode, item in zip(decoders, value, strict=True)])

    return named_tuple


def _dataclass(kind: type) -> _Decoder:
    hints = typing.get_type_hints(kind)
    decoders = {field.name: _decoder(hints[field.name]) for field in dataclasses.fields(kind)}

    def dataclass(value: object) -> object:
        if not isinstance(value, dict):
            raise _DoesNotFit(f"{value!r} is no object")
        if value.keys() != decoders.keys():
            raise _DoesNotFit(_difference(value, decoders))
        fields: dict[str, object] = {}
        try:
            for name, decode in decoders.items():
                fields[name] = decode(value[name])
        except _DoesNotFit as error:
            raise _DoesNotFit(f"in {name!r} {error}") from None
        made: object = kind(**fields)
        return made

    return dataclass


def _difference(value: Mapping[str, object], decoders: Mapping[str, _Decoder]) -> str:
    missing = sorted(decoders.keys() - value.keys())
    return (
        f"it lacks {missing[0]!r}"
        if missing
        else f"it has {sorted(value.keys() - decoders.keys())[0]!r}, which is not known"
    )
