// On a narrow screen the bars scroll sideways: scroll to the current page's entry.
for (const item of document.querySelectorAll("nav [aria-current]")) {
  item.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// After "back", the filters show the state of the page, not later choices.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) for (const form of document.querySelectorAll("form.filters")) form.reset();
});

// How many entries of the history back the page at this address is; 0 if it is not there.
// Each turn or heading that the reader followed on this page is an entry of its own.
function stepsBackTo(url) {
  const { navigation } = globalThis;
  if (!navigation) return history.length < 2 ? 0 : 1; // an older browser
  const here = navigation.currentEntry.index;
  const at = navigation.entries().findLastIndex((one, n) => n < here && one.url?.split("#")[0] === url);
  return at < 0 ? 0 : here - at;
}

// Back to the page that led here keeps its scroll position and its own way back.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-origin]");
  const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.button);
  if (!link || !plain || link.href !== document.referrer) return;
  const steps = stepsBackTo(link.href);
  if (!steps) return;
  event.preventDefault();
  history.go(-steps);
});
