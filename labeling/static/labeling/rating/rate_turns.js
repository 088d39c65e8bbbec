// The chat's turns on the rating screen: scroll, fold, select turns or words by keys.

import { Words } from "./rate_spans.js";
import { byTouch } from "./rate_switch.js";

const NUMBER_PAUSE = 600; // ms in which a second digit belongs to the same turn number

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

export class Picking {
  active = false;
  words = null; // set while words of a turn are selected
  #pane = document.querySelector("#main");
  #bar = document.querySelector("#picking");
  #words = this.#bar.querySelector("span");
  #turns;
  #here = null; // the box that had the focus last
  #typed = ""; // digits of a turn number
  #timer = 0;
  #on;

  // on: {toggle(n, on), turn(n): its text, say(text)}
  constructor({ signal, ...on }) {
    this.#on = on;
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
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
    this.#help();
    const inSight = this.#turns.find(({ element }) => element.getBoundingClientRect().top > 0);
    this.#go(this.#turns.find(({ box }) => box.checked) ?? inSight ?? this.#turns[0]);
  }

  end() {
    this.settle();
    this.active = false;
    this.#leaveWords();
    this.#pane.classList.remove("picking");
    this.#bar.hidden = true;
  }

  // A digit picks the turn with that number. If it may begin a longer number, it waits for the next digit.
  digit(digit) {
    clearTimeout(this.#timer);
    const typed = this.#typed + digit;
    if (!this.#numbered(typed)) {
      if (!this.#typed) return this.#on.say(`There is no turn ${typed}`);
      this.settle();
      return this.digit(digit);
    }
    this.#typed = typed;
    const longer = this.#turns.some(({ n }) => n > typed && String(n).startsWith(typed));
    if (!longer) return this.settle();
    this.#say(`Turn ${typed}…`);
    this.#timer = setTimeout(() => this.settle(), NUMBER_PAUSE);
    return undefined;
  }

  // Picks the turn whose number was typed.
  settle() {
    clearTimeout(this.#timer);
    const turn = this.#numbered(this.#typed);
    this.#typed = "";
    if (!turn) return;
    this.#leaveWords();
    this.#help();
    turn.box.checked = !turn.box.checked;
    this.#go(turn);
    this.#on.toggle(turn.n, turn.box.checked);
  }

  #numbered(typed) {
    return this.#turns.find(({ n }) => String(n) === typed);
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
    this.#help();
  }

  #read() {
    this.#say(`${this.#bar.dataset.words} “${getSelection().toString().slice(0, 80)}”`);
  }

  #help() {
    this.#say(byTouch() ? this.#bar.dataset.touch : this.#bar.dataset.turns);
  }

  #say(text) {
    this.#words.textContent = text;
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
    box.ariaLabel = `Turn ${n} as evidence`;
    label.append(box, String(n));
    element.append(label);
    return box;
  }
}
