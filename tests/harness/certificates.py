"""Certificates for tests: an authority, a server called localhost, a client, another authority that nobody trusts; as PEM, PKCS12 and JKS.

Made by openssl and keytool, which are not ours, as users make theirs.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

#: Of every store and encrypted key.
PASSWORD = "st0re-pa55word"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Certificates:
    """Files in a folder. A ``.pem`` has certificates, a ``.key`` a private key, a ``.both.pem`` a key and its certificates."""

    folder: Path

    def path(self, name: str) -> str:
        """The path of the file called `name`."""
        return str(self.folder / name)

    def text(self, name: str) -> str:
        """The text of the file called `name`."""
        return (self.folder / name).read_text()


def make(folder: Path) -> Certificates:
    """Make them all in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for authority in ("ca", "stranger"):
        _run(folder, "openssl", "req", "-x509", *_KEY, "-days", "30", "-subj", f"/CN=pylog test {authority}",
             "-keyout", f"{authority}.key", "-out", f"{authority}.pem")  # fmt: skip
    _issue(folder, "server", "/CN=localhost", "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth")
    _issue(folder, "elsewhere", "/CN=elsewhere", "subjectAltName=DNS:elsewhere.example\nextendedKeyUsage=serverAuth")
    _issue(folder, "client", "/O=pylog/CN=alice", "extendedKeyUsage=clientAuth")
    _run(folder, "openssl", "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", "client.key", "-out", "client.encrypted.key",
         "-passout", f"pass:{PASSWORD}")  # fmt: skip
    _run(folder, "openssl", "pkcs12", "-export", "-inkey", "client.key", "-in", "client.pem", "-certfile", "ca.pem",
         "-name", "alice", "-passout", f"pass:{PASSWORD}", "-out", "client.p12")  # fmt: skip
    _keytool(folder, "-importkeystore", "-srckeystore", "client.p12", "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD,
             "-destkeystore", "client.jks", "-deststoretype", "JKS", "-deststorepass", PASSWORD)  # fmt: skip
    for kind, name in (("JKS", "trust.jks"), ("PKCS12", "trust.p12")):
        _keytool(folder, "-importcert", "-noprompt", "-alias", "ca", "-file", "ca.pem", "-keystore", name,
                 "-storetype", kind, "-storepass", PASSWORD)  # fmt: skip
    return Certificates(folder)


def _issue(folder: Path, name: str, subject: str, extensions: str) -> None:
    (folder / f"{name}.ext").write_text(f"basicConstraints=CA:FALSE\n{extensions}\n")
    _run(folder, "openssl", "req", *_KEY, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
    _run(folder, "openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
         "-days", "30", "-extfile", f"{name}.ext", "-out", f"{name}.pem")  # fmt: skip
    (folder / f"{name}.both.pem").write_text(
        (folder / f"{name}.key").read_text() + (folder / f"{name}.pem").read_text()
    )


def _keytool(folder: Path, *arguments: str) -> None:
    _run(folder, "keytool", *arguments)


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
