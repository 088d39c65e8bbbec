// How long the chat is held for this rater: silent until two minutes are left, then a countdown.

const WARN = 120_000;

export class Lease {
  #ends;
  #length;
  #extend;
  #bar = document.querySelector("#lease");
  #told = "";

  #leave;

  // left, length: ms; extend(): asks the server, resolves to the ms left then; leave(): the bar had the focus
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

  // Every saved answer holds the chat anew.
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
    this.#bar.querySelector("b").textContent = over ? "" : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    this.#tell(
      over
        ? "The time for this chat ran out. Your answers are kept as drafts; extend to go on, unless another rater has taken it."
        : "Less than two minutes left for this chat.",
    );
  }

  // Said once, not every second.
  #tell(text) {
    if (text === this.#told) return;
    this.#told = text;
    this.#bar.querySelector("span").textContent = text;
  }
}
