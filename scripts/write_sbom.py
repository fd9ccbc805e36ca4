"""Writes the bill of materials of a release as CycloneDX JSON: what serving installs, and what the console is built from.

    python scripts/write_sbom.py FILE

It is made from requirements/run.txt and web/package-lock.json alone, so the same checkout always gives the same file.
"""

import base64
import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "src"))

from holdfast import __version__  # noqa: E402

_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+?))? \\\n(?P<hashes>(?:    --hash=.*\n)+)",
    re.MULTILINE,
)
_ALGORITHMS = {"sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}


def main() -> None:
    """Write the file that the one argument names."""
    if len(sys.argv) != 2:
        sys.exit("usage: write_sbom.py FILE")
    Path(sys.argv[1]).write_text(json.dumps(bill(), indent=1, ensure_ascii=False) + "\n")


def bill() -> dict[str, Any]:
    """Return the bill of materials."""
    components = [*python_components(), *npm_components()]
    root = f"pkg:pypi/holdfast@{__version__}"
    names = json.dumps([component["bom-ref"] for component in components])
    product = {"type": "application", "bom-ref": root, "name": "holdfast", "version": __version__, "purl": root}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, root + names)}",
        "version": 1,
        "metadata": {"component": {**product, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": [component["bom-ref"] for component in components]}],
    }


def python_components() -> list[dict[str, Any]]:
    """Return every pinned package of Python; the hashes are those of its files, of which one is installed."""
    components = []
    for pin in _PIN.finditer((TOP / "requirements" / "run.txt").read_text()):
        purl = f"pkg:pypi/{pin['name']}@{pin['version']}"
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": purl,
            "name": pin["name"],
            "version": pin["version"],
            "purl": purl,
        }
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", pin["hashes"])
        properties = [{"name": "holdfast:file:sha256", "value": value} for value in hashes]
        if pin["marker"]:
            properties.append({"name": "holdfast:marker", "value": pin["marker"]})
        components.append({**component, "scope": "required", "properties": properties})
    return components


def npm_components() -> list[dict[str, Any]]:
    """Return every npm package that may be in the built console, which is all that are not for development alone."""
    packages = json.loads((TOP / "web" / "package-lock.json").read_text())["packages"]
    by_purl = {}
    for place, entry in packages.items():
        if not place or entry.get("dev"):
            continue
        name = place.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{quote(name, safe='/')}@{entry['version']}"
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": entry["version"],
            "purl": purl,
        }
        component["hashes"] = [_hash(text) for text in entry.get("integrity", "").split()]
        if re.fullmatch(r"[A-Za-z0-9.-]+", entry.get("license", "")):
            component["licenses"] = [{"license": {"id": entry["license"]}}]
        by_purl[purl] = {**component, "scope": "required"}
    return [by_purl[purl] for purl in sorted(by_purl)]


def _hash(integrity: str) -> dict[str, str]:
    algorithm, _, value = integrity.partition("-")
    return {"alg": _ALGORITHMS[algorithm], "content": base64.b64decode(value).hex()}


if __name__ == "__main__":
    main()
