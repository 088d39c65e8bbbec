// Autosave of one chat's answers: kept in this browser until the server has them, sent one after the other.

const IDLE = 60_000; // ms without a sign of life that no longer count as work
const LONGEST_WAIT = 30_000; // ms between two tries when offline
const TIMEOUT = 15_000;
const HOUR = 3_600_000;

// The CSRF token, read anew each time: it changes when somebody signs in again.
export function token() {
  return document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? "";
}

// A request to our own API.
export function call(method, url, body) {
  const headers = { Accept: "application/json", "X-CSRFToken": token() };
  if (body) headers["Content-Type"] = "application/json";
  return fetch(url, {
    method,
    headers,
    body: body && JSON.stringify(body),
    redirect: "error",
    keepalive: true,
    signal: AbortSignal.timeout(TIMEOUT),
  });
}

// A 400's {"field": ["why"]} as one sentence.
export function reasons(problem) {
  return Object.values(problem).flat(3).join(" ");
}

// NB: crypto.randomUUID exists on HTTPS and localhost only.
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Saving {
  // kept: {pending: {key: op}, loose: {key: comment and evidence of an open criterion}, undo: [], redo: []}
  kept = { pending: {}, loose: {}, undo: [], redo: [] };
  stopped = false;
  #store;
  #done = false;
  #url;
  #versions;
  #on;
  #running = null;
  #inFlight = "";
  #offline = false;
  #savedAt = null;
  #wait = 0;
  #retry = 0;
  #active = 0;
  #lastSign = performance.now();

  // on: {state(text, kind), stop(message), refuse(message)}
  // store: names this rater's work on this chat, in this database
  constructor({ store, url, versions, on }) {
    this.#store = `lace-rate-${store}`;
    this.#url = url;
    this.#versions = versions;
    this.#on = on;
    try {
      Object.assign(this.kept, JSON.parse(localStorage.getItem(this.#store)));
    } catch {
      // storage switched off or spoilt: work goes on without it
    }
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "scroll"]) {
      addEventListener(kind, () => this.#sign(), { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => (this.#lastSign = performance.now()));
    addEventListener("online", () => this.flush());
    addEventListener("pagehide", () => this.keep());
  }

  get unsent() {
    return Object.keys(this.kept.pending).length;
  }

  keep() {
    if (this.#done) return;
    try {
      localStorage.setItem(this.#store, JSON.stringify(this.kept));
    } catch {
      // full or switched off: unsent answers then live as long as the page
    }
  }

  // Nothing is left to do for this chat.
  forget() {
    Object.assign(this.kept, { pending: {}, loose: {}, undo: [], redo: [] });
    this.#done = true;
    try {
      localStorage.removeItem(this.#store);
    } catch {
      // nothing was kept then
    }
  }

  put(key, answer) {
    const waiting = this.kept.pending[key];
    const unsentTime = waiting && waiting.client_id !== this.#inFlight ? waiting.active_ms : 0;
    this.kept.pending[key] = { client_id: uuid(), answer, active_ms: Math.min(unsentTime + this.#takeTime(), HOUR) };
    this.flush();
  }

  // Resolves when everything is sent, or the server can't be reached; then it is tried again later.
  flush() {
    clearTimeout(this.#retry);
    this.#running ??= this.#sendAll().finally(() => {
      this.#running = null;
      this.show();
    });
    return this.#running;
  }

  stop(message) {
    this.stopped = true;
    this.show();
    this.#on.stop(message);
  }

  show(busy = false) {
    const left = this.unsent;
    if (left && this.stopped) this.#on.state(`Not saved, ${left} kept here`, "off");
    else if (left && this.#offline) this.#on.state(`Offline, ${left} kept here, retrying`, "off");
    else if (busy || left) this.#on.state("Saving", "busy");
    else this.#on.state(this.#savedAt ? `Saved ${this.#savedAt}` : "", "");
  }

  async #sendAll() {
    try {
      for (let key; !this.stopped && (key = Object.keys(this.kept.pending)[0]); ) {
        this.show(true);
        await this.#send(key, this.kept.pending[key]);
        this.#offline = false;
        this.#wait = 0;
      }
    } catch {
      this.#offline = true;
      this.#wait = Math.min(this.#wait * 2 || 1000, LONGEST_WAIT);
      this.#retry = setTimeout(() => this.flush(), this.#wait);
    }
  }

  async #send(key, { client_id, answer, active_ms }) {
    this.#inFlight = client_id;
    const url = `${this.#url}labels/${key}/`;
    const { value, rationale, evidence } = answer;
    const response = answer.answered
      ? await call("PUT", url, { client_id, value, rationale, evidence, active_ms, version: this.#versions[key] })
      : await call("DELETE", `${url}?client_id=${client_id}`);
    if (response.status === 409) return this.stop((await response.json()).detail);
    if (response.status === 404) return this.stop("This chat is no longer yours. What was not saved is kept in this browser.");
    if (!response.ok && response.status !== 400) throw new Error(`HTTP ${response.status}`);
    if (this.kept.pending[key]?.client_id === client_id) delete this.kept.pending[key];
    this.keep();
    if (response.status === 400) return this.#on.refuse(reasons(await response.json()));
    this.#savedAt = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  }

  // Working time: gaps between signs of life, unless the page is hidden or nobody seems to be there.
  #sign() {
    const now = performance.now();
    if (now - this.#lastSign < IDLE && !document.hidden) this.#active += now - this.#lastSign;
    this.#lastSign = now;
  }

  #takeTime() {
    this.#sign();
    const taken = Math.round(this.#active);
    this.#active = 0;
    return taken;
  }
}
