// The guideline panel beside the chat, and the notice of changed texts.

import { call } from "../../common/api.js";

const LOOK = 15_000; // ms between two checks for newer texts

export class Guide {
  #panel = document.querySelector("#guideline");
  #leave;
  #opened;

  // leave(): called when the rater closes the panel; opened(box): fills a criterion's list of articles
  constructor({ leave, opened }) {
    this.#leave = leave;
    this.#opened = opened;
    this.#panel.querySelector("button").addEventListener("click", () => this.close());
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      this.close();
    });
  }

  // The notice of changed texts; its button opens the first one.
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

  // Shows the texts of the open criterion.
  follow(key) {
    for (const part of this.#panel.querySelectorAll("[data-guide]")) part.hidden = part.dataset.guide !== key;
    this.#panel.scrollTop = 0;
    if (!this.#panel.hidden) this.#fill();
  }

  toggle() {
    return this.#panel.hidden ? this.#show() : this.close();
  }

  #show() {
    this.#panel.hidden = false;
    this.#panel.focus();
    this.#fill();
  }

  #fill() {
    this.#opened(this.#panel.querySelector("[data-guide]:not([hidden]) .titles"));
  }

  close() {
    this.#panel.hidden = true;
    this.#leave();
  }
}

// Checks regularly whether a text has changed; the page keeps its own texts.
// numbers: {criterion: version; "": the guideline's}; names: their names; read: address that shows changes
// soon: the page is not new; held(until): reports the end of the lease
export function watchTexts({ url, read, numbers, names, soon, held, signal }) {
  const banner = document.querySelector("#reworded");
  const look = async () => {
    if (document.hidden) return;
    try {
      const { number, criteria, lease_expires_at } = await (await call("GET", url)).json();
      if (signal.aborted) return;
      if (lease_expires_at) held(lease_expires_at);
      const found = [{ key: "", version: number }, ...criteria];
      const address = (key) => `${read}?${new URLSearchParams({ criterion: key, was: numbers[key] })}`;
      const newer = found.filter(({ key, version }) => version > numbers[key]);
      tell(banner, newer.map(({ key }) => link(names[key], address(key))));
    } catch {
      // offline: the next check will find it
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
  if (links.length === words.childElementCount) return; // no change, or already shown
  banner.hidden = false;
  const list = links.flatMap((one, n) => (n ? [", ", one] : [one]));
  words.replaceChildren("Changed while you work: ", ...list, ". Your answers are kept.");
}

function link(name, href) {
  const made = document.createElement("a");
  Object.assign(made, { textContent: name, href, target: "_blank", title: "What changed" });
  return made;
}
