// Several disagreements at once: mark a cause, assign, add their chats to a set, pin them beside the prompt.

import { call, reasons, tryAgain } from "../../common/api.js";
import { $ } from "./triage.js";

export class Selection {
  // triage: saves the changes; rows: the rows of the page.
  constructor(triage, rows) {
    Object.assign(this, { triage, rows, bar: $("#selection") });
    if (!this.bar) return; // readers who may not triage
    triage.root.addEventListener("change", ({ target }) => {
      if (target.matches("[data-select]")) this.#show();
      if (target.matches("[data-select-all]")) this.#all(target.checked);
    });
    this.bar.addEventListener("change", ({ target }) => this.#chosen(target));
    this.bar.addEventListener("click", ({ target }) => {
      if (target.closest("[data-clear]")) this.#all(false);
      if (target.closest("[data-refine]")) this.#refine();
    });
    $("#to-set")?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#addToSet(event.target);
    });
    $("[data-open-set]", this.bar)?.addEventListener("click", () => $("#to-set-dialog").showModal());
    $("#to-set [value=cancel]")?.addEventListener("click", () => $("#to-set-dialog").close());
    this.#show(); // the browser may restore the boxes of an earlier visit
  }

  selected() {
    return this.rows().filter((row) => $("[data-select]", row)?.checked);
  }

  toggle(row) {
    const box = $("[data-select]", row);
    if (!box) return;
    box.checked = !box.checked;
    this.#show();
  }

  #all(checked) {
    for (const row of this.rows()) $("[data-select]", row).checked = checked;
    this.#show();
  }

  #show() {
    const { length } = this.selected();
    const all = $("[data-select-all]", this.triage.root);
    const every = this.rows().length;
    this.bar.hidden = length === 0;
    $("[data-count]", this.bar).textContent = `${length} selected`;
    all.checked = length === every;
    all.indeterminate = length > 0 && length < every;
    const criteria = new Set(this.selected().map(({ dataset }) => dataset.criterion));
    const refine = $("[data-refine]", this.bar);
    refine.disabled = criteria.size !== 1;
    refine.title = criteria.size > 1 ? "Select disagreements of one criterion" : "";
  }

  // One of the two selects, which then show their headings again.
  #chosen(target) {
    const { name, value } = target;
    if (!["cause", "owner"].includes(name) || !value) return;
    const changed = this.triage.changeAll(this.selected(), { [name]: value === "none" ? "" : value });
    if (!changed) this.triage.say("Nothing to change: all selected ones have this value");
    target.value = "";
  }

  #refine() {
    const rows = this.selected();
    const url = new URL(rows[0].dataset.refine, location.href);
    url.searchParams.set("pin", rows.map(({ dataset }) => dataset.chat).join(","));
    location.assign(url);
  }

  async #addToSet(form) {
    const ids = this.selected().map(({ dataset }) => Number(dataset.id));
    const { set, name, split } = Object.fromEntries(new FormData(form));
    const wrong = $(".error", form);
    wrong.hidden = true;
    try {
      const body = { misalignments: ids, set: set === "new" ? name : set, new: set === "new", split };
      const response = await call("POST", form.dataset.api, body);
      const answer = await response.json();
      if (response.ok) {
        form.dispatchEvent(new Event("draft:accepted", { bubbles: true }));
        $("#to-set-dialog").close();
        form.reset();
        return this.#added(answer);
      }
      wrong.textContent = answer.detail ?? reasons(answer);
    } catch (error) {
      wrong.textContent = tryAgain(error);
    }
    wrong.hidden = false;
  }

  #added({ set, url, added, kept }) {
    const link = Object.assign(document.createElement("a"), { href: url, textContent: set });
    const chats = `${added} chat${added === 1 ? "" : "s"}`;
    $("#saving").replaceChildren(`Added ${chats} to `, link, kept ? `; ${kept} already there` : "");
  }
}
