"""``--command-config FILE``: settings of the client from a file, also those of a secured cluster."""

import json

import pytest

from tests.harness import ports
from tests.harness.certificates import PASSWORD
from tests.harness.secured import SCRAM_JAAS, USER_PASSWORD


@pytest.fixture
def properties(tmp_path):
    """Write a properties file: `properties({name: text})` gives its path."""

    def write(settings):
        path = tmp_path / "client.properties"
        escaped = {name: text.replace("\\", "\\\\") for name, text in settings.items()}
        path.write_text("# settings\n" + "".join(f"{name} = {text}\n" for name, text in escaped.items()))
        return str(path)

    return write


@pytest.fixture
def nowhere(environment):
    """The environment without an address of a broker."""
    return {name: text for name, text in environment.items() if name != "PYLOG_BOOTSTRAP_SERVERS"}


def test_a_file_gives_settings_and_the_address_unless_the_command_line_does(
    pylog, properties, broker, nowhere, make_topic
):
    make_topic("listed")
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    file = properties({**servers, "request.timeout.ms": "5000", "group.id": "g", "session.timeout.ms": "1"})
    listed = pylog("topic", "list", "--command-config", file, env=nowhere)
    assert (listed.returncode, "listed" in listed.stdout) == (0, True)
    by_environment = pylog("topic", "list", env={**nowhere, "PYLOG_COMMAND_CONFIG": file})
    assert by_environment.returncode == 0
    silent = ports.nowhere()
    elsewhere = pylog("topic", "list", "--command-config", file, "-b", silent, env=nowhere)
    assert (elsewhere.returncode, silent in elsewhere.stderr) == (1, True)
    overridden = pylog(
        "topic", "list", "--command-config", file, "--client-config", "request.timeout.ms=x", env=nowhere
    )
    assert "request.timeout.ms must be" in overridden.stderr


def test_how_batches_are_compressed_may_stand_in_the_file_unless_the_command_line_says_it(
    pylog, properties, make_topic
):
    topic = make_topic("compressed")
    file = properties({"compression.type": "zstd"})
    sizes = []
    for words in ((), ("--compression", "none")):
        done = pylog("produce", topic, *words, "--command-config", file, "--json", stdin=f"{'x' * 100_000}\n")
        assert done.returncode == 0, done.stderr
        sizes.append(json.loads(done.stdout)["bytes"])
    assert sizes[0] < 1_000 < 100_000 < sizes[1]


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"sasl.kerberos.service.name": "kafka"}, "GSSAPI (Kerberos) is not spoken"),
        ({"ssl.engine.factory.class": "a.B"}, "there are no Java classes"),
        ({"bootstrap.controllers": "a:1"}, "speaks to brokers; give bootstrap.servers."),
        ({"sasl.passwort": "planted"}, "did you mean sasl.password?"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.password": "planted"}, "sasl.username"),
    ],
)
def test_what_a_file_has_wrong_is_one_sentence_without_secrets(pylog, properties, settings, part):
    refused = pylog("topic", "list", "--command-config", properties(settings))
    assert refused.returncode != 0
    assert part in refused.stderr
    assert "planted" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_missing_file_is_named(pylog, tmp_path):
    refused = pylog("topic", "list", "--command-config", str(tmp_path / "missing"))
    assert (refused.returncode, "cannot be read" in refused.stderr) == (2, True)


@pytest.mark.long  # the same settings: tests/client/test_secured.py
@pytest.mark.peers
@pytest.mark.parametrize("way", ["login", "certificate"])
def test_commands_reach_a_secured_cluster(pylog, properties, nowhere, secured, way):
    if way == "login":
        settings = secured.login()
    else:
        settings = {
            "bootstrap.servers": secured.servers("MUTUAL"),
            "security.protocol": "SSL",
            "ssl.truststore.location": secured.certificates.path("trust.p12"),
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": secured.certificates.path("client.p12"),
            "ssl.keystore.password": PASSWORD,
        }
    environment = {**nowhere, "PYLOG_COMMAND_CONFIG": properties(settings)}
    topic = f"commanded-{way}"
    steps = [
        (("topic", "create", topic, "--partitions", "2"), ""),
        (("produce", topic), "one\ntwo\n"),
        (("consume", topic, "--exit-at-end"), ""),
        (("topic", "describe", topic), ""),
        (("group", "list"), ""),
        (("topic", "delete", topic, "--yes"), ""),
    ]
    done = [pylog(*words, stdin=stdin, env=environment) for words, stdin in steps]
    assert [(each.returncode, each.stderr) for each in done if each.returncode] == []
    assert sorted(done[2].stdout.split()) == ["one", "two"]


@pytest.mark.long  # tests/interop/test_secured_matrix.py
@pytest.mark.peers
def test_a_refused_login_is_one_sentence(pylog, properties, nowhere, secured):
    settings = {**secured.login(), "sasl.jaas.config": SCRAM_JAAS.replace("alice", "mallory")}
    refused = pylog("topic", "list", "--command-config", properties(settings), env=nowhere)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert 'as user "mallory" by SCRAM-SHA-512' in refused.stderr
    assert USER_PASSWORD not in refused.stderr
