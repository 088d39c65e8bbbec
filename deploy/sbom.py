"""Writes the bill of materials of a release in CycloneDX: locked packages, model weights, vendored scripts.

Run as `python -m deploy.sbom FILE` with the environment of `make sbom`.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCKS = [ROOT / "locks" / name for name in ("requirements.txt", "requirements-model.txt")]
VENDORED = ROOT / "common/static/common/vendor/VENDOR.md"
ROW = re.compile(
    r"^\| `(?P<file>[\w.]+)` \| `(?P<package>[\w.]+)` \(npm\).*? \| (?P<version>[\d.]+) "
    r"\| (?P<licence>[\w-]+)[^|]* \| `(?P<sha256>[0-9a-f]{64})` \|$",
    re.MULTILINE,
)


def vendored(table: str) -> list[dict[str, Any]]:
    """Return the scripts and styles that the product ships, from the table beside them."""
    return [
        {
            "type": "library",
            "bom-ref": f"vendored-{row['file']}",
            "name": row["package"],
            "version": row["version"],
            "purl": f"pkg:npm/{row['package']}@{row['version']}",
            "licenses": [{"license": {"id": row["licence"]}}],
            "hashes": [{"alg": "SHA-256", "content": row["sha256"]}],
            "description": f"file {row['file']}",
        }
        for row in ROW.finditer(table)
    ]


def packages(locks: list[Path]) -> dict[str, Any]:
    """Return CycloneDX's document of the locked packages. Raises CalledProcessError."""
    options = [
        "--pyproject",
        str(ROOT / "pyproject.toml"),
        "--output-reproducible",
        "--output-format",
        "JSON",
    ]
    lines = "".join(lock.read_text(encoding="utf-8") for lock in locks)
    done = subprocess.run(
        [sys.executable, "-m", "cyclonedx_py", "requirements", *options, "-"],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    for component in document["components"]:
        component.pop("description")  # the line of the lock, with the hashes once more
    return document


def main(file: Path) -> int:
    """Write the document; returns the exit code."""
    document = packages(LOCKS)
    document["components"] += vendored(VENDORED.read_text(encoding="utf-8"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{json.dumps(document, indent=1)}\n", encoding="utf-8")
    print(f"{file}: {len(document['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
