// Requests of the rating screen to our own API.

const TIMEOUT = 15_000;
const SMALL = 15_000; // characters; a closing page may send 64 KiB in total

// A request without a usable response; word: for the saving status, message: a sentence.
export class Trouble extends Error {
  constructor(word, message) {
    super(message);
    this.word = word;
  }
}

// The request is too large for the server or its proxy: a retry does not help.
export class TooLarge extends Trouble {
  constructor() {
    super("Too large", "More than the server takes at once");
  }
}

// The CSRF token, read for each request: it changes with a new sign-in.
export function token() {
  const name = document.body.dataset.csrfCookie;
  return document.cookie.match(new RegExp(`(?:^|; )${name}=([^;]*)`))?.[1] ?? "";
}

// Returns the response; throws Trouble where a retry may help.
export async function call(method, url, body) {
  const headers = { Accept: "application/json", "X-CSRFToken": token() };
  if (body) headers["Content-Type"] = "application/json";
  const response = await sent(url, { method, headers, body: body && JSON.stringify(body) });
  if ([401, 403].includes(response.status)) throw new Trouble("Signed out", "You are signed out");
  if (response.status === 413) throw new TooLarge();
  if (!response.ok && ![400, 404, 409].includes(response.status)) {
    throw new Trouble("Server trouble", "The server has a problem");
  }
  return response;
}

async function sent(url, request) {
  try {
    const keepalive = (request.body?.length ?? 0) < SMALL;
    const signal = AbortSignal.timeout(TIMEOUT);
    return await fetch(url, { ...request, keepalive, redirect: "error", signal });
  } catch {
    throw new Trouble("Offline", "The server can’t be reached");
  }
}

// A sentence about a failed request.
export function tryAgain(error) {
  return `${error instanceof Trouble ? error.message : "The server’s answer can’t be read"}. Try again.`;
}

// Why the rater can no longer work on the chat; "" while they can.
export async function ended(response) {
  if (response.status === 404) return "This chat is no longer yours. This browser keeps unsaved answers.";
  if (response.status !== 409) return "";
  const { code, detail } = await response.json();
  return code === "submitted" ? "This chat is submitted already." : detail;
}

// Formats the body of a 400, {"field": ["why"]}, as one sentence.
export function reasons(problem) {
  return Object.values(problem).flat(3).join(" ");
}

// NB: crypto.randomUUID exists on HTTPS and localhost only.
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
