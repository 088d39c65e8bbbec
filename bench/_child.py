"""One function of a benchmark in a process of its own, whose CPU time and peak memory are its own."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import django

FOLDER = Path(__file__).resolve().parent


def in_child(
    module: str,
    function: str,
    arguments: Mapping[str, Any],
    environment: Mapping[str, str],
    code: Path = FOLDER.parent,
) -> Any:
    """Call `bench.<module>.<function>(**arguments)` elsewhere; arguments and result travel as JSON.

    `code` is the folder of another version of the workbench and its benchmarks.
    """
    command = [sys.executable, "-m", "bench._child", f"bench.{module}", function, json.dumps(arguments)]
    ended = subprocess.run(
        command,
        cwd=code,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(ended.stdout)


def main(module: str, function: str, arguments: str) -> None:
    """The other side: Django is ready before the module is loaded."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lace_site.settings")
    django.setup()
    result = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
