"""`python -m docs_tools.llms` writes docs/llms.txt: the index of the docs for agents (https://llmstxt.org)."""

from pathlib import Path

from lace_site.manual.core import Section, read_index

ROOT = Path(__file__).resolve().parent.parent
LLMS = ROOT / "docs/llms.txt"
HEAD = """# LACE workbench

> Measures and improves the LLM judge of a customer-support chatbot: raters label chats on a rubric of yes/no
> criteria, the judge (LACE) judges the same chats, an alignment report shows how far both agree, and a
> regression gate stands between every revised criterion prompt and production.

One name for each thing: rater, label, consensus, judge, verdict, disagreement, prompt version, champion, chat
set, split (train, dev, holdout), run, regression test. Every command takes `--json`. Prompt authors never see
the holdout; only the gate and a lead release a prompt.
"""


def main() -> None:
    """Write the file."""
    LLMS.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the file as the index of the docs makes it: pages below `docs/`, decisions as optional."""
    index = read_index((ROOT / "docs/README.md").read_text("utf-8"))
    return "\n".join([HEAD, *filter(None, map(_section, index))])


def _section(section: Section) -> str:
    lines = [f"- [{page.title}]({page.path}): {page.covers}\n" for page in section.pages if page.is_inside]
    return f"## {section.title}\n\n{''.join(lines)}" if lines else ""


if __name__ == "__main__":
    main()
