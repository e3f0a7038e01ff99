// Light or dark, before anything is drawn: as the system has it, until the user chooses. The choice is kept in this browser alone.
"use strict";

(() => {
  const KEPT = "pylog-theme";
  const ORDER = ["auto", "light", "dark"];
  const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

  function kept() {
    try {
      const found = localStorage.getItem(KEPT);
      return ORDER.includes(found) ? found : "auto";
    } catch {
      return "auto"; // A browser that keeps nothing for pages.
    }
  }

  function apply(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  let theme = kept();
  apply(theme);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      button.textContent = SIGNS[theme];
      button.title = `Colours: ${theme === "auto" ? "as the system has them" : theme}`;
      button.setAttribute("aria-label", button.title);
    };
    label();
    button.addEventListener("click", () => {
      theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
      apply(theme);
      label();
      try {
        localStorage.setItem(KEPT, theme);
      } catch {
        // It lasts as long as the page, then.
      }
    });
  });
})();
