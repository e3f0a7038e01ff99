"""Reading a Java properties file such as Kafka's server.properties. `javaproperties` reads the format; errors become ours.

The file is UTF-8, as Kafka reads it. A name that is given twice stays twice, in order: who takes the settings decides.
"""

from javaproperties import InvalidUEscapeError, KeyValue, parse

from pylog_spark.broker.setting import ConfigError


def read(path: str) -> list[tuple[str, str]]:
    """Read the (name, value) pairs of the file at `path`, in order.

    Raises
    ------
    ConfigError
        When the file cannot be read, is not UTF-8, or has a ``\\u`` without four hexadecimal digits, which Java refuses, too.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(f"The settings file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"The settings file {path} is not UTF-8 text: {error.reason}.") from error
    pairs, line = [], 1
    try:
        for element in parse(text):
            if isinstance(element, KeyValue):
                pairs.append((element.key, element.value))
            line += element.source.count("\n")
    except InvalidUEscapeError as error:
        # A setting that goes on over several lines is named by its first one.
        raise ConfigError(
            f"{path}, line {line}: {error.escape} is no character. Write four hexadecimal digits after \\u, or \\\\ for a backslash."
        ) from error
    return pairs
