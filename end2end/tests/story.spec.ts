// The founding story, as an agent and a person live it.

import { BAKERY, GRACE, expect, hydrated, test, useCloudhal } from "./support/fixtures.ts";
import { McpAgent } from "./support/agent.ts";

useCloudhal();

const PAGES = {
  "visit/opening-hours": "From this week we bake on **Sundays** too, from eight to noon.",
  "bread/harbour-loaf": "It now comes in a *half size* as well.",
  orders: "Cakes need three days from now on.",
};

for (const era of ["auto", "legacy"] as const) {
  test(`an agent edits three pages, a person approves, and it is live (MCP, ${era})`, async ({ cloudhal, anonymous: page }) => {
    const agent = await McpAgent.connect(cloudhal.url, cloudhal.agentKey, era);
    const tools = await agent.tools();
    expect(tools).toContain("publish");
    expect(tools).not.toContain("update_collection_status");
    const site = await agent.site(BAKERY);

    // The agent edits the draft freely.
    const live = (path: string) => page.request.get(`/live/${BAKERY}/${path}/`).then((response) => response.text());
    for (const [path, news] of Object.entries(PAGES)) {
      const { body, rev } = await agent.ok("node_get", { site, node: await agent.node(site, path) });
      await agent.edit(site, path, { expectedRev: rev, body: `${body.trimEnd()}\n\n${news} (${era})\n` });
    }
    expect(await live("orders")).not.toContain(`(${era})`);

    // Publishing has consequences, so it waits.
    const asked = await agent.asks("publish", { site, reason: "The opening hours have changed." });
    expect(asked.url).toBe(`${cloudhal.url}/approvals/${asked.approvalId}`);
    expect(asked.approved).toBe(false);
    expect((await agent.asks("publish", { site })).approvalId).toBe(asked.approvalId);

    // A signed-out person opens the link and is back on it after signing in.
    await page.goto(asked.url);
    await expect(page).toHaveURL(`/login?next=/approvals/${asked.approvalId}`);
    await hydrated(page);
    await expect(page.getByText("A request waits for you.")).toBeVisible();
    await page.getByLabel("E-mail").fill(GRACE.email);
    await page.getByLabel("Password").fill(GRACE.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page).toHaveURL(`/approvals/${asked.approvalId}`);

    // What will happen, to what, who asks.
    await hydrated(page);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Publish 3 changed pages of Harbour Street Bakery?");
    await expect(page.getByText("Waiting for you", { exact: true })).toBeVisible();
    await expect(page.locator(".ask .by")).toContainText(/copy-editor, an agent of Ada Osei, asked over MCP/);
    await expect(page.getByText("This is not one of your own agents.")).toBeVisible();

    // The change, word by word and rendered.
    const changes = page.locator("#changes details.node");
    await expect(changes).toHaveCount(3);
    const hours = changes.filter({ hasText: "Opening hours" });
    await expect(hours.locator("ins")).toContainText(`Sundays`);
    await expect(hours.locator("ins")).not.toContainText("Tuesday");
    await hours.scrollIntoViewIfNeeded();
    const [before, after] = [hours.frameLocator("iframe").first(), hours.frameLocator("iframe").last()];
    await expect(after.locator("strong", { hasText: "Sundays" }).first()).toBeVisible();
    await expect(before.locator("body")).not.toContainText(`(${era})`);

    // The agent waits for the answer while the person decides.
    const answer = agent.ok("approvals_get", { approvalId: asked.approvalId, waitSeconds: 45 });
    await page.getByRole("button", { name: "Approve publishing" }).click();
    await expect(page.getByText("Approved. The agent has not repeated its call yet; it may run this once.")).toBeVisible();
    await expect(page.locator(".decided")).toContainText(`Approved by ${GRACE.name}`);
    await expect(page.getByRole("button", { name: /Approve|Deny/ })).toHaveCount(0);
    expect((await answer).status).toBe("approved");
    expect(await live("orders")).not.toContain(`(${era})`);

    // The repeat publishes, once; the open page shows how it ended.
    const ran = await agent.call("publish", { site, approvalId: asked.approvalId });
    expect(ran).toMatchObject({ status: "ok", replayed: false });
    await expect(page.getByText("Approved and done.")).toBeVisible();
    const again = await agent.call("publish", { site, approvalId: asked.approvalId });
    expect(again).toMatchObject({ status: "ok", replayed: true, data: ran.data });

    // It is live, also where the person follows the page's own link.
    const seen = page.waitForEvent("popup");
    await page.getByRole("link", { name: "See it live" }).click();
    await expect(await seen).toHaveURL(`/live/${BAKERY}/`);
    for (const path of Object.keys(PAGES)) expect(await live(path)).toContain(`(${era})`);
    await agent.close();
  });
}
