// Notes to the lead: flagged chat, unclear criterion, comment.

import { call, reasons, tryAgain, uuid } from "../../common/api.js";

// As the page lists them.
const KINDS = { flag: "For the lead", unclear: "Criterion unclear", comment: "Comment" };

export class Notes {
  #dialog = document.querySelector("#note");
  #form = this.#dialog.querySelector("form");
  #words = this.#dialog.querySelector("textarea");
  #problem = this.#dialog.querySelector(".error");
  #list = document.querySelector("#notes");
  #url;
  #say;
  #criterion = null;
  #client = "";

  // url: where notes are posted; say(text): shows a message
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

  // criterion: the open one, {key, name, text, version}
  open(kind, criterion) {
    this.#criterion = criterion;
    this.#client = uuid();
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

  async #send() {
    const kind = this.#form.elements.kind.value;
    const text = this.#words.value.trim();
    const { key, name, version } = this.#criterion;
    if (!text) return this.#complain("Describe it in a few words.");
    const send = this.#form.querySelector("[type=submit]");
    send.disabled = true;
    try {
      const subject = kind === "unclear" && { criterion: key, version };
      const response = await this.#post({ kind, text, ...subject });
      if (!response.ok) {
        const why = response.status === 400 && reasons(await response.json());
        return this.#complain(why || "Not sent. Try again.");
      }
      this.#words.value = "";
      this.#form.dispatchEvent(new Event("draft:accepted", { bubbles: true }));
      this.#dialog.close();
      this.#show(kind, kind === "unclear" ? name : "", text);
      return this.#say("Sent to the lead");
    } catch (error) {
      return this.#complain(tryAgain(error));
    } finally {
      send.disabled = false;
    }
  }

  // Retries use the same client_id, so that a lost reply does not duplicate the note. A note that was changed
  // since gets a new client_id.
  async #post(body) {
    const response = await call("POST", this.#url, { ...body, client_id: this.#client });
    if (response.status !== 409) return response;
    this.#client = uuid();
    return call("POST", this.#url, { ...body, client_id: this.#client });
  }

  #show(kind, about, text) {
    const row = document.createElement("li");
    const what = document.createElement("b");
    what.textContent = about ? `${KINDS[kind]}: ${about}` : KINDS[kind];
    const words = document.createElement("span");
    words.dir = "auto";
    words.textContent = text;
    row.append(what, " ", words);
    this.#list.querySelector("ul").append(row);
    this.#list.hidden = false;
  }

  #complain(text) {
    this.#problem.textContent = text;
    this.#problem.hidden = false;
  }
}
