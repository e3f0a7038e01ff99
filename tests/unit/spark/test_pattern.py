"""subscribePattern: Java's regular expressions, as far as Python's can say them, looked for in names."""

import pytest

from pylog_spark.offsets.pattern import PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("flights", "flights", True),
        ("flight", "flights", True),
        ("^flight$", "flights", False),
        ("flights.*", "flights-2013", True),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\Qa.b", "a.b", True),
        (r"(?<year>\d{4})-\k<year>", "2013-2013", True),
        (r"(?<year>\d{4})-\k<year>", "2013-2014", False),
        (r"\p{Lower}+", "abc", True),
        (r"^\p{Lower}+$", "aBc", False),
        (r"[\p{Upper}\d]+", "A1", True),
        (r"\P{Digit}+", "abc", True),
        (r"^\P{Digit}+$", "ab1", False),
        (r"\pL+", "ab", True),
        (r"a\.b\z", "a.b", True),
        (r"a\\b", "a\\b", True),
        (r"(?i)FLIGHTS", "flights", True),
        (r"a|b", "b", True),
        (r"(?<!x)ab", "ab", True),
        (r"^[^_].*", "__internal", False),
    ],
)
def test_a_pattern_is_found_as_javas_find_does(pattern: str, name: str, matches: bool) -> None:
    assert (compile_pattern(pattern).search(name) is not None) is matches


@pytest.mark.parametrize("pattern", ["a(b", r"\p{IsGreek}", "[a-z&&[^b]]", "[a[bc]]", r"\k", "*"])
def test_what_python_cannot_say_is_refused_and_not_misread(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)
