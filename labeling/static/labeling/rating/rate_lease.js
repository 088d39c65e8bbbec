// The lease of the chat: a countdown starts two minutes before its end.

const WARN = 120_000;

export class Lease {
  #ends;
  #length;
  #extend;
  #bar = document.querySelector("#lease");
  #announced = "";

  #leave;

  // left, length: ms; extend(): resolves to the ms left; leave(): called when a focused bar disappears
  constructor({ left, length, extend, leave, signal }) {
    this.#ends = Date.now() + left;
    this.#length = length;
    this.#extend = extend;
    this.#leave = leave;
    const beat = setInterval(() => this.#show(), 1000);
    signal.addEventListener("abort", () => clearInterval(beat));
    this.#bar.querySelector("button").addEventListener("click", () => this.#ask());
    this.#show();
  }

  // Each saved answer renews the lease.
  renewed(left = this.#length) {
    this.#ends = Date.now() + left;
    this.#show();
  }

  async #ask() {
    const button = this.#bar.querySelector("button");
    button.disabled = true;
    const left = await this.#extend();
    button.disabled = false;
    if (left === null) return;
    this.renewed(left);
    this.#leave();
  }

  #show() {
    const left = this.#ends - Date.now();
    this.#bar.hidden = left > WARN;
    if (left > WARN) return this.#tell("");
    const seconds = Math.max(0, Math.ceil(left / 1000));
    const over = left <= 0;
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    this.#bar.querySelector("b").textContent = over ? "" : time;
    this.#tell(
      over
        ? "Your time for this chat expired. Your drafts are kept. Extend unless another rater has the chat."
        : "Less than two minutes left for this chat.",
    );
  }

  // Announces a text once, not every second.
  #tell(text) {
    if (text === this.#announced) return;
    this.#announced = text;
    this.#bar.querySelector("span").textContent = text;
  }
}
