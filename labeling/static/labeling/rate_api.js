// Requests of the rating screen to our own API.

const TIMEOUT = 15_000;

// The CSRF token, read anew each time: it changes when somebody signs in again.
export function token() {
  return document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1] ?? "";
}

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
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
