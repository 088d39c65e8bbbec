// The bar below chat and criteria: saving status, short messages, blocking errors.

import { tryAgain } from "../../common/api.js";

const $ = (selector) => document.querySelector(selector);
const TOAST = 5000;

export class Dock {
  #timer = 0;

  constructor({ signal }) {
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  // kind: "off" while answers are not saved, "busy" while they are sent, else ""
  saving(words, kind) {
    const field = $("#save");
    field.className = `save soft nowrap ${kind}`;
    if (field.textContent !== words) field.textContent = words;
    const heard = $("#announcement"); // for screen readers: problems with saving and their end
    if (kind === "off" && heard.textContent !== "Not saved") heard.textContent = "Not saved";
    if (kind === "" && heard.textContent) heard.textContent = "Saved";
  }

  signedOut(is) {
    $("#signed-out").hidden = !is;
  }

  stop(message) {
    $("#stopped").hidden = false;
    $("#stopped p").textContent = message;
    $("#lease").hidden = true;
    const controls = document.querySelectorAll("#ask :is(.choice button, textarea, .pick-turns, .ev button)");
    for (const control of controls) control.disabled = true;
  }

  say(text) {
    const toast = $("#said");
    toast.hidden = false;
    toast.textContent = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (toast.hidden = true), TOAST);
  }

  // Returns the error as text; shows the sign-in notice to signed-out raters.
  failed(error) {
    if (error.word === "Signed out") this.signedOut(true);
    return tryAgain(error);
  }
}
