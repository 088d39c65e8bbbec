// Words to the lead: this chat needs a look, this criterion is unclear, a remark on the chat.

import { call, reasons, uuid } from "./rate_api.js";

export class Notes {
  #dialog = document.querySelector("#note");
  #form = this.#dialog.querySelector("form");
  #words = this.#dialog.querySelector("textarea");
  #problem = this.#dialog.querySelector(".error");
  #url;
  #say;
  #criterion = null;
  #client = "";

  // url: where notes are posted; say(text): tells the rater
  constructor({ url, say }) {
    this.#url = url;
    this.#say = say;
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#form.addEventListener("change", () => this.#kindChanged());
    this.#form.querySelector("[value=cancel]").addEventListener("click", () => this.#dialog.close());
  }

  // criterion: {key, name, text, version}, the one that is open, with its text as it stands
  open(kind, criterion) {
    this.#criterion = criterion;
    this.#client = uuid();
    this.#words.value = "";
    this.#problem.hidden = true;
    this.#dialog.querySelector(".about").textContent = criterion.name;
    this.#dialog.querySelector("blockquote").textContent = criterion.text;
    this.#form.elements.kind.value = kind;
    this.#kindChanged();
    this.#dialog.showModal();
    this.#words.focus();
  }

  #kindChanged() {
    this.#dialog.querySelector("blockquote").hidden = this.#form.elements.kind.value !== "unclear";
  }

  // The same client_id for every try: a note whose reply got lost is not there twice.
  async #send() {
    const kind = this.#form.elements.kind.value;
    const body = { kind, text: this.#words.value.trim(), client_id: this.#client };
    if (kind === "unclear") Object.assign(body, { criterion: this.#criterion.key, version: this.#criterion.version });
    if (!body.text) return this.#complain("Say in a few words what it is.");
    const send = this.#form.querySelector("[type=submit]");
    send.disabled = true;
    try {
      const response = await call("POST", this.#url, body);
      if (!response.ok) return this.#complain(response.status === 400 ? reasons(await response.json()) : "It could not be sent.");
      this.#dialog.close();
      return this.#say("Sent to the lead");
    } catch {
      return this.#complain("The server can’t be reached. Try again.");
    } finally {
      send.disabled = false;
    }
  }

  #complain(text) {
    this.#problem.textContent = text;
    this.#problem.hidden = false;
  }
}
