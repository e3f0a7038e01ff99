// The settings of a topic: what each is, where it comes from, and changing it.

import { el, button, empty, badge } from "../dom.js";
import { get, change } from "../api.js";
import { ask, field } from "../dialog.js";
import { follow, toast, troubles } from "../live.js";
import { table } from "../table.js";

/** Where a value comes from, by Kafka's names. */
const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: ["this topic", "accent"],
  DYNAMIC_BROKER_CONFIG: ["this broker, changed while it runs", ""],
  DYNAMIC_DEFAULT_BROKER_CONFIG: ["all brokers, changed while they run", ""],
  STATIC_BROKER_CONFIG: ["the broker's settings", ""],
  DEFAULT_CONFIG: ["default", "plain"],
};
const OWN = "DYNAMIC_TOPIC_CONFIG";

export function settings(place, name, described, signal) {
  const search = el("input", { type: "search", placeholder: "Search settings", "aria-label": "Search settings", "data-key-search": true, title: "/" });
  const trouble = troubles();
  let configs = described.configs;
  const list = table({
    label: "Settings", unit: "setting", key: (row) => row.name,
    nothing: () => empty(search.value ? `No setting has “${search.value}” in its name.` : described.configs_refused ?? "The topic has no setting."),
    columns: [
      { name: "Setting", cell: (row) => el("span", { title: row.documentation }, parted(row.name)), sort: (row) => row.name, kind: "main" },
      { name: "Value", cell: value, sort: (row) => row.value, kind: "long" },
      { name: "From", cell: source, sort: (row) => row.source, wide: true },
      { name: "Alter", silent: true, cell: (row) => (row.read_only ? null : button("Alter", () => alter(row), { class: "quiet small", "aria-label": `Alter ${row.name}` })) },
    ],
  });
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    const found = configs.filter((each) => each.name.toLowerCase().includes(wanted));
    // Those that were set for the topic come first: they are what one looks for.
    list.show([...found.filter((each) => each.source === OWN), ...found.filter((each) => each.source !== OWN)]);
  };
  search.addEventListener("input", draw);
  place.append(el("div", { class: "tools" }, search), trouble, list.node);
  draw();

  function again() {
    follow(async () => {
      configs = (await get(["topics", name], {}, signal)).configs;
      draw();
    }, trouble, signal, 0);
  }

  function alter(row) {
    const input = el("input", { type: "text", value: row.sensitive ? "" : row.value ?? "", autocomplete: "off", spellcheck: "false" });
    const own = row.source === OWN;
    const back = el("input");
    back.addEventListener("change", () => (input.disabled = back.checked));
    back.type = "checkbox";
    ask({
      title: `Alter ${row.name}`,
      verb: "Alter",
      fields: [
        row.documentation ? el("p", { class: "dim" }, row.documentation) : null,
        field("Value", input),
        own ? el("label", { class: "tick" }, back, "Back to what the brokers have") : null,
      ].filter(Boolean),
      does: () => change("POST", ["topics", name, "configs"], { changes: { [row.name]: back.checked ? null : input.value } }),
      done: () => {
        toast(back.checked ? `${row.name} is as the brokers have it.` : `${row.name} is ${input.value}.`);
        again();
      },
    });
  }
}

/** A name that breaks after its dots. */
function parted(name) {
  return name.split(".").map((part, place) => (place ? [".", el("wbr"), part] : part));
}

function value(row) {
  if (row.sensitive) return el("span", { class: "dim" }, "not shown");
  if (row.value === null || row.value === "") return el("span", { class: "dim" }, "empty");
  return el("code", {}, row.value);
}

function source(row) {
  const [word, kind] = SOURCES[row.source] ?? [row.source, ""];
  return kind === "plain" ? el("span", { class: "dim" }, word) : badge(word, kind);
}
