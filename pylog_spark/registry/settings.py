"""The settings of a client of a schema registry, under the names that Confluent's serializers have for them. Pure but for the files
that it opens.

=========================================  ==========================================================================
setting                                    what it says
=========================================  ==========================================================================
``basic.auth.credentials.source``          ``USER_INFO``: `basic.auth.user.info`; ``URL``: a user in the URL
``basic.auth.user.info``                   ``USER:PASSWORD``
``bearer.auth.credentials.source``         ``STATIC_TOKEN``
``bearer.auth.token``                      the token
``ssl.truststore.location``, ``.type``     certificates to trust, a PEM file; without it those of the system
``ssl.truststore.certificates``            the same, as text
``ssl.keystore.location``, ``.type``       the client's own certificate with its key, a PEM file; ``ssl.key.password``
``ssl.endpoint.identification.algorithm``  empty: the server's name is not checked
``request.timeout.ms``                     for one answer, connecting included
=========================================  ==========================================================================

Each may begin with ``schema.registry.``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog_spark.errors import PylogError

if TYPE_CHECKING:
    import ssl

PREFIX = "schema.registry."
_SOURCE, _USER_INFO = "basic.auth.credentials.source", "basic.auth.user.info"
_BEARER_SOURCE, _TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
_CHECKED_NAME = "ssl.endpoint.identification.algorithm"
_TIMEOUT = "request.timeout.ms"
_DEFAULTS = {
    _SOURCE: "",
    _USER_INFO: "",
    _BEARER_SOURCE: "",
    _TOKEN: "",
    "ssl.truststore.location": "",
    "ssl.truststore.type": "PEM",
    "ssl.truststore.certificates": "",
    "ssl.keystore.location": "",
    "ssl.keystore.type": "PEM",
    "ssl.key.password": "",
    _CHECKED_NAME: "https",
    _TIMEOUT: "10000",
}
#: Every setting, without the prefix.
NAMES = tuple(_DEFAULTS)


@dataclass(frozen=True)
class RegistrySettings:
    """The settings of a client.

    Attributes
    ----------
    authorization : str or None
        The header of that name, None without a login and where each URL has its own user.
    timeout_s : float
        For one answer.
    """

    authorization: str | None
    timeout_s: float
    _given: Mapping[str, str]

    def context(self) -> ssl.SSLContext:
        """What HTTPS needs. Raises `PylogError` when a file cannot be used."""
        # Each process that reads or writes loads this module, and few of them ask a registry.
        import ssl

        given = self._given
        try:
            location, certificates = given["ssl.truststore.location"], given["ssl.truststore.certificates"]
            context = ssl.create_default_context(cafile=location or None, cadata=certificates or None)
            if given["ssl.keystore.location"]:
                password = given["ssl.key.password"]
                context.load_cert_chain(given["ssl.keystore.location"], password=lambda: password)
        except (OSError, ValueError) as error:
            raise _refused(
                f"The certificates for the schema registry cannot be used ({error}); "
                "ssl.truststore.location and ssl.keystore.location must be PEM files."
            ) from None
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = bool(given[_CHECKED_NAME])
        return context


def read_settings(given: Mapping[str, str]) -> RegistrySettings:
    """Read the settings. Raises `PylogError` for one that is unknown or cannot be used."""
    known = {name.removeprefix(PREFIX): value.strip() for name, value in given.items()}
    for name in known:
        if name not in _DEFAULTS:
            raise _refused(f"{name} is no setting of a schema registry's client: it has {', '.join(NAMES)}.")
    values = {**_DEFAULTS, **known}
    for store in ("ssl.truststore.type", "ssl.keystore.type"):
        if values[store].upper() != "PEM":
            raise _refused(f"{store}={values[store]} is refused: the client of a schema registry reads PEM alone.")
    timeout = values[_TIMEOUT]
    if not (timeout.isascii() and timeout.isdigit() and 0 < int(timeout) < 2**31):
        raise _refused(f"{_TIMEOUT}={timeout} is refused: it must be a number of milliseconds.")
    return RegistrySettings(_authorization(values), int(timeout) / 1000, values)


def basic(user_info: str) -> str:
    """The header Authorization for ``USER:PASSWORD``."""
    return f"Basic {base64.b64encode(user_info.encode()).decode()}"


def _authorization(values: Mapping[str, str]) -> str | None:
    source, bearer = values[_SOURCE].upper(), values[_BEARER_SOURCE].upper()
    if source not in ("", "URL", "USER_INFO"):
        raise _refused(f"{_SOURCE}={source} is refused: it must be USER_INFO or URL.")
    if bearer not in ("", "STATIC_TOKEN"):
        raise _refused(f"{_BEARER_SOURCE}={bearer} is refused: it must be STATIC_TOKEN.")
    if source and bearer:
        raise _refused(f"{_SOURCE} and {_BEARER_SOURCE} are both given: give only one of them.")
    if bearer or values[_TOKEN]:
        if not values[_TOKEN] or values[_USER_INFO]:
            raise _refused(f"A login with a token needs {_TOKEN}, and has no {_USER_INFO}.")
        return f"Bearer {values[_TOKEN]}"
    if source == "USER_INFO" or values[_USER_INFO]:
        if ":" not in values[_USER_INFO]:
            raise _refused(f"{_USER_INFO} is refused: it must be USER:PASSWORD.")
        return basic(values[_USER_INFO])
    return None


def _refused(sentence: str) -> PylogError:
    return PylogError("PYLOG_INVALID_OPTION", sentence)
