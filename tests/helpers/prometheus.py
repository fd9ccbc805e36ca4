"""A real Prometheus that scrapes servers of a test every half second, with the rules of the product at a test's pace."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.helpers.doors import until

TOP = Path(__file__).parents[2]
RULES = TOP / "deploy" / "prometheus" / "alerts.yml"
WINDOW = "10s"
_INTERVAL = "500ms"


@dataclass(frozen=True)
class Target:
    """What is scraped: the name of a job, an address, and the file that holds the key."""

    job: str
    address: str
    key_file: Path


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the result of an expression now."""
        answer = httpx2.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=10)
        assert answer.status_code == 200, answer.text
        result: list[dict[str, Any]] = answer.json()["data"]["result"]
        return result

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {alert["metric"]["alertname"] for alert in self.query('ALERTS{alertstate="firing"}')}

    def unhealthy_rules(self) -> list[str]:
        """Return what went wrong in rules."""
        groups = httpx2.get(f"{self.url}/api/v1/rules", timeout=10).json()["data"]["groups"]
        return [rule["lastError"] for group in groups for rule in group["rules"] if rule["health"] == "err"]


def quick_rules() -> str:
    """Return the rules with windows of seconds in place of minutes; what they compare is as it is."""
    text = re.sub(r"for: \d+m", "for: 1s", RULES.read_text())
    return re.sub(r"\[\d+m\]", f"[{WINDOW}]", text)


@contextmanager
def prometheus(folder: Path, targets: Sequence[Target]) -> Iterator[Prometheus]:
    """Run a Prometheus on a free port of this machine until the block ends."""
    folder.mkdir()
    (folder / "alerts.yml").write_text(quick_rules())
    jobs = [
        {
            "job_name": target.job,
            "authorization": {"credentials_file": str(target.key_file)},
            "static_configs": [{"targets": [target.address]}],
        }
        for target in targets
    ]
    config = {
        "global": {"scrape_interval": _INTERVAL, "scrape_timeout": _INTERVAL, "evaluation_interval": _INTERVAL},
        "rule_files": ["alerts.yml"],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = ["config.file=prometheus.yml", "storage.tsdb.path=data", f"web.listen-address={address}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *(f"--{option}" for option in options)], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            running = Prometheus(f"http://{address}")
            until("Prometheus is ready", lambda: _is_ready(running.url), 30)
            yield running
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _is_ready(url: str) -> bool:
    try:
        return bool(httpx2.get(f"{url}/-/ready", timeout=2).status_code == 200)
    except httpx2.HTTPError:
        return False
