// Ways in and out: the deep link from elsewhere, the way back after signing in, signing out, and posts from other pages.

import { type Server, createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { GRACE, decide, expect, hydrated, record, test, useCloudhal, visit, watch } from "./support/fixtures.ts";

useCloudhal();

/** Another site, as a chat or a mail program in the browser is one: `localhost` is not `127.0.0.1`. */
let elsewhere: Server;
let elsewhereUrl: string;
let html = "";

test.beforeAll(async () => {
  elsewhere = createServer((_, response) => response.setHeader("Content-Type", "text/html").end(`<!doctype html><title>Chat</title><link rel="icon" href="data:,">${html}`));
  elsewhere.listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  elsewhereUrl = `http://localhost:${(elsewhere.address() as AddressInfo).port}/`;
});

test.afterAll(async () => {
  elsewhere.closeAllConnections();
  elsewhere.close();
});

test("a link on another site arrives signed in, on the request (C75)", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "By link." });
  const asked = await httpAgent.asks("publish", { site });
  html = `<a href="${asked.url}">Please look</a>`;
  await ada.goto(elsewhereUrl);
  await ada.getByRole("link", { name: "Please look" }).click();
  await expect(ada).toHaveURL(asked.url);
  await expect(ada.getByText("Waiting for you", { exact: true })).toBeVisible();
  // It holds through reload, away and back (C46); and what is loaded in the page's frames is no step of the way back.
  await hydrated(ada);
  await ada.reload();
  await expect(ada.getByText("Waiting for you", { exact: true })).toBeVisible();
  await hydrated(ada);
  await ada.getByRole("link", { name: "Sites" }).first().click();
  await expect(ada).toHaveURL("/sites");
  await ada.goBack();
  await expect(ada).toHaveURL(asked.url);
  await expect(ada.getByText("Waiting for you", { exact: true })).toBeVisible();
  await ada.goBack();
  await expect(ada).toHaveURL(elsewhereUrl);
  await ada.goForward();
  await expect(ada.getByText("Waiting for you", { exact: true })).toBeVisible();
});

test("the back button after a decision shows how it stands, not the form again", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "Back and forth." });
  const asked = await httpAgent.asks("publish", { site });
  await visit(ada, "/approvals");
  await ada.locator(`.row a[href^="/approvals/${asked.approvalId}"]`).click();
  await ada.getByRole("button", { name: "Deny" }).click();
  await expect(ada.locator(".decided")).toBeVisible();
  await ada.goBack();
  await ada.goForward();
  await expect(ada.locator(".decided")).toBeVisible();
  await expect(ada.locator("form.decide")).toHaveCount(0);
});

test("the link of the command line signs in once, by a click and never by a visit", async ({ cloudhal, anonymous, open }) => {
  const link = cloudhal.value("sign-in");
  await visit(anonymous, link);
  await anonymous.reload();
  await anonymous.getByRole("button", { name: "Sign in" }).click();
  await expect(anonymous).toHaveURL("/approvals");
  await expect(anonymous.locator("details.person")).toBeVisible();

  const second = await open({ signedIn: false });
  await visit(second, link);
  await second.getByRole("button", { name: "Sign in" }).click();
  await expect(second.getByText("This sign-in link was used already or is too old.")).toBeVisible();
});

test("signing out ends it everywhere in this browser, also behind the back button", async ({ cloudhal, open }) => {
  const tab = await open({ signedIn: false });
  const link = await cloudhal.command(["person", "add", "--email", "leaver@example.com", "--name", "Lee Ver", "--owner"]);
  await tab.goto(link.get("sign-in")!);
  await tab.getByRole("button", { name: "Sign in" }).click();
  await hydrated(tab);
  const cookie = (await tab.context().cookies()).find((one) => one.name === "cloudhal");
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax", path: "/" });

  await tab.locator("details.person summary").click();
  await tab.getByRole("button", { name: "Sign out" }).click();
  await expect(tab.getByText("You are signed out.")).toBeVisible();
  await tab.goBack();
  await expect(tab).toHaveURL(/\/login/);
  // The cookie of before opens nothing any more.
  const old = await fetch(`${cloudhal.url}/api/sites`, { headers: { Cookie: `cloudhal=${cookie!.value}`, "Sec-Fetch-Site": "same-origin" } });
  expect(old.status).toBe(401);
});

test("a wrong password says so, and keeps the way back", async ({ anonymous, httpAgent, site }) => {
  const asked = await httpAgent.asks("publish", { site });
  await visit(anonymous, asked.url);
  await anonymous.getByLabel("E-mail").fill(GRACE.email);
  await anonymous.getByLabel("Password").fill("not the lamp at all");
  await anonymous.getByRole("button", { name: "Sign in" }).click();
  await expect(anonymous.getByText("That e-mail and password do not go together.")).toBeVisible();
  await anonymous.getByLabel("E-mail").fill(GRACE.email);
  await anonymous.getByLabel("Password").fill(GRACE.password);
  await anonymous.getByRole("button", { name: "Sign in" }).click();
  await expect(anonymous).toHaveURL(asked.url);
});

test("next= never leads elsewhere (C73)", async ({ cloudhal, open }) => {
  const hostile = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/approvals",
    "/\\evil.example/",
    "\\\\evil.example",
    "/\t/evil.example/",
    "/%09/evil.example/",
    "/.//evil.example/",
    "/approvals/..//evil.example/",
    "/approvals/%2e%2e//evil.example",
    "javascript:alert(1)",
    "data:text/html,run",
    "/@evil.example",
    "http:evil.example",
    "/approvals\r\nLocation: https://evil.example/",
    "/logout",
    "/login?next=/login",
    "/live/harbour-street-bakery/",
    "/api/events",
    "\u0000/approvals",
    "%",
  ];
  // Through the one-time link, which takes the same way back as the password does, without its limit of tries.
  const tab = await open({ signedIn: false, context: { javaScriptEnabled: false } });
  let n = 0;
  for (const next of hostile) {
    n += 1;
    const link = await cloudhal.command(["person", "add", "--email", `next${n}@example.com`, "--name", `Next ${n}`, "--owner"]);
    await tab.goto(`${link.get("sign-in")}?next=${encodeURIComponent(next).replace("%25", "%")}`);
    await tab.getByRole("button", { name: "Sign in" }).click();
    await expect(tab.locator("details.person"), next).toBeVisible();
    expect(tab.url(), next).toMatch(new RegExp(`^${cloudhal.url}/approvals`));
    await tab.context().clearCookies();
  }
});

test("no form of another site decides, publishes or signs out (C71)", async ({ ada, httpAgent, site, cloudhal }) => {
  await httpAgent.edit(site, "orders", { body: "From afar." });
  const asked = await httpAgent.asks("publish", { site });
  const { seenDigest } = await record(ada, site, asked.approvalId);
  watch(ada).allow(/Failed to load resource.* 40[35]/);
  const posts = [
    [`/approvals/${asked.approvalId}`, "application/x-www-form-urlencoded", { decision: "approve", seenDigest }],
    [`/approvals/${asked.approvalId}`, "text/plain", { decision: "approve", seenDigest }],
    [`/approvals/${asked.approvalId}`, "multipart/form-data", { decision: "approve", seenDigest }],
    [`/api/sites/${site}/approvals/${asked.approvalId}/approve`, "text/plain", { '{"seenDigest":"': `${seenDigest}","x":"` }],
    ["/approvals/deny", "application/x-www-form-urlencoded", { ids: asked.approvalId }],
    ["/sites/harbour-street-bakery/publish", "application/x-www-form-urlencoded", { stateHash: asked.stateHash! }],
    ["/_fn/inbox", "text/plain", { "{}": "" }],
    ["/logout", "application/x-www-form-urlencoded", {}],
  ] as const;
  for (const [path, enctype, fields] of posts) {
    const inputs = Object.entries(fields).map(([name, value]) => `<input name='${name}' value='${value}'>`);
    html = `<form method="post" action="${cloudhal.url}${path}" enctype="${enctype}">${inputs.join("")}<button>Win a prize</button></form>`;
    await ada.goto(elsewhereUrl);
    const answered = ada.waitForResponse((response) => response.url() === `${cloudhal.url}${path}`);
    await ada.getByRole("button", { name: "Win a prize" }).click();
    expect((await answered).status(), path).toBe(403);
  }
  // Nor does a GET with the same fields, from anywhere.
  for (const path of [`/approvals/${asked.approvalId}?decision=approve&seenDigest=${seenDigest}`, `/_fn/inbox?query=%7B%7D`, "/logout", "/approvals/deny"]) await ada.request.get(path);
  expect((await record(ada, site, asked.approvalId)).status).toBe("pending");
  await visit(ada, "/approvals");
  await expect(ada.locator("details.person")).toBeVisible();

  // Nor can a page frame ours.
  html = `<iframe src="${asked.url}"></iframe>`;
  watch(ada).allow(/frame-ancestors|Framing/);
  await ada.goto(elsewhereUrl);
  await expect(ada.frameLocator("iframe").getByRole("button", { name: "Approve publishing" })).toHaveCount(0);
  await decide(ada, site, asked, "deny");
});
