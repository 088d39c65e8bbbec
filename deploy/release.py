"""Writes the source of a release: the files of the last commit, its checksum and its bill of materials.

Run as `python -m deploy.release FOLDER` by `make release`. The version is that of pyproject.toml.
"""

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def project() -> tuple[str, str]:
    """Return name and version of the product."""
    values = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return values["name"], values["version"]


def archive(folder: Path) -> Path:
    """Write the archive; the same commit gives the same bytes. Raises CalledProcessError without a commit."""
    name, version = project()
    file = folder.resolve() / f"{name}-{version}.tar.gz"
    options = ["--format=tar.gz", f"--prefix={name}-{version}/", f"--output={file}"]
    subprocess.run(["git", "archive", *options, "HEAD"], cwd=ROOT, check=True)
    return file


def checksums(folder: Path, files: list[Path]) -> Path:
    """Write SHA256SUMS, which `sha256sum --check` reads."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    target = folder / "SHA256SUMS"
    target.write_text("".join(lines), encoding="utf-8")
    return target


def main(folder: Path) -> int:
    """Write everything to a folder; returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    file = archive(folder)
    others = [folder / "sbom.json", folder / "lace-client.pyz"]
    target = checksums(folder, [file, *(one for one in others if one.exists())])
    print(target.read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
