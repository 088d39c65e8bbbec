// The knowledge panel: the articles that the open criterion needs, those that match the chat first.

const TYPING_PAUSE = 200; // ms without a key before a search
const TIMEOUT = 15_000;
const LISTED = 5; // titles in the guideline

let open = false; // the panel stays open from chat to chat

export class Knowledge {
  #panel = document.querySelector("#knowledge");
  #field = this.#panel.querySelector("input");
  #articles = this.#panel.querySelector(".articles");
  #status = this.#panel.querySelector("[role=status]");
  #buttons = document.querySelectorAll(".to-knowledge");
  #pages = new Map(); // {address: Promise of its HTML}
  #url = "";
  #typing = 0;
  #leave;

  // leave(): called when the rater closes the panel
  constructor({ leave, signal }) {
    this.#leave = leave;
    signal.addEventListener("abort", () => clearTimeout(this.#typing));
    this.#panel.querySelector("button").addEventListener("click", () => this.close());
    for (const button of this.#buttons) button.addEventListener("click", () => this.toggle());
    this.#panel.addEventListener("keydown", (event) => this.#key(event));
    this.#field.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#list(), TYPING_PAUSE);
    });
    this.#panel.addEventListener("toggle", ({ target }) => this.#unfolded(target), { capture: true });
    this.#show(open && !matchMedia("(max-width: 760px)").matches); // there it covers the chat
  }

  // Shows the articles of a criterion; url: where they are.
  follow(url) {
    this.#url = url;
    this.#field.value = "";
    if (open) this.#list();
  }

  toggle() {
    return open ? this.close() : this.open();
  }

  open() {
    this.#show(true);
    this.#list();
    this.#panel.focus();
  }

  close() {
    this.#show(false);
    this.#leave();
  }

  // Lists the first titles in the guideline of the criterion.
  async fill(box) {
    if (!box || box.dataset.filled) return;
    box.dataset.filled = "yes";
    try {
      const page = parsed(await this.#page(this.#url));
      const titles = [...page.querySelectorAll(".articles-of > details > summary")].slice(0, LISTED);
      const names = titles.map((title) => title.textContent.trim());
      const more = Number(page.querySelector("[data-total]").dataset.total) - titles.length;
      const items = names.map((name) => item(name, () => this.#openAt(name)));
      if (more > 0) items.push(item(`${more} more`, () => this.open()));
      box.querySelector("ul").replaceChildren(...items);
      box.hidden = !items.length;
    } catch {
      delete box.dataset.filled; // tried again with the next look at the guideline
    }
  }

  async #openAt(name) {
    this.open();
    await this.#list();
    for (const summary of this.#articles.querySelectorAll(".articles-of > details > summary")) {
      if (summary.textContent.trim() !== name) continue;
      summary.parentElement.open = true;
      summary.scrollIntoView({ block: "nearest" });
    }
  }

  #show(is) {
    open = is;
    this.#panel.hidden = !is;
    for (const button of this.#buttons) button.setAttribute("aria-expanded", String(is));
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && event.target === this.#field) {
      event.preventDefault();
      const first = this.#articles.querySelector("details");
      if (first) first.open = true;
    }
    if (event.key !== "Escape") return;
    event.preventDefault();
    if (event.target !== this.#field) return this.close();
    this.#field.value = "";
    this.#panel.focus();
    this.#list();
  }

  async #list() {
    const words = this.#field.value.trim();
    const url = words ? `${this.#url}?${new URLSearchParams({ q: words })}` : this.#url;
    const meant = () => url.startsWith(this.#url) && words === this.#field.value.trim();
    try {
      const html = await this.#page(url);
      if (!meant()) return; // another criterion or other words by now
      this.#articles.replaceChildren(...parsed(html).childNodes);
      const shown = this.#articles.querySelectorAll(":scope > details").length;
      this.#status.textContent = words ? `${shown} found` : "";
      if (words) return;
      const { total } = this.#articles.querySelector("[data-total]").dataset;
      this.#field.placeholder = `Search ${total} article${total === "1" ? "" : "s"}`;
      this.#field.hidden = total === "0";
    } catch {
      if (meant()) this.#articles.replaceChildren(failure(() => this.#list()));
    }
  }

  // Loads the text of an article when it is unfolded for the first time.
  async #unfolded(details) {
    const { article, version = "" } = details.dataset;
    if (!article || !details.open || details.childElementCount > 1) return;
    try {
      const html = await this.#page(`${this.#url}?${new URLSearchParams({ article, version })}`);
      if (details.childElementCount === 1) details.append(...parsed(html).childNodes);
    } catch {
      const again = failure(() => {
        again.remove();
        this.#unfolded(details);
      });
      details.append(again);
    }
  }

  #page(url) {
    if (!this.#pages.has(url)) {
      const page = load(url);
      this.#pages.set(url, page);
      page.catch(() => this.#pages.delete(url));
    }
    return this.#pages.get(url);
  }
}

async function load(url) {
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.text();
}

function parsed(html) {
  return new DOMParser().parseFromString(html, "text/html").body;
}

function button(text, act) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "plain" });
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

function item(text, act) {
  const made = document.createElement("li");
  made.append(button(text, act));
  return made;
}

function failure(again) {
  const made = Object.assign(document.createElement("p"), { className: "note" });
  made.append("The articles can’t be loaded now. ", button("Try again", again));
  return made;
}
