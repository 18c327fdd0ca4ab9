// A signed-in person without a browser, as far as the server can tell: cookies, Origin, Sec-Fetch-Site.

/** Opens a one-time sign-in link and sends its form, hidden inputs and all. Returns the session's cookies. */
export async function signIn(link) {
  const cookies = new Map();
  const page = await fetch(link, { redirect: "manual" });
  keep(cookies, page);
  const form = hiddenInputs(await page.text());
  const answer = await fetch(link, {
    method: "POST",
    redirect: "manual",
    headers: asBrowser(cookies, link),
    body: new URLSearchParams(form),
  });
  keep(cookies, answer);
  if (answer.status >= 400) throw new Error(`signing in was answered ${answer.status}: ${await answer.text()}`);
  return cookies;
}

/** Approves what the record shows now: the decision carries the digest of what was seen. */
export async function approve(cookies, url, site, approvalId) {
  const record = `${url}/api/sites/${site}/approvals/${approvalId}`;
  const seen = await json(await fetch(record, { headers: asBrowser(cookies, url) }));
  const answer = await fetch(`${record}/approve`, {
    method: "POST",
    headers: { ...asBrowser(cookies, url), "Content-Type": "application/json" },
    body: JSON.stringify({ seenDigest: seen.seenDigest }),
  });
  return json(answer);
}

/** The requests of a site that wait for a decision. */
export async function waiting(cookies, url, site) {
  const answer = await json(await fetch(`${url}/api/sites/${site}/approvals?status=pending`, { headers: asBrowser(cookies, url) }));
  return answer.items;
}

async function json(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

function asBrowser(cookies, url) {
  return {
    Origin: new URL(url).origin,
    "Sec-Fetch-Site": "same-origin",
    Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; "),
  };
}

function keep(cookies, response) {
  for (const line of response.headers.getSetCookie()) {
    const [pair] = line.split(";");
    const at = pair.indexOf("=");
    cookies.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim());
  }
}

function hiddenInputs(html) {
  const inputs = html.match(/<input\b[^>]*>/g) ?? [];
  const hidden = inputs.filter((input) => attribute(input, "type") === "hidden");
  return hidden.map((input) => [attribute(input, "name"), attribute(input, "value") ?? ""]);
}

function attribute(tag, name) {
  const found = tag.match(new RegExp(`\\s${name}=(?:"([^"]*)"|'([^']*)'|([^\\s>]+))`));
  const value = found?.slice(1).find((one) => one !== undefined);
  return value?.replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
