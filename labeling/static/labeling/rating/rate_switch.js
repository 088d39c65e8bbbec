// On a phone either the chat or the criteria are shown: a switch that keeps the place in both.

// Whether the rater has no keyboard at hand: then no text names a key.
export function byTouch() {
  return matchMedia("(pointer: coarse), (max-width: 760px)").matches;
}

export class Switch {
  #buttons = [...document.querySelectorAll("#switch button")];
  #count = document.querySelector("#switch span");
  #places = { chat: 0, criteria: 0 }; // scrolled px of the page
  #on;

  // on(which): called when the rater presses a button
  constructor(on) {
    this.#on = on;
    for (const button of this.#buttons) {
      button.addEventListener("click", () => {
        this.show(button.value);
        this.#on(button.value);
      });
    }
  }

  get shown() {
    return this.#buttons.find((button) => button.ariaPressed === "true").value;
  }

  // which: "chat" or "criteria"
  show(which) {
    if (which === this.shown) return;
    this.#places[this.shown] = scrollY;
    for (const button of this.#buttons) button.ariaPressed = String(button.value === which);
    scrollTo(0, this.#places[which]);
  }

  // open: number of criteria without a complete answer
  count(open) {
    this.#count.textContent = open ? `${open} open` : "all answered";
  }
}
