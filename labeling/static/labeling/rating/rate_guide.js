// The guideline panel beside the chat, and the word that a text was changed while the rater worked.

import { call } from "../../common/api.js";

const LOOK = 120_000; // ms between two looks for newer texts

export class Guide {
  #panel = document.querySelector("#guideline");
  #leave;

  // leave(): the rater closed the panel
  constructor(leave) {
    this.#leave = leave;
    this.#panel.querySelector("button").addEventListener("click", () => this.close());
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.close();
    });
  }

  // The notice that texts are new: its first one is opened to be read.
  notice(open) {
    const bar = document.querySelector("#changes");
    if (!bar) return;
    const [read, hide] = bar.querySelectorAll("button");
    hide.addEventListener("click", () => {
      bar.remove();
      this.#leave();
    });
    read.addEventListener("click", () => {
      if (read.dataset.first) open(read.dataset.first);
      bar.remove();
      this.#show();
    });
  }

  // Shows what there is on the criterion that is open.
  follow(key) {
    for (const part of this.#panel.querySelectorAll("[data-guide]")) part.hidden = part.dataset.guide !== key;
    this.#panel.scrollTop = 0;
  }

  toggle() {
    return this.#panel.hidden ? this.#show() : this.close();
  }

  #show() {
    this.#panel.hidden = false;
    this.#panel.focus();
  }

  close() {
    this.#panel.hidden = true;
    this.#leave();
  }
}

// Looks now and then whether a text reads otherwise by now; the page keeps those it was opened with.
// numbers: {criterion: version; "": the guideline's}; names: the same in words; read: where changes are shown
// soon: the page is not new; held(until): how long the server holds the chat
export function watchTexts({ url, read, numbers, names, soon, held, signal }) {
  const banner = document.querySelector("#reworded");
  const look = async () => {
    if (document.hidden) return;
    try {
      const { number, criteria, lease_expires_at } = await (await call("GET", url)).json();
      if (signal.aborted) return;
      if (lease_expires_at) held(lease_expires_at);
      const found = [{ key: "", version: number }, ...criteria];
      tell(banner, found.filter(({ key, version }) => version > numbers[key]).map(({ key }) => link(names[key], `${read}?${new URLSearchParams({ criterion: key, was: numbers[key] })}`)));
    } catch {
      // offline: the next look will tell
    }
  };
  banner.querySelector("button").addEventListener("click", () => location.reload());
  const beat = setInterval(look, LOOK);
  document.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", () => clearInterval(beat));
  if (soon) look();
}

function tell(banner, links) {
  const words = banner.querySelector("span");
  if (links.length === words.childElementCount) return; // nothing, or it is said already
  banner.hidden = false;
  const list = links.flatMap((one, n) => (n ? [", ", one] : [one]));
  words.replaceChildren("Reworded while you work: ", ...list, ". Your answers are kept.");
}

function link(name, href) {
  const made = document.createElement("a");
  Object.assign(made, { textContent: name, href, target: "_blank", title: "What changed" });
  return made;
}
