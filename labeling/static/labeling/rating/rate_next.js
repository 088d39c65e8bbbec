// The next chat: fetched ahead, then shown without a page load.

import { call, token } from "../../common/api.js";

const SOON = 6; // fetch ahead when at most this many answers are open
const CALM = 150; // ms without a key: fetching must not delay an answer
const TIMEOUT = 15_000;
const AT_LEAST = 180_000; // minimum remaining lease of a chat fetched ahead, in ms
const TOAST = 10_000;
const LAST = "lace-submitted";

export class Ahead {
  #url;
  #id;
  #calm = false;
  #timer = 0;
  #next = ""; // the address of the next chat, once it is leased
  #page = null; // {fresh, url, at, left}
  #running = null;
  #failed = false;

  // url: leases the next chat of the job; id: the current assignment
  constructor({ url, id, signal }) {
    this.#url = url;
    this.#id = id;
    signal.addEventListener("abort", () => this.busy());
  }

  // Called when all answers are saved, with the number of open ones: time to fetch the next chat.
  rest(open) {
    this.busy();
    if (open > SOON || this.#page || this.#failed) return;
    this.#calm = true;
    if (!this.#running) this.#timer = setTimeout(() => this.#work(), CALM);
  }

  // A new answer postpones fetching ahead.
  busy() {
    this.#calm = false;
    clearTimeout(this.#timer);
  }

  async #work() {
    this.#running = this.#prepare();
    await this.#running;
    this.#running = null;
    if (this.#calm) this.rest(0);
  }

  async #prepare() {
    try {
      if (this.#next) this.#page = await read(this.#next, "low");
      else this.#next = await this.#take(true);
    } catch {
      this.#failed = true; // retried when the next chat is needed
    }
  }

  async #take(ahead) {
    const { assignment, url } = await (await call("POST", this.#url, { ahead })).json();
    if (!assignment || assignment === this.#id) throw new Error("no other chat");
    return url;
  }

  // Replaces this chat by the next one; resolves to the age of its page in ms, or to null for a page load.
  async show() {
    this.busy();
    await this.#running;
    try {
      const old = this.#page && this.#page.left - (Date.now() - this.#page.at) < AT_LEAST;
      if (!this.#page || old) {
        this.#page = await read((!old && this.#next) || (await this.#take(false)), "high");
      }
    } catch {
      return null;
    }
    const { fresh, url, at } = this.#page;
    document.title = fresh.title;
    document.body.className = fresh.body.className;
    document.body.replaceChildren(...fresh.body.childNodes);
    history.pushState({}, "", url);
    scrollTo(0, 0);
    return Date.now() - at;
  }
}

async function read(url, priority) {
  const at = Date.now();
  const page = await fetch(url, { redirect: "error", priority, signal: AbortSignal.timeout(TIMEOUT) });
  const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
  const script = (root) => root.querySelector("script[type=module]").getAttribute("src");
  if (script(fresh) !== script(document)) throw new Error("a page of another release");
  return { fresh, url, at, left: JSON.parse(fresh.querySelector("#rate-state").textContent).lease.left };
}

// Leasing a chat writes, so it is a POST; the server redirects to the chat.
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
    // storage disabled: the queue lists the chat
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

// Offers to go back for ten seconds.
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
