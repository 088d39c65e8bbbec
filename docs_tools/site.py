"""Hooks of MkDocs: navigation from the index, files from beside `docs/`, anchors as code hosts make them."""

import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from lace_site.manual.core import anchor, read_index

ROOT = Path(__file__).resolve().parent.parent
# The files beside `docs/` that are pages of the site. Its first page is docs/README.md: that name is taken.
OUTSIDE = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "CHANGELOG.md": "changelog.md",
}
UP = re.compile(rf"\]\((?:\.\./)+({'|'.join(re.escape(name) for name in OUTSIDE)})(?=[)#])")
NUMBERED = re.compile(r"^- \[([^\]]+)\]\((\d[^)]+\.md)\)$", re.MULTILINE)


def slug(text: str, separator: str) -> str:
    """Return the anchor of a heading."""
    return anchor(text)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Build the navigation from docs/README.md, with the decisions from their own index."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    index = read_index((ROOT / "docs/README.md").read_text("utf-8"))
    nav: list[dict[str, Any]] = [{"Documentation": "README.md"}]
    for section in index:
        nav.append({section.title: [_entry(page.title, page.path) for page in section.pages]})
    config.nav = nav
    return config


def _entry(title: str, path: str) -> dict[str, Any]:
    path = OUTSIDE[path.removeprefix("../")] if path.startswith("../") else path
    if path != "adr/README.md":
        return {title: path}
    decisions = NUMBERED.findall((ROOT / "docs/adr/README.md").read_text("utf-8"))
    return {title: [path, *({name: f"adr/{file}"} for name, file in decisions)]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files beside `docs/`."""
    for name, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, "LICENSE", abs_src_path=str(ROOT / "LICENSE")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links between `docs/` and what lies beside it links between pages of the site."""
    if page.file.src_uri in OUTSIDE.values():
        markdown = re.sub(r"\]\((" + "|".join(OUTSIDE) + r")(?=[)#])", _beside, markdown)
        return markdown.replace("](docs/", "](")
    up = "../" * page.file.src_uri.count("/")
    return UP.sub(lambda match: f"]({up}{OUTSIDE[match[1]]}", markdown)


def _beside(match: re.Match[str]) -> str:
    return f"]({OUTSIDE[match[1]]}"


def on_post_build(config: MkDocsConfig) -> None:
    """Add llms.txt and the Markdown that it lists."""
    site, docs = Path(config.site_dir), ROOT / "docs"
    shutil.copy(docs / "llms.txt", site / "llms.txt")
    for path in docs.rglob("*.md"):
        shutil.copy(path, site / path.relative_to(docs))
    for name, place in OUTSIDE.items():
        shutil.copy(ROOT / name, site / place)
