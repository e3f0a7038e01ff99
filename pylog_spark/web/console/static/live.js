// Views that follow the broker: they ask again by themselves while they are looked at, and say what failed.

import { el, button } from "./dom.js";
import { isGone } from "./api.js";

/** Seconds between two questions of a view that follows. */
export const FOLLOW_S = 5;

/**
 * Do something now and again after each pause, while the page is seen and until the signal; what it throws is shown in `place`.
 * Without a pause it is done once.
 * @returns {function} does it at once, besides.
 */
export function follow(does, place, signal, everyS = FOLLOW_S) {
  let timer = null;
  let turn = 0;
  async function once() {
    clearTimeout(timer);
    const mine = ++turn;
    try {
      await does();
      if (!signal.aborted) place.replaceChildren();
    } catch (error) {
      if (isGone(error) || signal.aborted) return;
      say(place, error, once);
    }
    if (!signal.aborted && mine === turn && everyS) timer = setTimeout(seen, everyS * 1000);
  }
  function seen() {
    if (!document.hidden) once();
  }
  if (everyS) document.addEventListener("visibilitychange", seen, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  once();
  return once;
}

/** A place for what fails. */
export function troubles() {
  return el("div", { class: "troubles", role: "alert" });
}

/** Show an error with what it is called and what to do. */
export function say(place, error, again = null) {
  if (!("status" in error)) console.error(error);
  place.replaceChildren(
    el("div", { class: "notice bad" },
      el("p", {}, error.message),
      el("p", { class: "dim" }, error.name),
      again && button("Try again", again)),
  );
}

/** A line that goes by itself, for what was done. */
export function toast(...said) {
  const line = el("div", { class: "toast" }, said);
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), 8000);
}
