// A day at the desk: what arrives shows itself, and everything can be done by keyboard alone.

import { decide, expect, hydrated, record, test, useCloudhal, visit } from "./support/fixtures.ts";

useCloudhal();

test("a new request appears in the open queue, and every count follows (LI1, AT1)", async ({ ada, httpAgent, site }) => {
  await visit(ada, "/approvals");
  await expect(ada.locator(".topbar .live")).toHaveText("Live");
  await expect(ada).toHaveTitle("Approvals · Cloudhal");
  await expect(ada.locator(".nav .count")).toHaveCount(0);
  await expect(ada.getByText("Nothing waits for you")).toBeVisible();

  await httpAgent.edit(site, "orders", { body: "Hot off the press." });
  const asked = await httpAgent.asks("publish", { site });
  const row = ada.locator(`.row a[href^="/approvals/${asked.approvalId}"]`);
  await expect(row).toContainText("Publish 1 changed page of Harbour Street Bakery");
  await expect(ada.locator(".nav .count")).toHaveText("1 waiting");
  await expect(ada).toHaveTitle("(1) Approvals · Cloudhal");
  await expect(ada.locator("[aria-live=polite]", { hasText: "A new request waits." })).toBeAttached();

  await httpAgent.ok("approvals_cancel", { approvalId: asked.approvalId });
  await expect(row).toHaveCount(0);
  await expect(ada).toHaveTitle("Approvals · Cloudhal");
});

test("a lost line is shown, and what was missed is caught up (LI4)", async ({ ada, httpAgent, site }) => {
  await visit(ada, "/approvals");
  await expect(ada.locator(".topbar .live")).toHaveText("Live");
  await ada.context().setOffline(true);
  await expect(ada.locator(".topbar .live")).toHaveText(/Offline|Reconnecting/);
  await httpAgent.edit(site, "orders", { body: "While you were out." });
  const asked = await httpAgent.asks("publish", { site });
  await ada.context().setOffline(false);
  await expect(ada.locator(`.row a[href^="/approvals/${asked.approvalId}"]`)).toBeVisible();
  await expect(ada.locator(".topbar .live")).toHaveText("Live");
  await decide(ada, site, asked, "deny");
});

test("by keyboard alone: find it, read it, arm, approve (KE1, KE2, AX6)", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "Without a mouse." });
  const asked = await httpAgent.asks("publish", { site });
  await visit(ada, "/approvals");
  const keyboard = ada.keyboard;

  // The skip link comes first.
  await keyboard.press("Tab");
  await expect(ada.getByText("Skip to the content")).toBeFocused();

  await keyboard.press("j");
  await expect(ada.locator(`.row a[href^="/approvals/${asked.approvalId}"]`)).toBeFocused();
  await keyboard.press("Enter");
  await expect(ada).toHaveURL(new RegExp(`/approvals/${asked.approvalId}`));
  await expect(ada.getByRole("heading", { level: 1, name: /Publish 1 changed page/ })).toBeFocused();

  // One key decides nothing: it only goes to its button, and Escape leaves it.
  await keyboard.press("a");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).toBeFocused();
  await keyboard.press("Escape");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).not.toBeFocused();
  await keyboard.press("Control+a");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).not.toBeFocused();
  await keyboard.press("d");
  await expect(ada.getByRole("button", { name: "Deny" })).toBeFocused();
  expect((await record(ada, site, asked.approvalId)).status).toBe("pending");

  // In the order of the page: reason, Approve, Deny. Enter in the reason decides nothing, and letters are text there.
  await ada.getByLabel("Reason for the agent").focus();
  await keyboard.type("add a date");
  await keyboard.press("Enter");
  await expect(ada.getByLabel("Reason for the agent")).toHaveValue("add a date");
  expect((await record(ada, site, asked.approvalId)).status).toBe("pending");
  await keyboard.press("Tab");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).toBeFocused();
  await keyboard.press("Tab");
  await expect(ada.getByRole("button", { name: "Deny" })).toBeFocused();

  await keyboard.press("a");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).toBeEnabled();
  await keyboard.press("Enter");
  await expect(ada.locator(".decided")).toContainText("Approved by Ada Osei");
  await expect(ada.locator(".decided")).toContainText("add a date");
  await hydrated(ada);

  await keyboard.press("?");
  await expect(ada.getByRole("dialog", { name: "Keyboard" })).toBeVisible();
  await keyboard.press("Escape");
  await expect(ada.getByRole("dialog", { name: "Keyboard" })).toBeHidden();
  await keyboard.press("g");
  await keyboard.press("s");
  await expect(ada).toHaveURL("/sites");
  await expect(ada.getByRole("heading", { level: 1 })).toBeFocused();
});

test("single keys can be switched off, and stay off (KE4)", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "No keys, please." });
  const asked = await httpAgent.asks("publish", { site });
  await visit(ada, asked.url);
  await ada.keyboard.press("?");
  await ada.getByLabel("Single-letter keys are on").uncheck();
  await ada.getByRole("button", { name: "Close" }).click();
  await ada.keyboard.press("a");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).not.toBeFocused();
  await ada.reload();
  await hydrated(ada);
  await ada.keyboard.press("a");
  await expect(ada.getByRole("button", { name: "Approve publishing" })).not.toBeFocused();
  await decide(ada, site, asked, "deny");
});

test("several are denied at once, with one reason (BU1)", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "Too many wishes." });
  const asked = [await httpAgent.asks("publish", { site }), await httpAgent.asks("delete", { site, node: await httpAgent.node(site, "about") })];
  await visit(ada, "/approvals");
  await ada.locator("summary", { hasText: "Deny several" }).click();
  for (const { approvalId } of asked) {
    await ada.locator(".row").filter({ has: ada.locator(`a[href^="/approvals/${approvalId}"]`) }).getByLabel("Select").check();
  }
  await ada.getByLabel("Reason, optional").fill("One at a time.");
  await ada.getByRole("button", { name: "Deny the selected" }).click();
  await expect(ada.getByText("Denied. Nothing was changed on any of them.")).toBeVisible();
  for (const { approvalId } of asked) {
    expect((await record(ada, site, approvalId)).decisions).toMatchObject([{ decision: "deny", reason: "One at a time." }]);
  }
});

test("what was typed outlives an update and a reload (LI3)", async ({ ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "Half a sentence." });
  const asked = await httpAgent.asks("publish", { site });
  await visit(ada, asked.url);
  await ada.getByLabel("Reason for the agent").fill("Please also");
  const other = await httpAgent.asks("delete", { site, node: await httpAgent.node(site, "about") });
  await expect(ada.locator(`.row a[href^="/approvals/${other.approvalId}"]`)).toBeVisible();
  await expect(ada.getByLabel("Reason for the agent")).toHaveValue("Please also");
  await ada.reload();
  await hydrated(ada);
  await expect(ada.getByLabel("Reason for the agent")).toHaveValue("Please also");
  for (const one of [asked, other]) await decide(ada, site, one, "deny");
});
