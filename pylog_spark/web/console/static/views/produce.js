// The dialog that writes a record.

import { el, button } from "../dom.js";
import { change } from "../api.js";
import { ask, field, refuse } from "../dialog.js";
import { toast } from "../live.js";

/** Ask for a record and write it; `done` after it. */
export function produce(topic, partitions, done) {
  const partition = el("select", {}, el("option", { value: "" }, "by the key"), Array.from({ length: partitions }, (_, each) => el("option", { value: each }, String(each))));
  const encoding = el("select", {}, el("option", { value: "text" }, "text"), el("option", { value: "hex" }, "hex"));
  const key = nullable("Key", 1, true);
  const value = nullable("Value", 6, false);
  const headers = el("div", { class: "rows" });
  ask({
    title: `Produce to ${topic}`,
    verb: "Produce",
    fields: [
      key.node, value.node,
      el("div", { class: "two" }, field("Partition", partition), field("Key, value and headers are", encoding)),
      el("div", { class: "field" },
        el("div", { class: "label" }, el("span", {}, "Headers"), button("Add", () => headers.append(header()), { class: "quiet small" })), headers),
    ],
    does: () => {
      const named = [...headers.children].map((row) => [...row.querySelectorAll("input")].map((each) => each.value));
      if (encoding.value === "hex") {
        for (const [what, given] of [["Key", key.given()], ["Value", value.given()], ...named.map(([each, hex]) => [`Header ${each}`, hex])]) {
          if (given !== null && !/^(\s*[0-9a-fA-F]{2})*\s*$/.test(given)) throw refuse(`${what}: give two hexadecimal digits for each byte.`);
        }
      }
      const sent = (given) => (encoding.value === "hex" && given !== null ? given.replace(/\s/g, "") : given);
      return change("POST", ["topics", topic, "records"], {
        partition: partition.value === "" ? null : Number(partition.value),
        key: sent(key.given()),
        value: sent(value.given()),
        headers: named.filter(([name]) => name).map(([name, given]) => [name, sent(given)]),
        encoding: encoding.value,
      });
    },
    done: (answer) => {
      toast(`Written to partition ${answer.partition} at offset ${answer.offset}.`);
      done(answer);
    },
  });
}

/** A field that can be null, which is something else than empty. */
function nullable(label, rows, isNull) {
  const input = el("textarea", { rows, spellcheck: "false" });
  const without = el("input", { type: "checkbox", "aria-label": `${label} is null`, checked: isNull });
  input.addEventListener("input", () => (without.checked = false));
  return {
    node: field(label, input, null, el("label", { class: "tick" }, without, "null")),
    given: () => (without.checked ? null : input.value),
  };
}

function header() {
  const row = el("div", { class: "row" },
    el("input", { type: "text", placeholder: "name", "aria-label": "Header's name", autocomplete: "off" }),
    el("input", { type: "text", placeholder: "value", "aria-label": "Header's value", autocomplete: "off" }),
    button("×", () => row.remove(), { class: "quiet small", "aria-label": "Remove this header" }));
  return row;
}
