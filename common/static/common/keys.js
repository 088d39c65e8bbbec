// Keyboard shortcuts: one of three key sets, stored in this browser.

const CHOICE = "lace-keys";
const COMMON = {
  next: ["j", "arrowdown"],
  previous: ["k", "arrowup"],
  down: ["pagedown"],
  up: ["pageup"],
  evidence: ["e"],
  comment: ["c", "w"],
  unclear: ["i"],
  definition: ["d"],
  guideline: ["g"],
  knowledge: ["a"],
  fold: ["o"],
  undo: ["u"],
  flag: ["!"],
  skip: ["s"],
  again: ["b"],
  search: ["/"],
  help: ["?"],
};
export const SETS = {
  standard: {
    name: "Letters and digits",
    keys: { ...COMMON, true: ["t", "1"], false: ["f", "2"], na: ["n", "3"] },
  },
  digits: { name: "Digits only for answers", keys: { ...COMMON, true: ["1"], false: ["2"], na: ["3"] } },
  left: {
    name: "Left hand",
    keys: {
      ...COMMON,
      ...{ true: ["q", "1"], false: ["w", "2"], na: ["r", "3"] },
      ...{ next: ["d", "arrowdown"], previous: ["a", "arrowup"], undo: ["z"], fold: ["v"], unclear: ["x"] },
      ...{ comment: ["c"], knowledge: ["4"], definition: ["5"] },
    },
  },
};
const WORDS = { arrowdown: "↓", arrowup: "↑", pagedown: "Page ↓", pageup: "Page ↑" };

export class Keys {
  #name = "standard";
  #commands = new Map();

  constructor() {
    try {
      this.use(localStorage.getItem(CHOICE));
    } catch {
      this.use("standard"); // storage switched off
    }
  }

  get name() {
    return this.#name;
  }

  // An unknown name selects the standard set.
  use(name) {
    this.#name = Object.hasOwn(SETS, name ?? "") ? name : "standard";
    const { keys } = SETS[this.#name];
    const pairs = Object.entries(keys).flatMap(([command, pressed]) => pressed.map((key) => [key, command]));
    this.#commands = new Map(pairs);
    try {
      localStorage.setItem(CHOICE, this.#name);
    } catch {
      // kept for this page only
    }
  }

  // Returns the command of a key, if any. Keyboards of other scripts are read by key position.
  command(event) {
    return this.#commands.get(keyOf(event));
  }

  // Writes the keys of the set into all hints on the page.
  label() {
    const { keys } = SETS[this.#name];
    for (const hint of document.querySelectorAll("kbd[data-key]")) {
      hint.textContent = words(keys[hint.dataset.key][0]);
    }
    for (const list of document.querySelectorAll("dt[data-keys]")) {
      const hints = list.dataset.keys.split(" ").flatMap((command) => keys[command]);
      const hint = (key) => Object.assign(document.createElement("kbd"), { textContent: words(key) });
      list.replaceChildren(...hints.flatMap((key) => [hint(key), " "]));
    }
  }

  wire(select) {
    const option = ([value, { name }]) => new Option(name, value, false, value === this.#name);
    select.replaceChildren(...Object.entries(SETS).map(option));
    select.addEventListener("change", () => {
      this.use(select.value);
      this.label();
    });
  }
}

export function keyOf(event) {
  const key = (event.key ?? "").toLowerCase(); // NB: form autofill fires key events without a key
  if (key.length === 1 && key > "~" && /^Key[A-Z]$/.test(event.code)) {
    return event.code.slice(3).toLowerCase();
  }
  return key;
}

function words(key) {
  return WORDS[key] ?? key;
}
