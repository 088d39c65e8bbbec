// The way to the next chat: fetched ahead while this one is finished, then shown without loading a page.

import { call, token } from "./rate_api.js";

const SOON = 3; // fetched when so many answers are open
const AT_LEAST = 180_000; // ms that the chat fetched ahead must still be held
const TOAST = 10_000;
const LAST = "lace-submitted";

export class Ahead {
  #url;
  #id;
  #asked = false;
  #page = null; // {fresh, url, ends}

  // url: leases the next chat of the job; id: the assignment in work
  constructor({ url, id }) {
    this.#url = url;
    this.#id = id;
  }

  async fetch(open) {
    if (this.#asked || open > SOON || !this.#url) return;
    this.#asked = true;
    try {
      const response = await call("POST", this.#url, { ahead: true });
      if (!response.ok) return;
      const { assignment, url } = await response.json();
      if (!assignment || assignment === this.#id) return;
      const page = await fetch(url, { redirect: "error" });
      if (!page.ok) return;
      const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
      const state = JSON.parse(fresh.querySelector("#rate-state").textContent);
      this.#page = { fresh, url, ends: Date.now() + state.lease.left };
    } catch {
      // the next chat is then loaded when it is wanted
    }
  }

  // The page fetched ahead in place of this one; false when there is none, or it was held for too long.
  show() {
    if (!this.#page || this.#page.ends - Date.now() < AT_LEAST) return false;
    const { fresh, url } = this.#page;
    document.title = fresh.title;
    document.body.className = fresh.body.className;
    document.body.replaceChildren(...fresh.body.childNodes);
    history.pushState({}, "", url);
    scrollTo(0, 0);
    return true;
  }
}

// Taking a chat changes something, so it is a POST; the server redirects to the chat.
export function load(url) {
  const form = document.querySelector("#next");
  form.action = url;
  form.elements.csrfmiddlewaretoken.value = token();
  form.submit();
}

// ---------- the chat submitted last ----------

export function rememberSubmitted() {
  const name = document.querySelector("h1").dataset.chat;
  store(JSON.stringify({ name, url: location.pathname, until: Date.now() + TOAST }));
}

function store(text) {
  try {
    sessionStorage.setItem(LAST, text);
  } catch {
    // switched off: the queue lists the chat
  }
}

function last() {
  try {
    const found = JSON.parse(sessionStorage.getItem(LAST));
    return found && found.until > Date.now() && found.url !== location.pathname ? found : null;
  } catch {
    return null;
  }
}

// Offers the way back for ten seconds.
export function offerBack({ signal }) {
  const toast = document.querySelector("#submitted");
  const found = last();
  if (!found) return;
  toast.querySelector("span").textContent = `${found.name} is submitted.`;
  toast.querySelector("a").href = found.url;
  toast.hidden = false;
  const hide = setTimeout(() => (toast.hidden = true), found.until - Date.now());
  signal.addEventListener("abort", () => clearTimeout(hide));
}
