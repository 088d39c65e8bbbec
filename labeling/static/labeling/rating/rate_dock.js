// What the screen says beside chat and criteria: how saving goes, a word in passing, what stops the work.

import { tryAgain } from "../../common/api.js";

const $ = (selector) => document.querySelector(selector);
const TOAST = 5000;

export class Dock {
  #timer = 0;

  constructor({ signal }) {
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  // kind: "off" when something is not saved, "busy" while it is sent, else ""
  saving(words, kind) {
    const field = $("#save");
    field.className = `save soft nowrap ${kind}`;
    if (field.textContent !== words) field.textContent = words;
    const heard = $("#heard"); // by a screen reader: that something goes wrong, and that it is over
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
    for (const control of document.querySelectorAll("#ask :is(input, textarea, .pick-turns, .ev button)")) control.disabled = true;
  }

  say(text) {
    const toast = $("#said");
    toast.hidden = false;
    toast.textContent = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (toast.hidden = true), TOAST);
  }

  // What went wrong, in words; who is signed out is shown the way in.
  failed(error) {
    if (error.word === "Signed out") this.signedOut(true);
    return tryAgain(error);
  }
}
