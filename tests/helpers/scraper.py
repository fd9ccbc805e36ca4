"""Scrapes /metrics as Prometheus does, and finds values in what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.helpers.doors import House


def metrics_token(house: House) -> str:
    """Return the key to the metrics."""
    return (house.state / "metrics.token").read_text().strip()


def get_metrics(house: House, key: str | None = None, **headers: str) -> httpx2.Response:
    """Ask for /metrics, with the right key unless another one is given."""
    key = metrics_token(house) if key is None else key
    return httpx2.get(f"{house.url}/metrics", headers={"authorization": f"Bearer {key}", **headers}, timeout=20)


@dataclass(frozen=True)
class Figures:
    """What one scrape said."""

    samples: tuple[Sample, ...]

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples with that name and these labels, 0 for none."""
        return sum(
            sample.value for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    def has(self, name: str) -> bool:
        """Return whether there is a sample of that name."""
        return any(sample.name == name for sample in self.samples)

    def label_values(self) -> Mapping[str, set[str]]:
        """Return every value of each label."""
        values: dict[str, set[str]] = {}
        for sample in self.samples:
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
        return values


def scrape(house: House) -> Figures:
    """Return what a scrape says now."""
    answer = get_metrics(house)
    assert answer.status_code == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    return Figures(tuple(sample for family in families for sample in family.samples))
