// Maps words on screen to positions in the message text, in code points.

const FAR = 400; // maximum distance in the search for a short piece
const SHORT = 8;

// UTF-16 units ↔ code points of one text
const points = (text, units) => [...text.slice(0, units)].length;
function units(text, wanted) {
  let at = 0;
  for (let n = 0; n < wanted && at < text.length; n++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

// The text nodes of an element, without marks of hidden characters.
export function textNodes(root) {
  const keep = (node) =>
    node.parentElement.closest(".hid") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, keep);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
}

// One turn: its rendered Markdown aligned with its text.
export class TurnText {
  #runs = null;

  // element: the turn; text: its content as stored
  constructor(element, text) {
    this.element = element;
    this.n = Number(element.id.slice(1));
    this.text = text;
  }

  get body() {
    return this.element.querySelector(".md, pre");
  }

  // Pieces that are equal on screen and in the text: {node, at, from, length}, in order.
  get runs() {
    return (this.#runs ??= this.#aligned());
  }

  #aligned() {
    const runs = [];
    let reached = 0;
    const place = (node, at, piece) => {
      const from = this.text.indexOf(piece, reached);
      if (from < 0 || (piece.length < SHORT && from - reached > FAR)) return false;
      runs.push({ node, at, from, length: piece.length });
      reached = from + piece.length;
      return true;
    };
    for (const node of textNodes(this.body)) {
      if (!node.data.trim() || place(node, 0, node.data)) continue;
      for (const { index, 0: word } of node.data.matchAll(/\S+/g)) place(node, index, word);
    }
    return runs;
  }

  // A selection inside this turn as evidence; null without any word of the text.
  part(range) {
    let [start, end] = [Infinity, -1];
    for (const { node, at, from, length } of this.runs) {
      if (!range.intersectsNode(node)) continue;
      const first = Math.max(node === range.startContainer ? range.startOffset : 0, at);
      const last = Math.min(node === range.endContainer ? range.endOffset : node.data.length, at + length);
      if (first >= last) continue;
      start = Math.min(start, from + first - at);
      end = Math.max(end, from + last - at);
    }
    if (end < 0) return null;
    const chosen = this.text.slice(start, end);
    const quote = chosen.trim();
    if (!quote) return null;
    start = points(this.text, start + chosen.indexOf(quote));
    return { message: this.n, start, end: start + [...quote].length };
  }

  // The words of a passage.
  quote({ start, end }) {
    return this.text.slice(units(this.text, start), units(this.text, end));
  }

  // The range of a passage on screen; null where it is not visible.
  range(part) {
    return this.#between(units(this.text, part.start), units(this.text, part.end));
  }

  #between(start, end) {
    const inside = this.runs.filter(({ from, length }) => from < end && from + length > start);
    if (!inside.length) return null;
    const [first, last] = [inside[0], inside.at(-1)];
    const range = document.createRange();
    range.setStart(first.node, first.at + Math.max(0, start - first.from));
    range.setEnd(last.node, last.at + Math.min(last.length, end - last.from));
    return range;
  }

  // The ranges of the words on screen, for selecting them by keys.
  words() {
    return this.runs.flatMap(({ node, at, length }) =>
      [...node.data.slice(at, at + length).matchAll(/\S+/g)].map(({ index, 0: word }) => ({
        node,
        start: at + index,
        end: at + index + word.length,
      })),
    );
  }
}
