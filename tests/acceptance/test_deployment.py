"""What is deployed: the image's recipe, compose files, manifests and units, each by its own checker and by what it promises."""

import os
import plistlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from holdfast.config.environment import VARIABLES
from holdfast.config.load import parse

TOP = Path(__file__).parents[2]
DEPLOY = TOP / "deploy"
BIN = Path(sys.executable).parent
COMPOSE = [TOP / "compose.yaml", DEPLOY / "compose.full.yaml"]
CONTAINER_PORT = "8124"

pytestmark = pytest.mark.req("SV-51")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, env=env, timeout=60
    )


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "holdfast.yaml").read_text()))


def services(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["services"]
    return found


def test_the_dockerfile_passes_its_linter_and_the_linter_can_fail(tmp_path: Path) -> None:
    ran = run(BIN / "hadolint", TOP / "Dockerfile")
    assert (ran.returncode, ran.stdout) == (0, "")
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN cd /x && sudo make\n")
    assert run(BIN / "hadolint", tmp_path / "Dockerfile").returncode == 1


def test_the_image_runs_as_nobody_special_and_has_its_volumes_and_health() -> None:
    final = (TOP / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    lines = final.splitlines()
    for line in (
        "USER 1000:1000",
        'VOLUME ["/data/target", "/data/state"]',
        'ENTRYPOINT ["holdfast"]',
        'CMD ["serve", "--host", "0.0.0.0", "--trusted-proxy", "gateway"]',
    ):
        assert line in lines
    assert "HEALTHCHECK" in final
    assert [line for line in lines if line.startswith("COPY")] == ["COPY --from=build /opt/holdfast /opt/holdfast"]


def test_the_build_is_sent_what_it_copies_and_nothing_beside() -> None:
    dockerfile, ignored = (TOP / "Dockerfile").read_text(), (TOP / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE) for name in line.split()
    }
    assert sent == copied
    assert "*" in ignored
    for name in copied:
        assert (TOP / name).exists(), name


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_a_compose_file_has_the_form_of_the_specification(path: Path) -> None:
    ran = run(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)
    assert ran.returncode == 0, ran.stdout
    document = yaml.safe_load(path.read_text())
    volumes, networks = set(document.get("volumes", {})), set(document.get("networks", {}))
    for name, service in document["services"].items():
        for volume in service.get("volumes", []):
            source = volume["source"] if isinstance(volume, dict) else volume.partition(":")[0]
            if source.startswith("./"):
                assert (path.parent / source).exists(), (name, source)
            elif not source.startswith("${"):
                assert source in volumes, (name, source)
        assert set(service.get("networks", [])) <= networks
        assert set(service.get("depends_on", {})) <= set(document["services"])
        if "build" in service:
            assert (path.parent / service["build"] / "Dockerfile").exists()
        elif service["image"] != "holdfast":
            assert re.fullmatch(r"docker\.io/[\w./-]+:[\w.-]+", service["image"]), service["image"]
            assert not service["image"].endswith(":latest")


def test_a_misspelt_key_of_a_compose_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {a: {image: x, volums: []}}\n")
    assert run(
        BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", tmp_path / "compose.yaml"
    ).returncode


@pytest.mark.parametrize("path", COMPOSE, ids=lambda path: path.name)
def test_our_services_are_locked_down_and_ports_are_for_this_machine(path: Path) -> None:
    for name, service in services(path).items():
        for port in service.get("ports", []):
            assert str(port).startswith("127.0.0.1:"), (name, port)
        assert "mem_limit" in service, name
        if service.get("image") == "holdfast":
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert "no-new-privileges:true" in service["security_opt"]
            known = {*VARIABLES, "PATH"}
            assert set(service["environment"]) <= known, name


def test_the_embedded_default_passes_the_three_variables_through() -> None:
    text = COMPOSE[0].read_text()
    assert {"OPENAI_API_KEY", "DATABASE_URL"} <= set(services(COMPOSE[0])["holdfast"]["environment"])
    assert "source: ${ROOT_DIR:-.}" in text
    assert services(COMPOSE[0])["holdfast"]["ports"] == ["127.0.0.1:${HOLDFAST_PORT:-8124}:8124"]


def test_every_process_of_the_full_one_is_scraped_with_its_own_token() -> None:
    full = services(COMPOSE[1])
    assert {"server-1", "server-2", "worker", "proxy", "postgres", "valkey", "prometheus", "grafana"} <= set(full)
    jobs = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())["scrape_configs"]
    tokens = {volume["target"] for volume in full["prometheus"]["volumes"] if isinstance(volume, dict)}
    assert {job["authorization"]["credentials_file"] for job in jobs} == tokens
    for job in jobs:
        host, _, port = job["static_configs"][0]["targets"][0].partition(":")
        assert host in full
        assert port == CONTAINER_PORT
        assert job["job_name"].startswith("holdfast")
    assert run("promtool", "check", "config", "--syntax-only", DEPLOY / "compose" / "prometheus.yml").returncode == 0


def test_the_settings_that_are_shipped_are_valid_and_name_the_network_that_is_there() -> None:
    shipped = parse((DEPLOY / "compose" / "settings.yml").read_text(), "settings.yml").settings
    subnet = yaml.safe_load(COMPOSE[1].read_text())["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert shipped.server.trusted_proxies == [subnet]
    assert shipped.server.is_protected
    caddyfile = (DEPLOY / "compose" / "Caddyfile").read_text()
    assert f"\n{shipped.server.public_url} {{" in caddyfile
    upstreams = {name for name in services(COMPOSE[1]) if name.startswith("server-")}
    assert set(re.findall(r"(server-\d):8124", caddyfile)) == upstreams


def test_the_manifests_pass_strict_validation_and_the_check_can_fail() -> None:
    found = manifests()
    for manifest in found:
        kubernetes_validate.validate(manifest, "1.31", strict=True)
    assert {manifest["kind"] for manifest in found} >= {
        "Deployment", "Service", "PersistentVolumeClaim", "PodDisruptionBudget", "NetworkPolicy", "ConfigMap",
    }  # fmt: skip
    broken = next(manifest for manifest in found if manifest["kind"] == "Deployment")
    broken["spec"]["replicaz"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.31", strict=True)


def test_the_pod_is_locked_down_bounded_and_probed() -> None:
    found = {manifest["kind"]: manifest for manifest in manifests()}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
    server = pod["containers"][0]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe]["httpGet"]["path"] == "/health"
        assert server[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}], "others get 421"
    settings = parse(found["ConfigMap"]["data"]["settings.yml"], "settings.yml").settings
    assert settings.server.is_protected
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    claims = {
        volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"] if "persistentVolumeClaim" in volume
    }
    assert claims == {found["PersistentVolumeClaim"]["metadata"]["name"]}


@pytest.mark.parametrize(("unit", "scope"), [("holdfast.service", "--system"), ("holdfast-user.service", "--user")])
def test_a_unit_passes_systemds_own_check(tmp_path: Path, unit: str, scope: str) -> None:
    """Where the program is differs, so one that is here stands in its place."""
    text = re.sub(
        r"^ExecStart=\S+", f"ExecStart={sys.executable}", (DEPLOY / "systemd" / unit).read_text(), flags=re.MULTILINE
    )
    file = tmp_path / unit
    file.write_text(text)
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    ran = run("systemd-analyze", "verify", "--man=no", scope, file, XDG_RUNTIME_DIR=str(runtime))
    assert (ran.returncode, ran.stderr) == (0, "")
    file.write_text(text.replace("Restart=", "Restartt="))
    assert "Restartt" in run("systemd-analyze", "verify", "--man=no", scope, file, XDG_RUNTIME_DIR=str(runtime)).stderr


def test_the_system_unit_is_hardened() -> None:
    ran = run("systemd-analyze", "security", "--offline=true", "--no-pager", DEPLOY / "systemd" / "holdfast.service")
    level = re.search(r"exposure level for holdfast.service: ([\d.]+)", ran.stdout)
    assert level, ran.stderr
    assert float(level[1]) <= 2.0


def test_the_launchd_plist_is_a_property_list_that_starts_serve() -> None:
    plist = plistlib.loads((DEPLOY / "launchd" / "org.holdfast.server.plist").read_bytes())
    assert plist["ProgramArguments"][1:] == ["serve"]
    assert plist["Umask"] == 0o077
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
