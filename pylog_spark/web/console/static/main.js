// Which view is shown, by the location's hash. A view draws into an element of its own and ends with its signal.

import { el, empty } from "./dom.js";
import { get, isGone } from "./api.js";
import { say, troubles } from "./live.js";
import { listen } from "./keys.js";
import { overview } from "./views/overview.js";
import { topics } from "./views/topics.js";
import { topic } from "./views/topic.js";
import { groups } from "./views/groups.js";
import { group } from "./views/group.js";
import { transactions } from "./views/transactions.js";

const VIEWS = { "": overview, topics, groups, transactions };
const ONE = { topics: topic, groups: group };
const main = document.getElementById("view");
let current = new AbortController();

async function draw() {
  current.abort();
  current = new AbortController();
  const signal = current.signal;
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [kind, name, ...rest] = path.split("/").map(plain);
  const place = el("div", { class: "view" });
  const trouble = troubles();
  const view = name ? ONE[kind] : VIEWS[kind];
  mark(kind || "overview");
  document.title = `${name || title(kind)} · pylog`;
  main.replaceChildren(place);
  window.scrollTo(0, 0);
  if (!view) {
    place.append(empty("There is no such view. The bar above has those that there are."));
    return;
  }
  try {
    await view(place, { name, rest, query: new URLSearchParams(query) }, signal);
  } catch (error) {
    if (isGone(error) || signal.aborted) return;
    place.prepend(trouble);
    say(trouble, error, draw);
  }
}

function plain(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // A lone per cent sign, typed by hand.
  }
}

function title(kind) {
  return kind ? kind[0].toUpperCase() + kind.slice(1) : "Overview";
}

function mark(kind) {
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === kind) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function user() {
  try {
    const found = await get(["user"]);
    document.getElementById("user").textContent = found.user ?? "";
  } catch {
    // The view says what is wrong.
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", draw);
listen();
draw();
user();
