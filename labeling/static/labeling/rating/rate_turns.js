// The chat's turns on the rating screen: scroll, fold, select turns or words by keys.

import { Words } from "./rate_spans.js";

// Scrolls the chat by most of a screen: the pane, or on a phone the page.
export function scrollChat(direction) {
  const pane = document.querySelector("#main");
  const target = pane.scrollHeight > pane.clientHeight ? pane : document.scrollingElement;
  target.scrollBy({ top: direction * target.clientHeight * 0.8 });
}

// Unfolds all tool and system turns, or folds them when all are open.
export function foldTurns() {
  const folded = [...document.querySelectorAll("#main details")];
  const open = folded.some((turn) => !turn.open);
  for (const turn of folded) turn.open = open;
  labelFold();
}

export function labelFold() {
  const button = document.querySelector("#fold");
  const folded = [...document.querySelectorAll("#main details")];
  button.hidden = !folded.length;
  const closed = folded.some((turn) => !turn.open);
  button.querySelector("span").textContent = closed ? "Unfold tool turns" : "Fold tool turns";
}

// On a phone chat and criteria are stacked: a button jumps between them and restores the position.
export function wireAcross(button, criteria, { signal }) {
  let read = 0;
  let there = false;
  const watcher = new IntersectionObserver(([{ isIntersecting }]) => {
    there = isIntersecting;
    button.textContent = there ? "Chat" : "Criteria";
  });
  watcher.observe(document.querySelector("#ask"));
  signal.addEventListener("abort", () => watcher.disconnect());
  button.addEventListener("click", () => {
    if (there) return scrollTo({ top: read });
    read = scrollY;
    return criteria();
  });
}

export class Picking {
  active = false;
  words = null; // set while words of a turn are selected
  #pane = document.querySelector("#main");
  #bar = document.querySelector("#picking");
  #help = this.#bar.querySelector("span");
  #turns;
  #here = null; // the box that had the focus last
  #on;

  // on: {toggle(n, on), turn(n): its text, words(): adds the selected words}
  constructor(on) {
    this.#on = on;
    const turn = (element) => ({ element, n: Number(element.id.slice(1)), box: null });
    this.#turns = [...this.#pane.querySelectorAll(".turn")].map(turn);
  }

  mark(evidence) {
    const touched = new Set(evidence.map((part) => part.message));
    const whole = new Set(evidence.filter((part) => part.start === undefined).map((part) => part.message));
    for (const { element, n, box } of this.#turns) {
      element.classList.toggle("picked", touched.has(n));
      if (box) box.checked = whole.has(n);
    }
  }

  start(evidence) {
    if (!this.#turns.length) return;
    this.active = true;
    for (const turn of this.#turns) turn.box ??= this.#box(turn);
    this.mark(evidence);
    this.#pane.classList.add("picking");
    this.#bar.hidden = false;
    this.#say(this.#bar.dataset.turns);
    const inSight = this.#turns.find(({ element }) => element.getBoundingClientRect().top > 0);
    this.#go(this.#turns.find(({ box }) => box.checked) ?? inSight ?? this.#turns[0]);
  }

  end() {
    this.active = false;
    this.#leaveWords();
    this.#pane.classList.remove("picking");
    this.#bar.hidden = true;
  }

  step(by) {
    const at = this.#at;
    this.#leaveWords();
    this.#go(this.#turns[Math.min(Math.max(at + by, 0), this.#turns.length - 1)]);
  }

  // From turns to the words of one, and back.
  enter() {
    const { n, element } = this.#turns[this.#at] ?? {};
    if (!element) return;
    const words = new Words(this.#on.turn(n));
    if (words.empty) return;
    this.words = words;
    this.#pane.focus({ preventScroll: true });
    this.#read();
  }

  move(by, grow) {
    this.words.move(by, grow);
    this.#read();
  }

  leave() {
    const box = this.#here;
    this.#leaveWords();
    box?.focus({ preventScroll: true });
  }

  get #at() {
    return this.#turns.findIndex(({ box }) => box === this.#here);
  }

  #leaveWords() {
    if (!this.words) return;
    this.words = null;
    getSelection().removeAllRanges();
    this.#say(this.#bar.dataset.turns);
  }

  #read() {
    this.#say(`${this.#bar.dataset.words} “${getSelection().toString().slice(0, 80)}”`);
  }

  #say(text) {
    this.#help.textContent = text;
  }

  #go({ box, element }) {
    this.#here = box;
    box.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }

  #box({ n, element }) {
    const label = document.createElement("label");
    label.className = "pick";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.addEventListener("change", () => this.#on.toggle(n, box.checked));
    box.addEventListener("focus", () => (this.#here = box));
    label.append(box, `Turn ${n} is evidence`);
    element.append(label);
    return box;
  }
}
