"""`python -m bench [NAME …]`: every benchmark of this folder, each in a process and a database of its own."""

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import django
from django.core.management import call_command

FOLDER = Path(__file__).resolve().parent
CHILD = "LACE_BENCHMARK"


def main(wanted: list[str]) -> int:
    """Run the wanted benchmarks, by default all; returns 2 for a name that is none, 70 when one broke."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(FOLDER)]) if module.name[0] != "_")
    if unknown := set(wanted) - set(names):
        print(f"no benchmark {min(unknown)}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    print("name, measured, limit, ratio (1 at the limit, above 1 within it)", flush=True)
    codes = [_in_child(name) for name in wanted or names]
    return 70 if any(codes) else 0


def _in_child(name: str) -> int:
    """Peak memory and caches of one benchmark must not colour the next one's."""
    with tempfile.TemporaryDirectory(prefix="lace-bench-") as folder:
        database = {"DATABASE_URL": f"sqlite:///{folder}/bench.sqlite3", "DEBUG": "off", CHILD: name}
        command = [sys.executable, "-m", "bench"]
        return subprocess.run(command, check=False, env=os.environ | database, cwd=FOLDER.parent).returncode


def measure(name: str) -> int:
    """Run one benchmark on the empty database that the parent named."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
    django.setup()
    call_command("migrate", verbosity=0)
    for figure in importlib.import_module(f"bench.{name}").figures():
        print(figure.line, flush=True)
    return 0


if __name__ == "__main__":
    child = os.environ.get(CHILD)
    sys.exit(measure(child) if child else main(sys.argv[1:]))
