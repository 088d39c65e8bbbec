"""The rooms that hold plain Python: every feature's `core`, and the statistics."""

from pathlib import Path

from django.conf import settings

APPS = ("labeling", "evaluation", "alignment")


def pure_rooms() -> list[str]:
    """Dotted names of all `core` packages and modules of the apps, and of `alignment.statistics`."""
    root: Path = settings.BASE_DIR
    found = [path for app in APPS for path in (root / app).rglob("core*") if path.name in ("core", "core.py")]
    paths = [*found, root / "alignment" / "statistics"]
    return sorted(".".join(path.relative_to(root).with_suffix("").parts) for path in paths)


def pure_modules() -> list[str]:
    """Every module in them."""
    root: Path = settings.BASE_DIR
    modules = []
    for room in pure_rooms():
        path = root.joinpath(*room.split("."))
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        modules += [".".join(file.relative_to(root).with_suffix("").parts) for file in files]
    return [module.removesuffix(".__init__") for module in modules]
