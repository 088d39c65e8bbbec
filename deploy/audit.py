"""Looks the locked packages up in PyPI's database of known vulnerabilities.

Run as `python -m deploy.audit` with the environment of `make audit`. Exit 1 where a package has a known
vulnerability; 0 where none has one, and where the database cannot be reached: the last line says which.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCKS = Path(__file__).resolve().parent.parent / "locks"
LOCK = LOCKS / "requirements.txt"
SECONDS = 300
VULNERABLE = 1


@dataclass(frozen=True, slots=True)
class Audit:
    """The answer: how many packages the database knows, how many it does not, and the findings."""

    audited: int
    unknown: int
    findings: tuple[str, ...]


def read(document: dict[str, Any]) -> Audit:
    """
    Read pip-audit's JSON.

    Examples
    --------
    >>> read({"dependencies": [{"name": "six", "version": "1.17.0", "vulns": []}]})
    Audit(audited=1, unknown=0, findings=())
    """
    packages = document["dependencies"]
    findings = [
        f"{package['name']} {package['version']}: {one['id']}, "
        f"fixed in {', '.join(one['fix_versions']) or 'no version'}"
        for package in packages
        for one in package.get("vulns", ())
    ]
    unknown = sum("skip_reason" in package for package in packages)
    return Audit(len(packages) - unknown, unknown, tuple(findings))


def verdict(audit: Audit | None, *, error: str = "") -> tuple[int, str]:
    """
    Return the exit code and the last line; no audit where the program gave no answer.

    Examples
    --------
    >>> verdict(Audit(84, 0, ()))
    (0, 'audit: no known vulnerability in 84 packages')
    >>> verdict(Audit(0, 84, ()))
    (0, 'audit: NOT DONE, the database knows none of 84 packages here')
    >>> verdict(None, error="timed out")
    (0, 'audit: NOT DONE, the database cannot be reached: timed out')
    """
    if audit is None:
        return 0, f"audit: NOT DONE, the database cannot be reached: {error}"
    if audit.findings:
        return VULNERABLE, f"audit: {len(audit.findings)} known vulnerabilities in {audit.audited} packages"
    if not audit.audited:
        return 0, f"audit: NOT DONE, the database knows none of {audit.unknown} packages here"
    unknown = f", {audit.unknown} not in the database" if audit.unknown else ""
    return 0, f"audit: no known vulnerability in {audit.audited} packages{unknown}"


def ask(lock: Path) -> tuple[Audit | None, str]:
    """Run pip-audit; what it found, or why it gave no answer."""
    options = ["--disable-pip", "--require-hashes", "--progress-spinner", "off", "--timeout", "15"]
    command = [sys.executable, "-m", "pip_audit", *options, "--format", "json", "--requirement", str(lock)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        return read(json.loads(done.stdout)), ""
    except subprocess.TimeoutExpired:
        return None, f"no answer within {SECONDS} seconds"
    except ValueError:
        return None, (done.stderr.strip().splitlines() or ["no answer"])[-1]


def main() -> int:
    """Audit the lock of the runtime and print the findings."""
    audit, error = ask(LOCK)
    code, line = verdict(audit, error=error)
    print(*(audit.findings if audit else ()), line, sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
