"""`subscribePattern`: a regular expression in Java's syntax, searched in topic names by Python's `re`.

Translated: named groups ``(?<n>...)`` and ``\\k<n>``, quoting ``\\Q...\\E``, POSIX classes ``\\p{Alpha}`` and ``\\P{..}``,
``\\h``, ``\\z``, ``\\Z``. Refused, because `re` would give them another meaning: class intersection ``[a&&b]``, nested classes, other
``\\p{..}``, and all else that `re` does not know (before Python 3.11 also possessive quantifiers and atomic groups).
"""

from __future__ import annotations

import re

_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9a-fA-F",
    "ASCII": r"\x00-\x7f",
    "L": "a-zA-Z",
    "N": "0-9",
}
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\(?P<sign>[pP])(?:\{(?P<long>\w+)\}|(?P<short>\w))|\\(?P<escape>.)|\(\?<(?P<group>[A-Za-z]\w*)>|(?P<other>.)",
    re.DOTALL,
)
_ESCAPES = {"h": r"[ \t]", "z": r"\Z", "Z": r"\Z"}


class PatternError(ValueError):
    """A pattern that cannot be used; the argument is one sentence."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a Java pattern; use its ``search``, as Spark's connector uses Java's ``find``.

    Raises
    ------
    PatternError
        When Python cannot express it.
    """
    try:
        # Topic names are ASCII, and Java's \\w and \\d are too unless asked otherwise.
        return re.compile(_translate(text), re.ASCII)
    except re.error as error:
        raise PatternError(f"{text!r} is not a regular expression that pylog can use: {error}") from None


def _translate(text: str) -> str:
    parts: list[str] = []
    in_class = False
    position = 0
    while token := _TOKEN.match(text, position):
        position = token.end()
        if token["quoted"] is not None:
            parts.append(re.escape(token["quoted"]))
        elif token["sign"]:
            parts.append(_posix(text, token["sign"], token["long"] or token["short"], in_class))
        elif token["escape"]:
            parts.append(_escape(text, token, in_class))
            position += len(_back_reference(text, position)) if token["escape"] == "k" else 0
        elif token["group"]:
            parts.append(f"(?P<{token['group']}>")
        else:
            in_class = _class_state(text, position, token["other"], in_class)
            parts.append(token["other"])
    return "".join(parts)


def _escape(text: str, token: re.Match[str], in_class: bool) -> str:
    letter = token["escape"]
    if letter == "k":
        return f"(?P={_back_reference(text, token.end())[1:-1]})"
    if in_class and letter == "h":
        return r" \t"
    return _ESCAPES.get(letter, token[0])


def _back_reference(text: str, position: int) -> str:
    found = re.compile(r"<[A-Za-z]\w*>").match(text, position)
    if found is None:
        raise PatternError(f"{text!r}: \\k needs a group name in angle brackets")
    return found[0]


def _class_state(text: str, position: int, character: str, in_class: bool) -> bool:
    if not in_class:
        return character == "["
    if character == "[" or (character == "&" and text[position : position + 1] == "&"):
        raise PatternError(f"{text!r}: classes inside classes and && are not supported; write the class out")
    return character != "]"


def _posix(text: str, sign: str, name: str, in_class: bool) -> str:
    members = _CLASSES.get(name)
    if members is None or (sign == "P" and in_class):
        raise PatternError(f"{text!r}: \\{sign}{{{name}}} is not supported here; write the characters out")
    if in_class:
        return members
    return f"[{'^' if sign == 'P' else ''}{members}]"
