// Active time on a chat by criterion; stops while the page is hidden or the rater is idle.

const IDLE = 60_000; // ms without input after which the clock stops
const HOUR = 3_600_000;
const HIDDEN = "lace-clock"; // the rater hides the clock

export class Clock {
  #before;
  #active;
  #key = "";
  #sign = performance.now();
  #counted = performance.now();
  #away = document.hidden;
  #taken = 0;
  #button = document.querySelector("#clock");

  // before: ms that the server has; active: {key: unsent ms}, owned by the caller; signal: ends it
  constructor({ before, active, signal }) {
    this.#before = before;
    this.#active = active;
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "scroll"]) {
      addEventListener(kind, () => this.#alive(), { passive: true, capture: true, signal });
    }
    document.addEventListener("visibilitychange", () => this.#turned(), { signal });
    const beat = setInterval(() => this.#show(), 1000);
    signal.addEventListener("abort", () => clearInterval(beat));
    this.#button.addEventListener("click", () => this.#toggle());
    this.#show();
  }

  // Starts counting for this criterion.
  open(key) {
    this.#count();
    this.#key = key;
  }

  // Returns the criterion's unsent time in ms.
  take(key) {
    this.#count();
    const taken = Math.min(Math.round(this.#active[key] ?? 0), HOUR);
    delete this.#active[key];
    this.#taken += taken;
    return taken;
  }

  // Total unsent time in ms.
  get unsent() {
    this.#count();
    return Math.min(Math.round(this.#sum), HOUR);
  }

  get #sum() {
    return Object.values(this.#active).reduce((sum, ms) => sum + ms, 0);
  }

  #alive() {
    this.#count();
    this.#sign = performance.now();
  }

  #turned() {
    this.#count();
    this.#away = document.hidden;
    this.#sign = performance.now();
  }

  #count() {
    const now = performance.now();
    const until = Math.min(now, this.#sign + IDLE);
    if (this.#key && !this.#away && until > this.#counted) {
      this.#active[this.#key] = (this.#active[this.#key] ?? 0) + until - this.#counted;
    }
    this.#counted = now;
  }

  #show() {
    this.#count();
    const seconds = Math.floor((this.#before + this.#taken + this.#sum) / 1000);
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    const words = hidden() ? "Show time" : time;
    if (this.#button.textContent === words) return;
    this.#button.textContent = words;
    this.#button.ariaLabel = hidden() ? words : `Active time ${words}`;
  }

  #toggle() {
    try {
      if (hidden()) localStorage.removeItem(HIDDEN);
      else localStorage.setItem(HIDDEN, "1");
    } catch {
      // storage disabled: the time stays visible
    }
    this.#show();
  }
}

function hidden() {
  try {
    return localStorage.getItem(HIDDEN) !== null;
  } catch {
    return false;
  }
}
