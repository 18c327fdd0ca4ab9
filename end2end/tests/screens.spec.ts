// Every screen in every state: its console stays empty, its status is right, axe finds nothing serious, nothing runs out of
// the window. A picture of each is left in `test-results/screens`.

import type { Page } from "@playwright/test";
import { BAKERY, decide, expect, hydrated, test, useCloudhal, watch } from "./support/fixtures.ts";
import { HttpAgent } from "./support/agent.ts";
import { AXE, inspect, LOOKS, PHONE } from "./support/looks.ts";
import { Cloudhal } from "./support/server.ts";

useCloudhal();

const HOUR_MS = 3_600_000;

async function look(page: Page, name: string, path: string, status = 200): Promise<void> {
  if (status !== 200) watch(page).allow(new RegExp(`status of ${status} .*${path.split("?")[0]}`));
  const [first] = LOOKS;
  await page.setViewportSize(first);
  await page.emulateMedia({ colorScheme: first.colorScheme });
  const response = await page.goto(path);
  expect(response!.status(), path).toBe(status);
  await hydrated(page);
  await expect(page.locator("h1"), `${path} has one heading`).toHaveCount(1);
  await expect(page).toHaveTitle(/\S.* · Cloudhal$/);
  // Before axe and the camera put anything of theirs on the page.
  expect(watch(page).problems(), path).toEqual([]);
  await inspect(page, name);
}

/** One request in each state that there is, and the page that it is about. */
async function everyState(cloudhal: Cloudhal, agent: HttpAgent, site: string, ada: Page) {
  let n = 0;
  const ask = async () => {
    n += 1;
    const { body } = await agent.ok("node_get", { site, node: await agent.node(site, "visit/opening-hours") });
    await agent.edit(site, "visit/opening-hours", { body: `${body.trimEnd()} Except on the ${n + 1}th of the month.\n` });
    return agent.asks("publish", { site, reason: "Ada asked for it in the morning." });
  };
  await cloudhal.moveClock(-25 * HOUR_MS);
  const expired = await ask();
  await cloudhal.moveClock(0);
  // Asking again finds it expired, whatever has been swept.
  expect(await agent.call("publish", { site, approvalId: expired.approvalId })).toMatchObject({ error: { code: "approval_expired" } });
  const voided = await ask();
  const denied = await ask();
  await decide(ada, site, denied, "deny", "Please check the wording first.");
  const cancelled = await ask();
  await agent.ok("approvals_cancel", { approvalId: cancelled.approvalId });
  const done = await ask();
  await decide(ada, site, done, "approve");
  await agent.ok("publish", { site, approvalId: done.approvalId });
  await agent.ok("node_create", { site, parent: "", kind: "page", slug: "jobs", title: "Jobs", body: "# Join us\n\nWe look for a baker who likes mornings." });
  await agent.edit(site, "about", { title: "About the family", fields: { description: "Four generations at one oven" } });
  const pending = await ask();
  const approved = await agent.asks("delete", { site, node: await agent.node(site, "bread/cinnamon-knots") });
  await decide(ada, site, approved, "approve");
  const irreversible = await agent.asks("delete", { site });
  return { expired, voided, denied, cancelled, done, approved, pending, irreversible };
}

test("signed in", async ({ cloudhal, httpAgent, site, ada }) => {
  test.setTimeout(600_000);
  await look(ada, "queue-empty", "/approvals");
  const states = await everyState(cloudhal, httpAgent, site, ada);
  for (const [name, asked] of Object.entries(states)) await look(ada, `approval-${name}`, `/approvals/${asked.approvalId}`);
  await look(ada, "changes", `/approvals/${states.pending.approvalId}/changes`);
  for (const tab of ["waiting", "approved", "done", "denied", "voided", "expired", "all"]) await look(ada, `queue-${tab}`, `/approvals?tab=${tab}`);
  await look(ada, "queue-filtered", `/approvals?tab=all&tool=publish&site=${BAKERY}&agent=copy-editor&text=bakery`);
  await look(ada, "queue-nothing-matches", "/approvals?text=no-such-words");
  await look(ada, "queue-notice", "/approvals?notice=denied_some");
  await look(ada, "sites", "/sites");
  await look(ada, "site", `/sites/${BAKERY}`);
  await look(ada, "versions", `/sites/${BAKERY}/versions`);
  await look(ada, "node-edited", `/sites/${BAKERY}/nodes/${await httpAgent.node(site, "visit/opening-hours")}`);
  await look(ada, "node-collection", `/sites/${BAKERY}/nodes/${await httpAgent.node(site, "bread")}`);
  await look(ada, "settings", `/sites/${BAKERY}/settings`);
  await look(ada, "settings-saved", `/sites/${BAKERY}/settings?notice=policy_saved`);
  await look(ada, "people", "/people");
  await look(ada, "agents", "/agents");
  await look(ada, "journal", "/journal");
  await look(ada, "journal-of-a-site", `/journal?site=${BAKERY}`);
  await look(ada, "not-found", "/nothing/here", 404);
  await look(ada, "approval-unknown", "/approvals/nobodyknowsthis", 404);
  await look(ada, "site-unknown", "/sites/nobody-knows-this", 404);
});

test("signed out", async ({ cloudhal, anonymous }) => {
  await look(anonymous, "login", "/login?next=/approvals/abc");
  await look(anonymous, "login-failed", "/login?next=&notice=sign_in_failed");
  await look(anonymous, "sign-in-link", new URL(cloudhal.value("sign-in")).pathname);
});

test("open menus and dialogs", async ({ ada }) => {
  const axeFinds = async (name: string) => {
    await ada.evaluate(AXE);
    const violations: Violation[] = await ada.evaluate(async () => {
      // @ts-expect-error axe is what was just evaluated.
      return (await axe.run(document, { iframes: false })).violations;
    });
    await ada.screenshot({ path: `test-results/screens/${name}.png` });
    expect(violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => [id, nodes.map((node) => node.target)])).toEqual([]);
  };
  await ada.goto("/approvals?tab=all");
  await hydrated(ada);
  await ada.keyboard.press("?");
  await expect(ada.getByRole("dialog", { name: "Keyboard" })).toBeVisible();
  await axeFinds("keyboard-1280");
  await ada.keyboard.press("Escape");
  await ada.locator("details.person summary").click();
  await axeFinds("menu-1280");
  await ada.setViewportSize(PHONE);
  await axeFinds("menu-390");
  // With every fold open: each form that there is.
  for (const [name, path] of [["people", "/people"], ["agents", "/agents"], ["settings", `/sites/${BAKERY}/settings`]] as const) {
    await ada.goto(path);
    await hydrated(ada);
    await ada.evaluate(() => {
      for (const fold of document.querySelectorAll("main details")) fold.setAttribute("open", "");
      for (const tick of document.querySelectorAll<HTMLInputElement>("input[name$='.own'], input[value=some]")) tick.checked = true;
    });
    for (const { name: size, width, height, colorScheme } of LOOKS) {
      await ada.setViewportSize({ width, height });
      await ada.emulateMedia({ colorScheme });
      await axeFinds(`${name}-open-${size}`);
      const wider = await ada.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(wider, `${path} at ${size} scrolls sideways`).toBe(0);
    }
  }
});

test("the very first view, and the first person", async ({ browser }) => {
  const empty = await Cloudhal.start({ demo: false });
  try {
    const context = await browser.newContext({ baseURL: empty.url, reducedMotion: "reduce" });
    const page = await context.newPage();
    const heard: string[] = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && heard.push(message.text()));
    page.on("pageerror", (error) => heard.push(error.message));
    await page.goto(empty.value("set-up"));
    await hydrated(page);
    await page.screenshot({ path: "test-results/screens/set-up-1280.png" });
    await page.getByLabel("Your name").fill("Ada Osei");
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill("early to the oven");
    await page.getByRole("button", { name: "Begin" }).click();
    await expect(page.getByText("No agent is connected yet")).toBeVisible();
    await expect(page.getByText("claude mcp add")).toBeVisible();
    await hydrated(page);
    await page.screenshot({ path: "test-results/screens/first-view-1280.png" });
    await page.setViewportSize(PHONE);
    await page.screenshot({ path: "test-results/screens/first-view-390.png" });
    await page.goto("/sites");
    await expect(page.getByText("No site yet")).toBeVisible();
    await page.goto("/agents");
    await expect(page.getByText("No agent yet")).toBeVisible();
    await page.goto("/journal");
    await hydrated(page);
    // The link that made the first person makes no second one.
    await page.goto(empty.value("set-up"));
    await page.getByLabel("Your name").fill("Mallory");
    await page.getByLabel("E-mail").fill("mallory@example.com");
    await page.getByLabel("Password").fill("early to the oven");
    await page.getByRole("button", { name: "Begin" }).click();
    await expect(page.getByText("This sign-in link was used already or is too old.")).toBeVisible();
    expect(heard).toEqual([]);
    await context.close();
    expect((await empty.run(["verify"])).code).toBe(0);
  } finally {
    await empty.stop();
  }
});

test("a published site", async ({ anonymous }) => {
  for (const [name, path] of [["live-home", ""], ["live-page", "visit/opening-hours/"]]) {
    await anonymous.goto(`/live/${BAKERY}/${path}`);
    expect(watch(anonymous).problems()).toEqual([]);
    await anonymous.evaluate(AXE);
    for (const { name: size, width, height, colorScheme } of LOOKS) {
      await anonymous.setViewportSize({ width, height });
      await anonymous.emulateMedia({ colorScheme });
      const violations: Violation[] = await anonymous.evaluate(async () => {
        // @ts-expect-error axe is what was just evaluated.
        return (await axe.run()).violations;
      });
      expect.soft(violations.filter(({ impact }) => impact === "serious" || impact === "critical"), path).toEqual([]);
      await anonymous.screenshot({ path: `test-results/screens/${name}-${size}.png` });
    }
  }
});
