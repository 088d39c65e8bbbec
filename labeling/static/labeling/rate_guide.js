// The guideline panel beside the chat, and the word that a text was changed while the rater worked.

import { call } from "./rate_api.js";

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
    hide.addEventListener("click", () => bar.remove());
    read.addEventListener("click", () => {
      if (read.dataset.first) open(read.dataset.first);
      bar.remove();
      if (this.#panel.hidden) this.toggle();
    });
  }

  // Shows what there is on the criterion that is open.
  follow(key) {
    for (const part of this.#panel.querySelectorAll("[data-guide]")) part.hidden = part.dataset.guide !== key;
    this.#panel.scrollTop = 0;
  }

  toggle() {
    if (!this.#panel.hidden) return this.close();
    this.#panel.hidden = false;
    return this.#panel.focus();
  }

  close() {
    this.#panel.hidden = true;
    this.#leave();
  }
}

// Looks now and then whether a criterion reads otherwise by now; the page keeps the text it was opened with.
export function watchTexts({ url, versions, names, signal }) {
  const banner = document.querySelector("#reworded");
  const look = async () => {
    if (document.hidden || !banner.hidden) return;
    try {
      const { criteria } = await (await call("GET", url)).json();
      const newer = criteria.filter(({ key, version }) => versions[key] && version > versions[key]);
      if (!newer.length) return;
      banner.querySelector("span").textContent = `Reworded while you work: ${newer.map(({ key }) => names[key]).join(", ")}. Your answers are kept.`;
      banner.hidden = false;
    } catch {
      // offline: the next look will tell
    }
  };
  banner.querySelector("button").addEventListener("click", () => location.reload());
  const beat = setInterval(look, LOOK);
  document.addEventListener("visibilitychange", look, { signal });
  signal.addEventListener("abort", () => clearInterval(beat));
}
