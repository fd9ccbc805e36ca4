"""The bill of materials is valid CycloneDX, has everything that is installed or built in, and is always the same."""

import json
import re
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts.write_sbom import bill

TOP = Path(__file__).parents[2]


@pytest.mark.req("SV-52")
def test_the_bill_of_materials_is_valid_and_complete() -> None:
    text = json.dumps(bill())
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (TOP / "requirements" / "run.txt").read_text(), re.MULTILINE)
    listed = {component["purl"] for component in bill()["components"]}

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert {f"pkg:pypi/{name}@{version}" for name, version in pinned} <= listed
    assert any(purl.startswith("pkg:npm/react@") for purl in listed)
    assert not any(purl.startswith("pkg:npm/vite@") for purl in listed)


def test_the_same_checkout_gives_the_same_bill() -> None:
    assert bill() == bill()


def test_a_bill_that_is_not_valid_is_seen() -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps({**bill(), "specVersion": 7})) is not None
