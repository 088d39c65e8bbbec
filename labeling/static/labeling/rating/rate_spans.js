// Selecting words of a turn as evidence: by dragging or by keys. Evidence is highlighted.

import { TurnText } from "./rate_text.js";

const byName = new Map(); // active highlights by name

// Highlights ranges in the chat without changing its markup; older browsers show the marked turn only.
export function tint(name, ranges) {
  if (!globalThis.CSS?.highlights) return;
  byName.set(name, ranges);
  CSS.highlights.set(name, new Highlight(...ranges));
}

export function clearTints() {
  for (const name of byName.keys()) CSS.highlights.delete(name);
  byName.clear();
}

export class Spans {
  #turns;

  // texts: {n: content of message n}
  constructor(texts) {
    const turns = [...document.querySelectorAll("#main .turn")];
    const content = (element) => texts[Number(element.id.slice(1))] ?? "";
    this.#turns = new Map(turns.map((element) => [element, new TurnText(element, content(element))]));
  }

  turn(n) {
    return [...this.#turns.values()].find((turn) => turn.n === n);
  }

  // The selection in the chat: a passage, "several" across turns, null without a selection.
  selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    const at = (node) => (node instanceof Element ? node : node.parentElement)?.closest("#main .turn");
    const [first, last] = [at(range.startContainer), at(range.endContainer)];
    if (!first) return null;
    // A double click on the last word may end at the very start of the next turn.
    if (last !== first && !(range.endOffset === 0 && first.contains(range.commonAncestorContainer))) {
      const atStart = last?.contains(range.endContainer) && range.endOffset === 0;
      const tail = atStart && first.nextElementSibling === last;
      if (!tail) return "several";
    }
    return this.#turns.get(first).part(range);
  }

  show(evidence) {
    const parts = evidence.filter((part) => part.start !== undefined);
    tint("evidence", parts.map((part) => this.turn(part.message)?.range(part)).filter(Boolean));
  }

  // The quoted words as in the chat, with marked hidden characters.
  quote(part) {
    const turn = this.turn(part.message);
    const range = turn?.range(part);
    const quote = document.createElement("q");
    quote.dir = "auto";
    if (!range) quote.textContent = turn?.quote(part) ?? "";
    else quote.append(...plain(range.cloneContents()));
    return quote;
  }
}

function plain(node) {
  const kept = [];
  for (const child of node.childNodes) {
    const whole = child.nodeType === Node.TEXT_NODE || child.classList?.contains("hid");
    kept.push(...(whole ? [child.cloneNode(true)] : [...plain(child), " "]));
  }
  return kept;
}

// Words of one turn, selected by keys: a selection that moves and extends by words.
export class Words {
  #words;
  #first = 0;
  #last = 0;

  constructor(turn) {
    turn.element.querySelector("details")?.setAttribute("open", "");
    this.#words = turn.words();
    this.#select();
  }

  get empty() {
    return !this.#words.length;
  }

  // by: +1 or −1 words; grow keeps the start
  move(by, grow) {
    const most = this.#words.length - 1;
    if (grow) this.#last = Math.min(Math.max(this.#last + by, this.#first), most);
    else this.#first = this.#last = Math.min(Math.max((by > 0 ? this.#last : this.#first) + by, 0), most);
    this.#select();
  }

  #select() {
    if (this.empty) return;
    const [from, to] = [this.#words[this.#first], this.#words[this.#last]];
    getSelection().setBaseAndExtent(from.node, from.start, to.node, to.end);
    to.node.parentElement.scrollIntoView({ block: "nearest" });
  }
}
