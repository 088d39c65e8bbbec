// Colour scheme: system, light or dark. Runs in <head> before the first paint to avoid flashes.
(function () {
  "use strict";
  const KEY = "lace-theme";
  const root = document.documentElement;

  function kept() {
    try {
      return localStorage.getItem(KEY) || "system";
    } catch {
      return "system"; // storage may be disabled
    }
  }

  function apply(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  }

  function keep(theme) {
    try {
      if (theme === "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme);
    } catch {
      // the choice then applies to this page only
    }
  }

  function mark(buttons, theme) {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
    }
  }

  apply(kept());

  document.addEventListener("DOMContentLoaded", function () {
    const buttons = document.querySelectorAll("[data-theme-choice]");
    mark(buttons, kept());
    for (const button of buttons) {
      button.addEventListener("click", function () {
        const theme = button.dataset.themeChoice;
        keep(theme);
        apply(theme);
        mark(buttons, theme);
      });
      button.closest("[hidden]")?.removeAttribute("hidden");
    }
  });

  window.addEventListener("storage", function (event) {
    if (event.key !== KEY) return;
    apply(kept());
    mark(document.querySelectorAll("[data-theme-choice]"), kept());
  });
})();
