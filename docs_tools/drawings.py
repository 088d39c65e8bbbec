"""`python -m docs_tools.drawings` draws docs/images/*.svg: boxes with words, and arrows between them.

Words stand on their own light boxes and lines are of a middle grey, so a drawing is readable on a light and
on a dark page, without a style sheet or a script.
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path

IMAGES = Path(__file__).resolve().parent.parent / "docs/images"
INK, LINE = "#1f2933", "#7b8794"
FILLS = {"people": "#dbe8fb", "judge": "#fde3cf", "both": "#e6e9ee", "store": "#e3f1e5"}
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
WIDE, HIGH = 176, 56  # of a box


@dataclass(frozen=True, slots=True)
class Box:
    """A box at a place of the grid: its first line is its name, the second one says what it does."""

    column: float
    row: float
    name: str
    about: str = ""
    kind: str = "both"
    width: float = 1.0

    @property
    def left(self) -> float:
        """Return the left edge."""
        return 12 + self.column * 216

    @property
    def top(self) -> float:
        """Return the upper edge."""
        return 12 + self.row * 96

    @property
    def wide(self) -> float:
        """Return the width in pixels."""
        return WIDE + (self.width - 1) * 216


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes by key, arrows between keys, and what it shows, for readers who do not see it."""

    title: str
    boxes: dict[str, Box]
    arrows: tuple[tuple[str, str], ...]


LOOP = Drawing(
    "Chats are imported, labelled by raters and judged by LACE; both meet in the report and the gate; "
    "a released prompt changes the judge, and production is sampled every night.",
    {
        "chats": Box(0, 1, "Chats", "imported or sent", "store"),
        "label": Box(1, 0, "Label", "raters, then consensus", "people"),
        "evaluate": Box(1, 2, "Evaluate", "runs of a judge", "judge"),
        "align": Box(2, 1, "Align", "report, disagreements"),
        "revise": Box(3, 1, "Revise", "a new prompt version", "people"),
        "gate": Box(3, 2, "Gate and release", "regression test, a lead"),
        "monitor": Box(2, 2.9, "Monitor", "nightly samples, alerts", "judge"),
    },
    (
        ("chats", "label"),
        ("chats", "evaluate"),
        ("label", "align"),
        ("evaluate", "align"),
        ("align", "revise"),
        ("revise", "gate"),
        ("gate", "evaluate"),
        ("gate", "monitor"),
        ("monitor", "align"),
    ),
)
PROCESSES = Drawing(
    "Browsers and programs reach the web servers. Web servers, workers and clock share the database, which "
    "is the truth; the broker wakes workers; only judge workers call the model endpoint.",
    {
        "people": Box(0, 0, "Browsers", "raters, authors, leads", "people"),
        "programs": Box(0, 1, "Programs", "API tokens, webhooks", "people"),
        "web": Box(1, 0.5, "Web servers", "pages, API, help"),
        "clock": Box(1, 2, "Clock", "wakes the sweep"),
        "database": Box(2, 0.5, "Database", "SQLite or PostgreSQL", "store"),
        "broker": Box(2, 2, "Broker", "only wakes workers", "store"),
        "worker": Box(3, 2, "Default worker", "the sweep"),
        "judges": Box(3, 0.5, "Judge workers", "leases, time slices", "judge"),
        "model": Box(4, 0.5, "Model endpoint", "OpenAI-compatible", "judge"),
    },
    (
        ("people", "web"),
        ("programs", "web"),
        ("web", "database"),
        ("web", "broker"),
        ("clock", "broker"),
        ("broker", "worker"),
        ("broker", "judges"),
        ("judges", "database"),
        ("worker", "database"),
        ("judges", "model"),
    ),
)
ROOMS = Drawing(
    "Imports go down: lace_site, alignment, evaluation, labeling, common. Evaluation never reads labels.",
    {
        "site": Box(0, 0, "lace_site", "settings, routes, health, help: wires everything", width=2.4),
        "alignment": Box(0, 1, "alignment", "labels × verdicts: reports, gate, monitoring", width=2.4),
        "evaluation": Box(0, 2, "evaluation", "prompts, engines, gateway, runs; no labels", "judge", 2.4),
        "labeling": Box(0, 3, "labeling", "chats, rubric, people, labels, jobs", "people", 2.4),
        "common": Box(0, 4, "common", "what pages, API and commands share", "store", 2.4),
    },
    (("site", "alignment"), ("alignment", "evaluation"), ("evaluation", "labeling"), ("labeling", "common")),
)
DRAWINGS = {"loop.svg": LOOP, "processes.svg": PROCESSES, "packages.svg": ROOMS}


def main() -> None:
    """Write the drawings."""
    for name, drawing in DRAWINGS.items():
        (IMAGES / name).write_text(svg(drawing), encoding="utf-8")


def svg(drawing: Drawing) -> str:
    """Return the drawing as SVG."""
    boxes = drawing.boxes
    width = max(box.left + box.wide for box in boxes.values()) + 12
    height = max(box.top + HIGH for box in boxes.values()) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="{FONT}">',
        f"<title>{escape(drawing.title)}</title>",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8Z" fill="{LINE}"/></marker></defs>',
        *(_arrow(boxes[one], boxes[other]) for one, other in drawing.arrows),
        *(_box(box) for box in boxes.values()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _box(box: Box) -> str:
    middle = box.left + box.wide / 2
    first = box.top + (25 if box.about else 33)
    text = (
        f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.wide:g}" height="{HIGH}" rx="6" '
        f'fill="{FILLS[box.kind]}" stroke="{LINE}"/>'
        f'<text x="{middle:g}" y="{first:g}" text-anchor="middle" font-size="15" font-weight="600" '
        f'fill="{INK}">{escape(box.name)}</text>'
    )
    if not box.about:
        return text
    return (
        f'{text}<text x="{middle:g}" y="{box.top + 44:g}" text-anchor="middle" font-size="12" '
        f'fill="{INK}">{escape(box.about)}</text>'
    )


def _arrow(one: Box, other: Box) -> str:
    """Return a line from the edge of a box to the edge of another, along the line between their middles."""
    x1, y1 = one.left + one.wide / 2, one.top + HIGH / 2
    x2, y2 = other.left + other.wide / 2, other.top + HIGH / 2
    ax, ay = _edge(x1, y1, x2, y2, one)
    bx, by = _edge(x2, y2, x1, y1, other)
    return (
        f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{bx:.1f}" y2="{by:.1f}" stroke="{LINE}" stroke-width="2" '
        'marker-end="url(#end)"/>'
    )


def _edge(x: float, y: float, to_x: float, to_y: float, box: Box) -> tuple[float, float]:
    dx, dy = to_x - x, to_y - y
    scale = min(
        (box.wide / 2 + 4) / abs(dx) if dx else float("inf"), (HIGH / 2 + 4) / abs(dy) if dy else float("inf")
    )
    return x + dx * scale, y + dy * scale


if __name__ == "__main__":
    main()
