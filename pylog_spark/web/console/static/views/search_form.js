// The form above the records: where to begin, in which partition, and what a record must have.

import { el } from "../dom.js";
import { refuse } from "../dialog.js";

const FROM = { latest: "Newest", earliest: "Oldest", offset: "Offset", time: "Time" };

/**
 * The form.
 * @returns {object} node; asked(): the query for the API, or a sentence thrown; text(): the same for the location; isPlain(): whether
 *   nothing is searched for; follows(): whether it is asked again and again, and unfollow() that it no longer is.
 */
export function searchForm(partitions, query, search) {
  const [kind, ...place] = (query.get("from") ?? "latest").split(":");
  const given = place.join(":");
  const from = el("select", { "aria-label": "From" }, Object.entries(FROM).map(([value, text]) => el("option", { value, selected: value === kind }, text)));
  const offset = el("input", { type: "text", inputmode: "numeric", placeholder: "offset", "aria-label": "Offset", value: kind === "offset" ? given : "" });
  const time = el("input", { type: "datetime-local", step: "0.001", "aria-label": "Local time", value: kind === "time" ? local(given) : "" });
  const partition = el("select", { "aria-label": "Partition" },
    el("option", { value: "" }, "all partitions"),
    Array.from({ length: partitions }, (_, each) => el("option", { value: each, selected: String(each) === query.get("partition") }, `partition ${each}`)));
  const key = el("input", { type: "search", placeholder: "Key", "aria-label": "Key", value: query.get("key") ?? "", title: "the whole key" });
  const contains = el("input", { type: "search", placeholder: "Text in key or value", "aria-label": "Text in key or value", value: query.get("contains") ?? "", "data-key-search": true, title: "/" });
  const isolation = el("select", { "aria-label": "Transactions" },
    el("option", { value: "read_committed" }, "committed only"),
    el("option", { value: "read_uncommitted", selected: query.get("isolation") === "read_uncommitted" }, "also uncommitted"));
  const follows = el("input", { type: "checkbox" });
  const followed = el("label", { class: "tick", title: "show new records as they come" }, follows, "Follow");
  const node = el("form", { class: "tools search", role: "search", on: { submit } },
    el("div", { class: "joined" }, from, offset, time), partition, key, contains, isolation,
    el("button", { type: "submit", class: "primary" }, "Search"), followed);

  function submit(event) {
    event.preventDefault();
    search();
  }
  function fit() {
    offset.hidden = from.value !== "offset";
    time.hidden = from.value !== "time";
    followed.hidden = from.value !== "latest";
    if (followed.hidden) follows.checked = false;
  }
  from.addEventListener("change", () => {
    fit();
    if (from.value === "offset") offset.focus();
    else if (from.value === "time") time.focus();
    else search();
  });
  for (const each of [partition, isolation, follows]) {
    each.addEventListener("change", () => {
      if (complete()) search();
    });
  }
  fit();

  /** Whether the place to begin at is given: a choice on the way to it asks nothing yet. */
  function complete() {
    return !(from.value === "offset" && !offset.value.trim()) && !(from.value === "time" && !time.value);
  }

  function asked() {
    return {
      from: beginning(),
      partition: from.value === "offset" ? one() : partition.value,
      key: key.value,
      contains: contains.value,
      isolation: isolation.value,
    };
  }
  function beginning() {
    if (from.value === "offset") {
      const digits = offset.value.replace(/[\s_,]/g, "");
      if (!/^\d+$/.test(digits)) throw refuse("Give an offset: a whole number, 0 or more.");
      return `offset:${digits}`;
    }
    if (from.value === "time") {
      const date = new Date(time.value);
      if (Number.isNaN(date.getTime())) throw refuse("Give a day and a time.");
      return `time:${date.toISOString()}`;
    }
    return from.value;
  }
  /** An offset is a place in one partition. */
  function one() {
    if (partition.value === "" && partitions > 1) throw refuse("Choose a partition: an offset is a place in one of them.");
    return partition.value || "0";
  }

  return {
    node,
    asked,
    text() {
      const kept = new URLSearchParams(Object.entries(asked()).filter(([name, value]) => value && value !== { from: "latest", isolation: "read_committed" }[name]));
      return kept.size ? `?${kept}` : "";
    },
    isPlain: () => from.value !== "offset" && from.value !== "time" && !key.value && !contains.value,
    follows: () => follows.checked,
    unfollow: () => (follows.checked = false),
  };
}

/** A time of a link, in UTC, as the browser's field takes it. */
function local(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, -1);
}
