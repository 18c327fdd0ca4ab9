// Who is told outside, as an owner looks after it in the browser.

import { BAKERY, expect, hydrated, test, useCloudhal, watch } from "./support/fixtures.ts";
import { inspect } from "./support/looks.ts";
import { Receiver } from "./support/receiver.ts";
import type { Settings } from "./support/server.ts";

const settings: Settings = { CLOUDHAL_WEBHOOKS: "listed" };
let receiver: Receiver;

test.beforeAll(async () => {
  receiver = await Receiver.start();
  settings.CLOUDHAL_WEBHOOK_ALLOW = receiver.host;
});
useCloudhal(settings);
test.afterAll(() => receiver.stop());

const SETTINGS = `/sites/${BAKERY}/settings`;

for (const javaScriptEnabled of [true, false]) {
  test(`a destination is added, tested, told of a request and deleted (scripts ${javaScriptEnabled ? "run" : "are blocked"})`, async ({ open, httpAgent, site }) => {
    const owner = await open({ context: { javaScriptEnabled } });
    const settled = async () => javaScriptEnabled && (await hydrated(owner));
    const tag = javaScriptEnabled ? "a" : "b";
    const address = `http://${receiver.host}/cloudhal/${tag}`;
    const part = owner.getByRole("region", { name: "Webhooks" });
    const row = part.locator(".hook", { hasText: `/cloudhal/${tag}` });
    const form = part.getByRole("region", { name: "Add a destination" });
    receiver.got.length = 0;

    // One that the operator did not list is said beside the field, and stays typed.
    await owner.goto(SETTINGS);
    watch(owner).allow(/status of 422/);
    await form.getByLabel("Address").fill("https://elsewhere.example/hook");
    await form.getByRole("button", { name: "Add and make its secret" }).click();
    await expect(form.getByText("Nothing can be told there: the operator has not listed this host and port.")).toBeVisible();
    await expect(form.getByLabel("Address")).toHaveValue("https://elsewhere.example/hook");

    await form.getByLabel("Address").fill(address);
    await form.getByRole("button", { name: "Add and make its secret" }).click();
    await expect(owner.getByRole("heading", { name: `The secret of ${receiver.host}` })).toBeVisible();
    await settled();
    const secret = (await owner.locator(".shown code").textContent())!;
    expect(secret).toMatch(/^whsec_/);
    expect(new URL(owner.url()).pathname + new URL(owner.url()).search).toBe(SETTINGS);
    if (javaScriptEnabled) {
      await owner.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await owner.locator(".shown").getByRole("button", { name: "Copy the secret" }).click();
      await expect(owner.locator(".shown").getByRole("button", { name: "Copied" })).toBeVisible();
      expect(await owner.evaluate(() => navigator.clipboard.readText())).toBe(secret);
      await inspect(owner, "webhook-secret");
    }
    await owner.goto(SETTINGS);
    expect(await owner.content()).not.toContain(secret.slice(6));

    await row.getByRole("button", { name: "Send a test" }).click();
    await expect(owner.getByText("It arrived: the receiver took it.")).toBeVisible();
    expect(receiver.got.map(({ body }) => body.type)).toEqual(["ping"]);
    await settled();
    await row.locator("summary", { hasText: "Latest deliveries" }).click();
    const newest = row.locator(".deliveries li").first();
    await expect(newest).toContainText("A test");
    await expect(newest).toContainText("Delivered");

    await httpAgent.edit(site, "about", { body: `Our story, told ${tag} way.` });
    const asked = await httpAgent.asks("publish", { site });
    await expect(async () => {
      await owner.goto(SETTINGS);
      await expect(row.locator("summary", { hasText: "A request waits" })).toContainText("Delivered", { timeout: 1_000 });
    }).toPass();
    await settled();
    await row.locator("summary", { hasText: "Latest deliveries" }).click();
    await expect(newest).toContainText("A request waits");
    await expect(newest.getByRole("link", { name: "The request" })).toHaveAttribute("href", `/approvals/${asked.approvalId}`);
    expect(receiver.got.at(-1)!.body.data.url).toBe(asked.url);
    await newest.getByRole("button", { name: "Send again" }).click();
    await expect(owner.getByText("It arrived: the receiver took it.")).toBeVisible();
    expect(receiver.got.filter(({ body }) => body.data.id === asked.approvalId)).toHaveLength(2);

    // A new secret is made in two steps; until the receiver has it, both sign.
    await settled();
    await row.locator("summary", { hasText: "New secret" }).click();
    await row.getByRole("button", { name: "Make a new secret" }).click();
    await expect(owner.getByText("The one before signs as well until")).toBeVisible();
    await expect(owner.locator(".shown code")).not.toHaveText(secret);
    await settled();
    receiver.answer = 500;
    await row.getByRole("button", { name: "Send a test" }).click();
    await expect(owner.getByText("It did not arrive. It is tried again by itself")).toBeVisible();
    receiver.answer = 204;
    expect(receiver.got.at(-1)!.signature.split(" ")).toHaveLength(2);
    await settled();
    await row.locator("summary", { hasText: "Latest deliveries" }).click();
    await expect(newest).toContainText("It answered 500.");
    if (javaScriptEnabled) {
      for (const fold of ["New secret", "Delete"]) await row.locator("summary", { hasText: fold }).click();
      await row.scrollIntoViewIfNeeded();
      await inspect(owner, "webhooks-open");
      await row.locator("summary", { hasText: "Delete" }).click();
    }

    await row.locator("summary", { hasText: "Delete" }).click();
    await row.getByRole("button", { name: "Delete this destination" }).click();
    await expect(owner.getByText("Deleted. Nothing is told there any more")).toBeVisible();
    await expect(row).toHaveCount(0);
  });
}
