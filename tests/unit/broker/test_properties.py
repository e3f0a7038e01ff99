"""A server.properties file is read as Java reads it."""

import pytest

from pylog_spark.broker import properties
from pylog_spark.broker.setting import ConfigError


def test_comments_separators_continuations_and_escapes(tmp_path):
    (tmp_path / "server.properties").write_text(
        "# a comment\n! another\n\n  num.partitions = 4\nlog.dirs:/a\\=b\nlistener PLAINTEXT://h:1\n"
        "long=one,\\\n   two\nkey\\ with\\:blank=x\nempty=\nwindows=c:\\\\data\\tab\\u0041\nnum.partitions=5\nlast=1\\"
    )
    assert properties.read(str(tmp_path / "server.properties")) == [
        ("num.partitions", "4"),
        ("log.dirs", "/a=b"),
        ("listener", "PLAINTEXT://h:1"),
        ("long", "one,two"),
        ("key with:blank", "x"),
        ("empty", ""),
        ("windows", "c:\\data\tabA"),
        ("num.partitions", "5"),
        ("last", "1"),
    ]


@pytest.mark.parametrize("escape", ["\\uZZZZ", "\\u12", "\\u+123", "\\u"])
def test_an_escape_without_its_digits_is_one_sentence_with_file_and_line(tmp_path, escape):
    path = tmp_path / "server.properties"
    path.write_text(f"# first\nb=1,\\\n  2\r\na=x{escape}\n")
    with pytest.raises(ConfigError) as caught:
        properties.read(str(path))
    assert str(caught.value) == (
        f"{path}, line 4: {escape} is no character. Write four hexadecimal digits after \\u, or \\\\ for a backslash."
    )


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"missing\.properties cannot be read: No such file"):
        properties.read(str(tmp_path / "missing.properties"))
    (tmp_path / "latin").write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        properties.read(str(tmp_path / "latin"))
