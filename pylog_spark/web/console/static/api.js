// Requests to the broker's API. Each answer is JSON; a refusal has a name of Kafka's or HTTP's and a sentence.

/** Why a request was not answered as wished: `name` and `message` as the broker says them, `status` 0 when it did not answer. */
export class Failure extends Error {
  constructor(name, message, status) {
    super(message);
    this.name = name;
    this.status = status;
  }
}

/** Whether a request was given up because its view is gone. */
export function isGone(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The answer to a GET; `query` leaves out what is null or empty. */
export async function get(parts, query = {}, signal = undefined) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") asked.set(name, value);
  }
  const text = asked.toString();
  return answered(path(parts) + (text ? `?${text}` : ""), { signal });
}

/** The answer to a change, which other sites' pages cannot ask for: they may send neither this type nor this header. */
export async function change(method, parts, body) {
  return answered(path(parts), {
    method,
    headers: { "Content-Type": "application/json", "X-Requested-With": "pylog" },
    body: JSON.stringify(body),
  });
}

function path(parts) {
  return `/api/${parts.map(encodeURIComponent).join("/")}`;
}

async function answered(url, request) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...request });
  } catch (error) {
    if (isGone(error)) throw error;
    throw new Failure("NO_ANSWER", "The broker does not answer. See that it runs and can be reached; this page asks again by itself.", 0);
  }
  const text = await response.text();
  let read = null;
  try {
    read = JSON.parse(text);
  } catch {
    // Something between this page and the broker answered, such as a proxy.
  }
  if (response.ok && read !== null) return read;
  if (response.status === 401) {
    throw new Failure("LOGIN", "The broker asks for a login: load the page again and give your user and password.", 401);
  }
  throw new Failure(
    read?.error ?? `HTTP ${response.status}`,
    read?.message ?? "This was not answered by the broker: look at what stands between this page and it, such as a proxy.",
    response.status,
  );
}
