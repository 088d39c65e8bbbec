// The chat's turns on the rating screen: picking them as evidence, searching in them.

const pane = document.querySelector("#main");
const bar = document.querySelector("#picking");
const turns = [...pane.querySelectorAll(".turn")].map((element) => ({ element, n: Number(element.id.slice(1)), box: null, text: "" }));

// Scrolls the chat by most of a screen: the pane, or on a phone the page.
export function scrollChat(direction) {
  const target = pane.scrollHeight > pane.clientHeight ? pane : document.scrollingElement;
  target.scrollBy({ top: direction * target.clientHeight * 0.8 });
}

export class Picking {
  active = false;
  #toggle;

  // toggle(n, on): a turn was picked or dropped
  constructor(toggle) {
    this.#toggle = toggle;
  }

  mark(evidence) {
    const chosen = new Set(evidence.map((part) => part.message));
    for (const { element, n, box } of turns) {
      element.classList.toggle("picked", chosen.has(n));
      if (box) box.checked = chosen.has(n);
    }
  }

  start(evidence) {
    if (!turns.length) return;
    this.active = true;
    for (const turn of turns) turn.box ??= this.#box(turn);
    this.mark(evidence);
    pane.classList.add("picking");
    bar.hidden = false;
    const inSight = turns.find(({ element }) => element.getBoundingClientRect().top > 0);
    this.#go(turns.find(({ box }) => box.checked) ?? inSight ?? turns[0]);
  }

  end() {
    this.active = false;
    pane.classList.remove("picking");
    bar.hidden = true;
  }

  step(by) {
    const at = turns.findIndex(({ box }) => box === document.activeElement);
    this.#go(turns[Math.min(Math.max(at + by, 0), turns.length - 1)]);
  }

  #go({ box, element }) {
    box.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }

  #box({ n, element }) {
    const label = document.createElement("label");
    label.className = "pick";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.addEventListener("change", () => this.#toggle(n, box.checked));
    label.append(box, `Turn ${n} is evidence`);
    element.append(label);
    return box;
  }
}

// leave(): the rater is done searching
export function wireSearch(leave) {
  const form = document.querySelector(".search");
  const field = form.querySelector("input");
  let hits = [];
  let at = -1;

  function search() {
    const wanted = field.value.trim().toLowerCase();
    for (const turn of turns) turn.text ||= turn.element.querySelector(".body").textContent.toLowerCase();
    hits = wanted ? turns.filter((turn) => turn.text.includes(wanted)) : [];
    for (const turn of turns) turn.element.classList.toggle("hit", hits.includes(turn));
    document.querySelector("#found").textContent = wanted ? `${hits.length} turn${hits.length === 1 ? "" : "s"}` : "";
    at = -1;
    next();
  }

  function next() {
    for (const { element } of turns) element.classList.remove("here");
    if (!hits.length) return;
    at = (at + 1) % hits.length;
    const { element } = hits[at];
    element.classList.add("here");
    element.querySelector("details")?.setAttribute("open", "");
    element.scrollIntoView({ block: "center" });
  }

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter") next();
    if (event.key !== "Escape") return;
    event.preventDefault();
    field.value = "";
    search();
    leave();
  });
}
