// Search in the chat: highlights matches; Enter goes to the next, Shift + Enter to the previous one.

import { textNodes } from "./rate_text.js";
import { tint } from "./rate_spans.js";

export class Search {
  #form = document.querySelector(".search");
  #field = document.querySelector("#search");
  #hits = []; // {turn, range}
  #at = -1;
  #leave;

  // leave(): called when the search ends
  constructor(leave) {
    this.#leave = leave;
    this.#form.hidden = false;
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    this.#field.addEventListener("input", () => this.#search());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    for (const button of this.#form.querySelectorAll("button")) {
      button.addEventListener("click", () => this.#go(Number(button.value)));
    }
  }

  focus() {
    this.#field.focus();
    this.#field.select();
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter") this.#go(event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    event.preventDefault();
    this.#field.value = "";
    this.#search();
    this.#leave();
  }

  #search() {
    const wanted = this.#field.value.trim().toLowerCase();
    const turns = [...document.querySelectorAll("#main .turn")];
    const hits = (turn) => places(turn, wanted).map((range) => ({ turn, range }));
    this.#hits = wanted ? turns.flatMap(hits) : [];
    for (const turn of turns) turn.classList.remove("hit", "here");
    for (const { turn } of this.#hits) turn.classList.add("hit");
    for (const button of this.#form.querySelectorAll("button")) button.hidden = !this.#hits.length;
    tint("found", this.#hits.map(({ range }) => range));
    this.#at = -1;
    this.#go(1);
  }

  #go(by) {
    const all = this.#hits.length;
    document.querySelector(".turn.here")?.classList.remove("here");
    this.#at = all ? (this.#at + by + all) % all : -1;
    const hit = this.#hits[this.#at];
    const none = this.#field.value.trim() && "no match";
    document.querySelector("#found").textContent = hit ? `${this.#at + 1} of ${all}` : none;
    tint("found-here", hit ? [hit.range] : []);
    if (!hit) return;
    hit.turn.classList.add("here");
    hit.turn.querySelector("details")?.setAttribute("open", "");
    const place = hit.range.startContainer.parentElement;
    place.scrollIntoView({ block: "center" });
  }
}

// The ranges of a text in a turn, also across bold or linked words.
function places(turn, wanted) {
  const nodes = textNodes(turn.querySelector(".md, pre"));
  const lower = (text) => (text.toLowerCase().length === text.length ? text.toLowerCase() : text);
  const whole = nodes.map((node) => lower(node.data)).join("");
  const found = [];
  for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + wanted.length)) {
    const range = document.createRange();
    range.setStart(...spot(nodes, at, false));
    range.setEnd(...spot(nodes, at + wanted.length, true));
    found.push(range);
  }
  return found;
}

function spot(nodes, at, ending) {
  for (const node of nodes) {
    if (at < node.data.length || (ending && at === node.data.length)) return [node, at];
    at -= node.data.length;
  }
  return [nodes.at(-1), nodes.at(-1).data.length];
}
