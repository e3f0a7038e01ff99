// The keyboard: what each key does, in one place, and the dialog that shows it.

import { el, button } from "./dom.js";
import { walk } from "./table.js";

const KEYS = [
  ["/", "search"],
  ["j  k  ↓  ↑", "next and previous row"],
  ["Enter", "open the row"],
  ["Esc", "close, or leave the search"],
  ["g o", "overview"],
  ["g t", "topics"],
  ["g g", "groups"],
  ["g x", "transactions"],
  ["n", "new: a topic among topics, a record in a topic"],
  ["Ctrl Enter", "send the dialog"],
  ["?", "these keys"],
];
const GO = { o: "#/", t: "#/topics", g: "#/groups", x: "#/transactions" };
/** How long the second key may take, in milliseconds. */
const SECOND_MS = 1500;

/** Listen to keys for as long as the page lives. */
export function listen() {
  let going = 0;
  document.getElementById("keys").addEventListener("click", show);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.matches?.("input, textarea, select");
    if (typing ? typed(event) : pressed(event, going && event.timeStamp - going < SECOND_MS)) event.preventDefault();
    going = !typing && event.key === "g" && !going ? event.timeStamp : 0;
  });
}

/** Keys in a field: only those that leave it. */
function typed(event) {
  if (event.key === "Escape") {
    event.target.blur();
    return true;
  }
  return event.key === "ArrowDown" && event.target.type === "search" && walk(1);
}

function pressed(event, isSecond) {
  if (isSecond && event.key in GO) {
    location.hash = GO[event.key];
    return true;
  }
  switch (event.key) {
    case "/":
      return press("[data-key-search]", (found) => found.focus());
    case "n":
      return press("[data-key-new]", (found) => found.click());
    case "Escape":
      return press("[data-key-close]", (found) => found.click());
    case "?":
      show();
      return true;
    case "j":
    case "ArrowDown":
      return walk(1);
    case "k":
    case "ArrowUp":
      return walk(-1);
  }
  return false;
}

function press(selector, does) {
  const found = document.querySelector(selector);
  if (found) does(found);
  return Boolean(found);
}

function show() {
  const rows = KEYS.map(([key, does]) => [el("dt", {}, key.split(/ +/).map((each) => el("kbd", {}, each))), el("dd", {}, does)]);
  const dialog = el("dialog", { class: "keys", "aria-label": "Keys", on: { close: () => dialog.remove() } },
    el("h2", {}, "Keys"), el("dl", {}, rows),
    el("div", { class: "buttons" }, button("Close", () => dialog.close(), { class: "quiet" })));
  document.body.append(dialog);
  dialog.showModal();
}
