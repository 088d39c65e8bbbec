// What the browser of each user has: storage and a clock.

// Storage may be off, full or corrupt: then the work is skipped, and text lives on the page and the server.
export function attempt(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

export function timeOfDay(moment = Date.now()) {
  return new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}
