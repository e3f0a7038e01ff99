"""The files of ``deploy`` are valid by the validators of their formats, agree with each other, and the commands in them start brokers.

What is not tried: no image is built and no pod runs, since that takes a container runtime. systemd reads its unit, and no
service manager runs it.
"""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from confluent_kafka.admin import AdminClient

from pylog_spark.testing import ZooKeeper
from pylog_spark.testing.process import Child
from tests.harness.zookeeper import new_chroot

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
UNIT = DEPLOY / "systemd" / "pylog.service"
PROPERTIES = DEPLOY / "systemd" / "broker.properties"
#: The versions of Kubernetes between which manifests are to be valid.
KUBERNETES_VERSIONS = ("1.32", "1.37")
# What `systemd-analyze security` says of a service without any protection is 9.6, of the best 0.
EXPOSURE_MAX = 1.5
_YAML_RULES = {
    "extends": "default",
    "rules": {
        "braces": {"max-spaces-inside": 1},
        "comments": {"min-spaces-from-content": 1},
        "document-start": "disable",
        "line-length": {"max": 200},
    },
}
_numbers = count()


def ours(tool: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a command of this environment."""
    command = [str(Path(sys.executable).with_name(tool)), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def manifests() -> list[dict[str, Any]]:
    """All objects for Kubernetes."""
    return [found for file in KUBERNETES for found in yaml.safe_load_all(file.read_text()) if found]


def manifest(kind: str, name: str) -> dict[str, Any]:
    """The one of this kind and name."""
    (found,) = [each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pod() -> tuple[dict[str, Any], dict[str, Any]]:
    """The template of a broker's pod, and its only container."""
    template = manifest("StatefulSet", "pylog")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    return template, container


def compose() -> dict[str, Any]:
    """The services of the Compose file."""
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


def instruction(name: str) -> str:
    """What the last instruction of this name in the Containerfile says."""
    said: str = re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)[-1]
    return said


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_every_manifest_is_valid_for_kubernetes(version: str) -> None:
    kinds = []
    for each in manifests():
        kubernetes_validate.validate(each, version, strict=True)
        kinds.append(each["kind"])
    assert {"StatefulSet", "Service", "PodDisruptionBudget", "ConfigMap", "NetworkPolicy"} <= set(kinds)


def test_a_field_that_kubernetes_does_not_know_would_be_found() -> None:
    wrong = manifest("PodDisruptionBudget", "pylog")
    wrong["spec"]["maxUnavailble"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="maxUnavailble"):
        kubernetes_validate.validate(wrong, KUBERNETES_VERSIONS[-1], strict=True)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="check-jsonschema needs Python 3.11")
def test_the_compose_file_is_valid(tmp_path: Path) -> None:
    checked = ours("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")
    assert checked.returncode == 0, checked.stdout
    wrong = tmp_path / "compose.yaml"
    wrong.write_text((DEPLOY / "compose.yaml").read_text().replace("read_only:", "readonly:"))
    assert "readonly" in ours("check-jsonschema", "--builtin-schema", "vendor.compose-spec", wrong).stdout


def test_yaml_is_written_as_yaml_lint_wants_it() -> None:
    linted = ours("yamllint", "--strict", "-d", json.dumps(_YAML_RULES), DEPLOY)
    assert linted.returncode == 0, linted.stdout


def test_the_containerfile_passes_its_linter() -> None:
    linted = ours("hadolint", DEPLOY / "Containerfile")
    assert (linted.returncode, linted.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_reads_the_unit_and_finds_it_protected(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/pylog/bin/pylog", sys.executable))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=120)
    assert (verified.returncode, verified.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX * 10:.0f}", str(unit)]
    rated = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert rated.returncode == 0, rated.stdout


def test_selectors_names_users_and_ports_agree() -> None:
    template, container = pod()
    labels = template["metadata"]["labels"].items()
    stateful = manifest("StatefulSet", "pylog")["spec"]
    selectors = [
        manifest("PodDisruptionBudget", "pylog")["spec"]["selector"]["matchLabels"],
        *(manifest("Service", name)["spec"]["selector"] for name in ("pylog", "pylog-brokers")),
        stateful["selector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels for selector in selectors)
    headless = manifest("Service", stateful["serviceName"])["spec"]
    assert headless["clusterIP"] == "None"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    named = [
        port["targetPort"] for name in ("pylog", "pylog-brokers") for port in manifest("Service", name)["spec"]["ports"]
    ]
    assert set(named) <= ports.keys()
    assert [*map(str, ports.values())] == instruction("EXPOSE").split()
    user = template["spec"]["securityContext"]["runAsUser"]
    assert instruction("USER") == f"{user}:{user}"
    assert f"--uid {user} " in CONTAINERFILE
    for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}
    assert instruction("VOLUME") in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_zookeeper_that_brokers_name_is_the_one_of_the_manifests() -> None:
    (named,) = re.findall(
        r"^zookeeper.connect=(.*)/pylog$", manifest("ConfigMap", "pylog")["data"]["broker.properties"], re.M
    )
    stateful = manifest("StatefulSet", "zookeeper")["spec"]
    wanted = [f"zookeeper-{number}.{stateful['serviceName']}" for number in range(stateful["replicas"])]
    assert named.split(",") == [f"{host}:2181" for host in wanted]
    (container,) = stateful["template"]["spec"]["containers"]
    (servers,) = [variable["value"] for variable in container["env"] if variable["name"] == "ZOO_SERVERS"]
    assert servers.split() == [f"server.{number}={host}:2888:3888;2181" for number, host in enumerate(wanted, 1)]


def test_images_have_the_version_of_the_package() -> None:
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    services = [service for name, service in compose().items() if name.startswith("broker-")]
    assert len(services) == 3
    assert {service["image"] for service in services} == {pod()[1]["image"]} == {f"pylog:{version}"}


def commands(folder: Path) -> Iterator[tuple[str, list[str], str]]:
    """Where it stands, the arguments of ``pylog broker`` and the address that it advertises; the files that they name are here."""
    yield "Containerfile", json.loads(instruction("CMD")), ""
    for name, service in compose().items():
        if name.startswith("broker-"):
            yield name, service["command"], f"{name}:9092"
    (line,) = re.findall(r"^ExecStart=/opt/pylog/bin/pylog broker (.*)$", UNIT.read_text(), re.MULTILINE)
    yield "systemd", shlex.split(line.replace("/etc/pylog/broker.properties", str(PROPERTIES))), ""
    _template, container = pod()
    file = folder / "broker.properties"
    file.write_text(manifest("ConfigMap", "pylog")["data"]["broker.properties"])
    variables = {"POD_NAME": "pylog-2", "POD_INDEX": "2", "POD_NAMESPACE": "logs"}
    assert {variable["name"] for variable in container["env"]} == variables.keys()
    words = [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word) for word in container["args"]]
    words = [word.replace("/etc/pylog/broker.properties", str(file)) for word in words]
    yield "Kubernetes", words, "pylog-2.pylog-brokers.logs.svc:9092"


def here(words: list[str], folder: Path, zookeeper: ZooKeeper) -> list[str]:
    """The same with a directory, addresses and a ZooKeeper of this machine; what stands later wins."""
    said = " ".join(words)
    names = re.findall(r"(\w+)://0\.0\.0\.0", said) or ["PLAINTEXT"]
    listen = ",".join(f"{name}://127.0.0.1:0" for name in names)
    more = ["--data-dir", str(folder / f"data-{next(_numbers)}"), "--listen", listen, "--http", "127.0.0.1:0"]
    if "zookeeper" in said or ("broker.properties" in said and str(PROPERTIES) not in said):
        more += ["--zookeeper", f"{zookeeper.address}{new_chroot()}"]
    return [*words, *more]


def test_each_command_starts_a_broker_that_is_healthy_and_tells_its_clients_the_right_address(
    tmp_path: Path, worker_zookeeper: ZooKeeper
) -> None:
    with ExitStack() as stack:
        started = []
        for name, words, advertised in commands(tmp_path):
            child = stack.enter_context(closing(Child(name)))
            child.start([sys.executable, "-m", "pylog_spark", "broker", *here(words, tmp_path, worker_zookeeper)])
            started.append((name, advertised, child))
        assert len(started) == 6
        for name, advertised, child in started:
            output = child.process().stdout
            assert output is not None
            line = output.readline()
            assert line.startswith("pylog broker ready on "), f"{name}: {line}{child.logs()}"
            address = re.findall(r"127\.0\.0\.1:\d+", line)[0]
            (broker,) = AdminClient({"bootstrap.servers": address}).list_topics(timeout=120).brokers.values()
            assert f"{broker.host}:{broker.port}" == (advertised or address), name
            (page,) = re.findall(r"http://127\.0\.0\.1:\d+", line)
            for probe in ("healthz", "readyz"):
                with urllib.request.urlopen(f"{page}/{probe}", timeout=120) as answer:
                    assert answer.read() == b"ok\n", name
        assert [child.stop(signal.SIGTERM) for _, _, child in started] == [0] * len(started)
