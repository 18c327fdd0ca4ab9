// A person can decide on a page whose scripts never arrive (C47, AC1): WASM blocked, or no scripts at all.

import { BAKERY, GRACE, decide, expect, record, test, useCloudhal, watch } from "./support/fixtures.ts";

useCloudhal();

/** Far longer than what folds with scripts, with the harm in its tail. No word of it was there before. */
const long = (tail: string) => `News\n\n${Array.from({ length: 900 }, (_, n) => `${tail}${n}`).join("\n")}\n\n${tail}Finally:pay-twice`;

const ways = {
  "scripts off": async (open: any) => open({ signedIn: false, context: { javaScriptEnabled: false } }),
  "WASM blocked": async (open: any) => {
    const page = await open({ signedIn: false });
    await page.route(/\.wasm$/, (route: any) => route.abort());
    // The browser says that it could not load it; more may not be wrong.
    watch(page).allow(/Failed to load resource: net::ERR_FAILED .*\.wasm|uncaught: TypeError: Failed to fetch/);
    return page;
  },
};

for (const [how, come] of Object.entries(ways)) {
  test(`the whole story with ${how}`, async ({ open, httpAgent, site, cloudhal }) => {
    const page = await come(open);
    const tail = how.replaceAll(" ", "-");
    await httpAgent.edit(site, "orders", { body: long(tail) });
    const asked = await httpAgent.asks("publish", { site });

    await page.goto(asked.url);
    await page.getByLabel("E-mail").fill(GRACE.email);
    await page.getByLabel("Password").fill(GRACE.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page).toHaveURL(`/approvals/${asked.approvalId}`);
    await expect(page.locator("html[data-hydrated]")).toHaveCount(0);

    // All there is to know stands open: nothing needs a script to be read.
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Publish 1 changed page of Harbour Street Bakery?");
    await expect(page.getByText("Waiting for you", { exact: true })).toBeVisible();
    await expect(page.locator("details.fold:not([open])")).toHaveCount(0);
    await expect(page.locator("#changes ins", { hasText: "Finally:pay-twice" })).toBeVisible();
    await expect(page.locator("#call .facts")).toContainText(site);
    await expect(page.getByText("Approve waits until you opened them")).toBeHidden();

    // The agent never takes waiting for success.
    expect(await httpAgent.call("publish", { site, approvalId: asked.approvalId })).toMatchObject({ status: "approval_pending", approved: false });

    await page.getByLabel("Reason for the agent").fill("Fine by me.");
    await page.getByRole("button", { name: "Approve publishing" }).click();
    await expect(page).toHaveURL(`/approvals/${asked.approvalId}`);
    await expect(page.locator(".decided")).toContainText("Fine by me.");
    const ran = await httpAgent.call("publish", { site, approvalId: asked.approvalId });
    expect(ran).toMatchObject({ status: "ok", replayed: false });
    await page.reload();
    await expect(page.getByText("Approved and done.")).toBeVisible();
    await page.goto(`/live/${BAKERY}/orders/`);
    await expect(page.getByText(`${tail}Finally:pay-twice`)).toBeVisible();

    // Denying, the list, its tabs and its search, filters, signing out: plain links and forms.
    await httpAgent.edit(site, "orders", { body: `Short again, with ${how}.` });
    const next = await httpAgent.asks("publish", { site });
    await page.goto("/approvals");
    await page.locator(`.row a[href^="/approvals/${next.approvalId}"]`).click();
    await page.getByLabel("Reason for the agent").fill("No.");
    await page.getByRole("button", { name: "Deny" }).click();
    await expect(page.locator(".decided")).toContainText(`Denied by ${GRACE.name}`);
    expect(await httpAgent.call("publish", { site, approvalId: next.approvalId })).toMatchObject({ error: { code: "approval_denied" } });
    await page.getByRole("link", { name: /^Denied/ }).click();
    await expect(page.locator(`.row a[href^="/approvals/${next.approvalId}"]`)).toContainText("Denied");
    await page.getByLabel("Search approvals").fill("no such words anywhere");
    await page.getByLabel("Search approvals").press("Enter");
    await expect(page.getByText("Nothing matches")).toBeVisible();

    await page.locator("details.person summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect(page).toHaveURL(/\/login/);
    await page.goto(asked.url);
    await expect(page).toHaveURL(`/login?next=/approvals/${asked.approvalId}`);
    expect(cloudhal.log).not.toContain("panicked");
  });
}

test("with scripts, a long value folds, and Approve waits until it was opened (C42, DE9)", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: long("folded") });
  const asked = await httpAgent.asks("publish", { site });
  await ada.goto(asked.url);
  const approve = ada.getByRole("button", { name: "Approve publishing" });
  const fold = ada.locator("details.fold");
  await expect(fold).toHaveCount(1);
  await expect(fold).not.toHaveAttribute("open");
  await expect(ada.getByText("1 long value is folded. Approve waits until you opened them.")).toBeVisible();
  await expect(approve).toHaveAttribute("aria-disabled", "true");
  await approve.click({ force: true });
  expect((await record(ada, site, asked.approvalId)).status).toBe("pending");

  await fold.locator("summary").first().press("Enter");
  await expect(ada.locator("#changes ins", { hasText: "Finally:pay-twice" })).toBeVisible();
  await expect(approve).toBeEnabled();
  // An update in place does not ask for it again.
  const other = await httpAgent.asks("delete", { site, node: await httpAgent.node(site, "about") });
  await expect(ada.locator(`.row a[href^="/approvals/${other.approvalId}"]`)).toBeVisible();
  await expect(approve).toBeEnabled();
  await decide(ada, site, other, "deny");
  await approve.click();
  await expect(ada.getByText("it may run this once")).toBeVisible();
});
