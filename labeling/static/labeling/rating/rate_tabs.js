// Two tabs on the same chat: each announces itself, its saved answers and the end of the chat.

export class Tabs {
  #channel;
  #others = new Set();
  #me = crypto.getRandomValues(new Uint32Array(2)).join("-");

  // on: {others(count), saved(key, answer, revision), gone(word)}
  constructor({ store, on, signal }) {
    if (!globalThis.BroadcastChannel) return;
    this.#channel = new BroadcastChannel(`lace-rate-${store}`);
    this.#channel.addEventListener("message", ({ data }) => this.#hear(data, on));
    const leave = () => this.#say({ kind: "bye" });
    addEventListener("pagehide", leave, { signal });
    signal.addEventListener("abort", () => {
      leave();
      this.#channel.close();
    });
    this.#say({ kind: "hello" });
  }

  saved(key, answer, revision) {
    this.#say({ kind: "saved", key, answer, revision });
  }

  gone(word) {
    this.#say({ kind: "gone", word });
  }

  #say(message) {
    this.#channel?.postMessage({ ...message, from: this.#me });
  }

  #hear(message, on) {
    if (message.kind === "saved") return on.saved(message.key, message.answer, message.revision);
    if (message.kind === "gone") return on.gone(message.word);
    if (message.kind === "hello") this.#say({ kind: "here" });
    if (message.kind === "bye") this.#others.delete(message.from);
    else this.#others.add(message.from);
    return on.others(this.#others.size);
  }
}
