"""What the options of a query may make Spark run and open. Pure but for links that are followed.

Who writes a query need not be who started Spark: users of a Thrift server, of Spark Connect or of a notebook's SQL send options as text. So
functions, files with tokens and variables that an option names are taken only where the environment of Spark's driver lists them, as Kafka's
own clients ask a system property since CVE-2025-27817. Python workers have that environment from the driver's Java process, and no query
changes it.

=================================  ==================================================  ===========================================
variable, a list with commas       what options may name                               while the variable is not set
=================================  ==================================================  ===========================================
``PYLOG_ALLOWED_TOKEN_FUNCTIONS``  functions that give tokens, ``module:function``     none
``PYLOG_ALLOWED_FILES``            files, those in a folder, and URLs that begin so    no files with tokens, and all others
``PYLOG_ALLOWED_VARIABLES``        variables for ``clientRack=env:NAME``               those with the word RACK or ZONE
=================================  ==================================================  ===========================================

Not asked: a program's own calls of `pylog_spark.client` and `pylog_spark.lakehouse`, which could open and run everything itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from pylog_spark.errors import PylogError
from pylog_spark.login.endpoint import SETTING

FUNCTIONS, FILES, VARIABLES = (
    "PYLOG_ALLOWED_TOKEN_FUNCTIONS",
    "PYLOG_ALLOWED_FILES",
    "PYLOG_ALLOWED_VARIABLES",
)
_PROVIDER = "kafka.sasl.oauthbearer.token.provider"
_ENDPOINT = f"kafka.{SETTING}"
_JAAS = "kafka.sasl.jaas.config"
_RACKS = ("clientrack", "kafka.client.rack")
_VARIABLE = "env:"
#: Variables that hardly have a secret in them.
_OF_PLACES = re.compile(r"(^|_)(RACK|ZONE)(_|$)")
#: Options with the text of a schema, or @ and a file.
_SCHEMAS = ("keyschema", "valueschema")
#: Options with a folder or a URL.
_FOLDERS = ("path", "archive")
_LOCATION = ".location"
_IN_JAAS = re.compile(r'location\s*=\s*(?:"([^"\\]*)"|([^"\\\s;]+))', re.IGNORECASE)


def check_allowed(given: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    """Check what the options of a query name of this machine.

    Parameters
    ----------
    given : mapping of str to str
        As Spark delivers them; names in any case.
    environment : mapping of str to str
        The environment of Spark's driver.

    Raises
    ------
    PylogError
        One names what the environment does not allow.
    """
    for key, text in given.items():
        name, text = key.lower(), text.strip()
        if name == _PROVIDER and text and text not in _listed(environment, FUNCTIONS):
            raise _not_allowed(key, text, "a function to run", FUNCTIONS)
        if name == _ENDPOINT and text.startswith("file:") and not _is_within(_path(text), environment):
            raise _not_allowed(key, text, "a file with a token, which is sent away", FILES)
        if name in _RACKS and text.startswith(_VARIABLE):
            variable = text.removeprefix(_VARIABLE).strip()
            if not _OF_PLACES.search(variable) and variable not in _listed(environment, VARIABLES):
                raise _not_allowed(key, text, "a variable, which is sent to the brokers", VARIABLES)
        if FILES in environment:
            for file in _files(name, text):
                if not _is_within(file, environment):
                    raise _not_allowed(key, file or "what cannot be read", "a file or folder", FILES)


def _files(name: str, text: str) -> list[str]:
    """The files, folders and URLs that an option names; an empty one where it names some that cannot be told."""
    if name == _JAAS:
        found = [quoted or bare for quoted, bare in _IN_JAAS.findall(text)]
        return found if len(found) == text.lower().count("location") else [""]
    if name in _FOLDERS:
        return [_path(text)] if text else []
    if name in _SCHEMAS:
        return [text[1:]] if text.startswith("@") else []
    return [text] if name.endswith(_LOCATION) and text else []


def _path(text: str) -> str:
    """The path of a URL of this machine's files; any other text as it is."""
    return unquote(urlsplit(text).path) if text.startswith("file:") else text


def _is_within(file: str, environment: Mapping[str, str]) -> bool:
    """Whether a file, a folder or a URL is one of those that are listed, or in one."""
    for allowed in map(_path, _listed(environment, FILES)):
        if "://" in file or "://" in allowed:
            # A query says more than a place, and two dots another one.
            is_plain = not re.search(r"[?#]|(^|/|%2f)(\.|%2e){2}(/|%2f|$)", file, re.IGNORECASE)
            if is_plain and f"{file}/".startswith(allowed.rstrip("/") + "/"):
                return True
        # A path that is not whole is another one on each machine.
        elif os.path.isabs(file) and f"{os.path.realpath(file)}/".startswith(
            os.path.realpath(allowed).rstrip("/") + "/"
        ):
            return True
    return False


def _listed(environment: Mapping[str, str], variable: str) -> list[str]:
    return [each.strip() for each in environment.get(variable, "").split(",") if each.strip()]


def _not_allowed(key: str, text: str, what: str, variable: str) -> PylogError:
    return PylogError(
        "PYLOG_NOT_ALLOWED",
        f"The option {key} names {what}, {text}: options of a query may only where the environment of Spark's driver lists it in "
        f"{variable} (docs/security-clients.md).",
    )
