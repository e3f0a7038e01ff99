"""Who makes tokens, for tests: a key of its own, its JWKS, and tokens signed with it, by openssl and the standard library."""

import base64
import json
import subprocess
import time
from pathlib import Path
from typing import Any


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Issuer:
    """An issuer with an RSA key in `folder`."""

    def __init__(self, folder: Path, kid: str = "k1") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.kid = kid
        self._key = folder / f"{kid}.key"
        _run("openssl", "genrsa", "-out", str(self._key), "2048")
        modulus = _run("openssl", "rsa", "-in", str(self._key), "-noout", "-modulus").decode().strip().partition("=")[2]
        self.jwk = {"kty": "RSA", "kid": kid, "use": "sig", "n": _encoded(bytes.fromhex(modulus)), "e": "AQAB"}

    def jwks(self) -> str:
        """Its public key as a JWKS."""
        return json.dumps({"keys": [self.jwk]})

    def token(
        self, user: str = "robot", lasts_s: float = 3600, header: dict[str, Any] | None = None, **claims: object
    ) -> str:
        """A token of `user`; `header` and `claims` go over what it says otherwise."""
        now = int(time.time())
        parts = [
            {"alg": "RS256", "kid": self.kid, "typ": "JWT", **(header or {})},
            {"sub": user, "iat": now - 1, "exp": now + lasts_s, **claims},
        ]
        message = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        signature = _run("openssl", "dgst", "-sha256", "-sign", str(self._key), stdin=message.encode())
        return f"{message}.{_encoded(signature)}"


def _run(*command: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout
