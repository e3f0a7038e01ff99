"""A server.properties file is read as Java reads it."""

import pytest

from pylog_spark.broker import properties
from pylog_spark.broker.setting import ConfigError


def test_comments_separators_continuations_and_escapes():
    text = (
        "# a comment\n! another\n\n  num.partitions = 4\nlog.dirs:/a\\=b\nlistener PLAINTEXT://h:1\n"
        "long=one,\\\n   two\nkey\\ with\\:blank=x\nempty=\nwindows=c:\\\\data\\tab\\u0041\nlast=1\\"
    )
    assert list(properties.parse(text)) == [
        ("num.partitions", "4"),
        ("log.dirs", "/a=b"),
        ("listener", "PLAINTEXT://h:1"),
        ("long", "one,two"),
        ("key with:blank", "x"),
        ("empty", ""),
        ("windows", "c:\\data\tabA"),
        ("last", "1"),
    ]


@pytest.mark.parametrize("escape", ["\\uZZZZ", "\\u12", "\\u+123", "\\u"])
def test_an_escape_without_its_digits_is_one_sentence(tmp_path, escape):
    (tmp_path / "odd").write_text(f"a=x{escape}")
    with pytest.raises(ConfigError) as caught:
        properties.read(str(tmp_path / "odd"))
    assert str(caught.value).startswith(f"{escape} in the settings file is no character")
    assert "write \\\\ for a backslash" in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.properties cannot be read: No such file"):
        properties.read(str(tmp_path / "missing.properties"))
    (tmp_path / "latin").write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        properties.read(str(tmp_path / "latin"))
