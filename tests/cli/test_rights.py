"""``pylog user``, ``pylog quota``, ``pylog broker format``: what is done, what is refused, and that no password is shown."""

import json
import os
import pty
import re
import subprocess

import pytest

from pylog_spark.testing import LocalBroker
from tests.harness.ports import nowhere
from tests.harness.security import AUTHORIZER

SECRET = "swordfish"


def test_a_user_is_created_listed_and_deleted(pylog, environment):
    env = {**environment, "PYLOG_USER_PASSWORD": SECRET}
    created = pylog("user", "create", "alice", env=env)
    sentence = "User alice can log in by SCRAM-SHA-256 and SCRAM-SHA-512.\n"
    assert (created.returncode, created.stdout, created.stderr) == (0, sentence, "")
    pylog("user", "create", "bob", "-m", "scram-sha-512", "--iterations", "4096", env=env)
    listed = pylog("user", "list").stdout
    assert re.search(r"^alice +SCRAM-SHA-256 +8192$", listed, re.MULTILINE)
    assert re.search(r"^bob +SCRAM-SHA-512 +4096$", listed, re.MULTILINE)
    assert json.loads(pylog("user", "list", "--json").stdout)[1] == {
        "name": "bob",
        "credentials": [{"iterations": 4096, "mechanism": "SCRAM-SHA-512"}],
    }
    would = pylog("user", "delete", "alice", "--mechanism", "SCRAM-SHA-256").stdout
    assert would == "Would delete SCRAM-SHA-256 of user alice. Add --execute to do it.\n"
    one = pylog("user", "delete", "alice", "--mechanism", "SCRAM-SHA-256", "--execute").stdout
    assert one == "User alice can no longer log in by SCRAM-SHA-256.\n"
    assert pylog("user", "delete", "alice", "--execute").stdout == "User alice is deleted.\n"
    gone = pylog("user", "delete", "alice", "--execute")
    assert (gone.returncode, gone.stderr.count("\n")) == (1, 1)
    assert "does not exist: alice" in gone.stderr
    pylog("user", "delete", "bob", "--execute")
    assert pylog("user", "list").stderr == "There are no users.\n"


def test_a_password_comes_from_a_file_or_standard_input(pylog, tmp_path):
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\nnot this\n")
    assert pylog("user", "create", "carol", "--password-file", str(file)).returncode == 0
    assert pylog("user", "create", "carol", "--password-file", "-", stdin=f"{SECRET}\n").returncode == 0
    for words, stdin in (
        (("--password-file", "-"), ""),
        (("--password-file", str(tmp_path / "none")), ""),
        ((), SECRET),
    ):
        refused = pylog("user", "create", "carol", *words, stdin=stdin)
        assert refused.returncode in (1, 2)
        assert SECRET not in refused.stdout + refused.stderr
    pylog("user", "delete", "carol", "--execute")


def test_a_terminal_is_asked_twice_and_shows_nothing(pylog, environment, command):
    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        [*command, "user", "create", "dave"], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = ""
    for prompt in ("Password of dave: ", "Repeat for confirmation: "):
        while prompt not in shown:
            shown += os.read(ours, 1000).decode()
        os.write(ours, f"{SECRET}\n".encode())
    while "can log in" not in shown:
        shown += os.read(ours, 1000).decode()
    assert asking.wait(60) == 0
    os.close(ours)
    assert SECRET not in shown
    pylog("user", "delete", "dave", "--execute")


def test_an_invalid_user_is_refused_with_a_sentence(pylog, environment):
    refused = pylog("user", "create", "", env={**environment, "PYLOG_USER_PASSWORD": SECRET})
    assert (refused.returncode, refused.stderr) == (1, "Error: Username must not be empty.\n")
    assert pylog("user", "create", "x", "--iterations", "100").returncode == 2


def test_quotas_are_set_listed_and_removed(pylog):
    done = pylog("quota", "set", "producer_byte_rate=1048576", "request_percentage=12.5", "--user", "alice")
    assert (done.returncode, done.stdout) == (0, "Set producer_byte_rate, request_percentage of user alice.\n")
    pylog("quota", "set", "consumer_byte_rate=1000", "--user", "alice", "--client-id", "c")
    pylog("quota", "set", "consumer_byte_rate=2000", "--default-user")
    pylog("quota", "set", "connection_creation_rate=5", "--ip", "203.0.113.7")
    listed = pylog("quota", "list").stdout
    for line in (
        r"user alice +producer_byte_rate +1048576",
        r"user alice +request_percentage +12\.5",
        r"user alice, client-id c +consumer_byte_rate +1000",
        r"default user +consumer_byte_rate +2000",
        r"ip 203\.0\.113\.7 +connection_creation_rate +5",
    ):
        assert re.search(rf"^{line}$", listed, re.MULTILINE), listed
    assert len(json.loads(pylog("quota", "list", "--user", "alice", "--json").stdout)) == 2
    missing = pylog("quota", "remove", "consumer_byte_rate", "--user", "alice")
    assert (missing.returncode, missing.stderr) == (1, "Error: user alice has no quota consumer_byte_rate.\n")
    assert pylog("quota", "remove", "--user", "alice").stdout == (
        "Removed producer_byte_rate, request_percentage of user alice.\n"
    )
    for whose in (("--user", "alice", "--client-id", "c"), ("--default-user",), ("--ip", "203.0.113.7")):
        assert pylog("quota", "remove", *whose).returncode == 0
    assert pylog("quota", "list").stderr == "There are no quotas.\n"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("producer_byte_rate=1",), 2, "Missing --user, --client-id or --ip"),
        (("producer_byte_rate", "--user", "a"), 2, "'producer_byte_rate' is not QUOTA=NUMBER"),
        (("producer_byte_rate=1", "--user", "a", "--default-user"), 2, "exclude each other"),
        (("producer_byte_rate=0", "--user", "a"), 1, "Quota producer_byte_rate must be greater than 0"),
        (("speed=1", "--user", "a"), 1, "Invalid configuration key speed"),
        (("producer_byte_rate=1", "--ip", "10.0.0.1"), 1, "Invalid configuration key producer_byte_rate"),
    ],
)
def test_invalid_quotas_are_refused_with_a_sentence(pylog, words, code, sentence):
    refused = pylog("quota", "set", *words)
    assert refused.returncode == code
    assert sentence in refused.stderr


def test_the_first_user_is_made_before_the_broker_starts_and_logs_in(pylog, tmp_path, environment):
    data, file = tmp_path / "data", tmp_path / "password"
    file.write_text(SECRET)
    words = (
        "broker",
        "format",
        "--data-dir",
        str(data),
        "--add-scram",
        "SCRAM-SHA-512=[name=admin]",
        "--password-file",
        str(file),
    )
    made = pylog(*words)
    assert (made.returncode, made.stdout) == (0, "User admin can log in by SCRAM-SHA-512.\n")
    assert pylog(*words).stdout == "User admin can already log in by SCRAM-SHA-512; nothing was changed.\n"
    other = pylog(*words[:-2], env={**environment, "PYLOG_USER_PASSWORD": "cuttlefish"})
    assert (other.returncode, other.stderr.count("\n")) == (1, 1)
    assert "another password" in other.stderr
    with LocalBroker(data, listeners={"LOGIN": "SASL_PLAINTEXT"}) as running:
        properties = tmp_path / "client.properties"
        properties.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=admin\nsasl.password={SECRET}\n"
        )
        env = {**environment, "PYLOG_BOOTSTRAP_SERVERS": running.bootstrap_servers}
        listed = pylog("user", "list", "--command-config", str(properties), env=env)
        assert re.search(r"^admin +SCRAM-SHA-512 +8192$", listed.stdout, re.MULTILINE), listed.stderr
        used = pylog(*words)
        assert used.returncode == 1
        assert "A broker uses the data directory" in used.stderr


def test_no_password_stands_in_a_process_list(command, environment, tmp_path):
    """While a command hashes and sends, its command line has no password that came from a file or standard input."""
    asking = subprocess.Popen(
        [*command, "user", "create", "erin", "--password-file", "-"],
        env={**environment, "PYLOG_BOOTSTRAP_SERVERS": nowhere()},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with asking:
        asking.stdin.write(f"{SECRET}\n".encode())
        asking.stdin.close()
        seen = 0
        while asking.poll() is None and seen < 20:
            with open(f"/proc/{asking.pid}/cmdline", "rb") as line:
                assert SECRET.encode() not in line.read()
            seen += 1
        asking.kill()
    assert seen


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A broker with an authorizer, at which everybody who comes is a super user."""
    with LocalBroker(
        tmp_path_factory.mktemp("guarded"),
        super_users="User:ANONYMOUS",
        authorizer_class_name=AUTHORIZER,
    ) as running:
        yield running


@pytest.fixture
def acl(pylog, environment, guarded):
    """Run ``pylog acl`` at the broker with an authorizer."""
    env = {**environment, "PYLOG_BOOTSTRAP_SERVERS": guarded.bootstrap_servers}
    return lambda *words: pylog("acl", *words, env=env)


def test_acls_are_created_listed_and_deleted(acl):
    created = acl("create", "--allow-principal", "User:alice", "--producer", "--topic", "events")
    assert (created.returncode, created.stdout, created.stderr) == (0, "Created 3 ACLs.\n", "")
    acl("create", "--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "Read", "--topic", "ev",
        "--resource-pattern-type", "prefixed")  # fmt: skip
    acl("create", "--allow-principal", "User:carol", "--operation", "Alter", "--cluster")
    listed = acl("list").stdout
    assert re.search(r"^TOPIC +events +LITERAL +User:alice +\* +WRITE +ALLOW$", listed, re.MULTILINE)
    assert re.search(r"^TOPIC +ev +PREFIXED +User:bob +10\.0\.0\.1 +READ +DENY$", listed, re.MULTILINE)
    assert re.search(r"^CLUSTER +kafka-cluster +LITERAL +User:carol +\* +ALTER +ALLOW$", listed, re.MULTILINE)
    assert len(json.loads(acl("list", "--topic", "events", "--json").stdout)) == 3
    assert len(json.loads(acl("list", "--topic", "events", "--resource-pattern-type", "match", "--json").stdout)) == 4
    assert len(json.loads(acl("list", "--principal", "User:bob", "--json").stdout)) == 1
    would = acl("delete", "--topic", "events")
    assert would.stdout.splitlines()[-1] == "Would delete 3 ACLs. Add --execute to do it."
    one = acl("delete", "--topic", "events", "--allow-principal", "User:alice", "--operation", "Create", "--execute")
    assert one.stdout.splitlines() == [
        "ALLOW User:alice from *: CREATE on LITERAL TOPIC events",
        "Deleted 1 ACL.",
    ]
    assert acl("delete", "--topic", "events", "--resource-pattern-type", "match", "--execute").stdout.endswith(
        "Deleted 3 ACLs.\n"
    )
    assert acl("delete", "--cluster", "--execute").stdout.endswith("Deleted 1 ACL.\n")
    assert acl("list").stderr == "There are no such ACLs.\n"


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("create", "--topic", "t"), 2, "Missing --allow-principal"),
        (("create", "--allow-principal", "User:a"), 2, "Missing --topic"),
        (("create", "--allow-host", "h", "--topic", "t"), 2, "--allow-host needs --allow-principal"),
        (("create", "--allow-principal", "alice", "--topic", "t"), 1, "alice"),
        (
            ("create", "--allow-principal", "User:a", "--operation", "Fly", "--topic", "t"),
            2,
            "'Fly' is not an operation",
        ),
        (("delete", "--topic", "t", "--operation", "Read"), 2, "Missing --allow-principal or --deny-principal"),
    ],
)
def test_invalid_acls_are_refused_with_a_sentence(acl, words, code, sentence):
    refused = acl(*words)
    assert refused.returncode == code, refused.stderr
    assert sentence in refused.stderr


def test_a_broker_without_an_authorizer_says_so(pylog):
    for words in (("list",), ("create", "--allow-principal", "User:a", "--topic", "t")):
        refused = pylog("acl", *words)
        assert refused.returncode == 1
        assert "No Authorizer is configured" in refused.stderr
