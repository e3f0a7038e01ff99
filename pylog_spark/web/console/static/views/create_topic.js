// The dialog that creates a topic.

import { el, button } from "../dom.js";
import { change } from "../api.js";
import { ask, field, refuse } from "../dialog.js";
import { toast } from "../live.js";

/** Settings that a topic is often given; any other may be typed. */
const COMMON = ["cleanup.policy", "compression.type", "durability", "max.message.bytes", "min.insync.replicas", "retention.bytes", "retention.ms", "segment.bytes"];

/** Ask for a topic; `done` has its name when it is there. */
export function createTopic(done) {
  const name = el("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: 249 });
  const partitions = el("input", { type: "number", min: 1, value: 1 });
  const replicas = el("input", { type: "number", min: 1, value: 1 });
  const names = el("datalist", { id: "topic-settings" }, COMMON.map((each) => el("option", { value: each })));
  const rows = el("div", { class: "rows" });
  const add = () => rows.append(setting());

  ask({
    title: "Create topic",
    verb: "Create",
    fields: [
      field("Name", name, "Letters, digits, dot, _ and -; at most 249."),
      el("div", { class: "two" }, field("Partitions", partitions), field("Replicas", replicas, "At most one on each broker.")),
      el("div", { class: "field" }, el("div", { class: "label" }, el("span", {}, "Settings"), button("Add", add, { class: "quiet small" })), rows, names),
    ],
    does: async () => {
      const config = {};
      for (const row of rows.children) {
        const [key, value] = [...row.querySelectorAll("input")].map((each) => each.value.trim());
        if (key) config[key] = value;
      }
      if (!name.value.trim()) throw refuse("Give the topic a name.");
      return change("POST", ["topics"], {
        name: name.value.trim(), partitions: whole(partitions, "Partitions"), replication_factor: whole(replicas, "Replicas"), config,
      });
    },
    done: (answer) => {
      toast(`Topic ${answer.name} is there.`);
      done(answer.name);
    },
  });
}

function setting() {
  const row = el("div", { class: "row" },
    el("input", { type: "text", list: "topic-settings", placeholder: "retention.ms", "aria-label": "Setting", autocomplete: "off" }),
    el("input", { type: "text", placeholder: "value", "aria-label": "Value", autocomplete: "off" }),
    button("×", () => row.remove(), { class: "quiet small", "aria-label": "Remove this setting" }));
  return row;
}

/** The whole number in a field, at least 1. */
export function whole(input, what) {
  const value = Number(input.value);
  if (!Number.isInteger(value) || value < 1) throw refuse(`${what}: give a whole number, 1 or more.`);
  return value;
}
