// Who there is and who may what, as owners keep it in the browser: people, members, policy, agents, keys.

import type { Page } from "@playwright/test";
import { HttpAgent } from "./support/agent.ts";
import { BAKERY, expect, hydrated, type Open, record, test, useCloudhal, visit, watch } from "./support/fixtures.ts";

useCloudhal();

const SETTINGS = `/sites/${BAKERY}/settings`;

/** Adds somebody on the page People and gives the link that is shown for them. */
async function invite(page: Page, name: string, email: string): Promise<string> {
  await page.goto("/people");
  const form = page.getByRole("region", { name: "Add somebody" });
  await form.getByLabel("Name").fill(name);
  await form.getByLabel("E-mail").fill(email);
  await form.getByRole("button", { name: "Add and make a sign-in link" }).click();
  await expect(page.getByRole("heading", { name: `The sign-in link of ${name}` })).toBeVisible();
  return (await page.locator(".shown code").first().textContent())!;
}

/** A browser of somebody who follows their link. */
async function follow(open: Open, link: string): Promise<Page> {
  const page = await open({ signedIn: false });
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page).toHaveURL(/\/approvals/);
  return page;
}

async function addMember(page: Page, email: string, groups = ""): Promise<void> {
  await page.goto(SETTINGS);
  const form = page.getByRole("region", { name: "Add a member" });
  await form.getByLabel("E-mail").fill(email);
  await form.getByLabel("Groups").fill(groups);
  await form.getByRole("button", { name: "Add", exact: true }).click();
  await expect(page.getByText("Added to this site.")).toBeVisible();
}

/** Sets what a publish takes; `page` may have scripts or not. */
async function publishTakes(page: Page, approvers: string, groups: string): Promise<void> {
  await page.goto(SETTINGS);
  await page.locator("summary", { hasText: "Change the policy" }).click();
  const own = page.getByLabel("A rule of its own for: publishing");
  await own.check();
  const rule = page.getByRole("group", { name: "Publishing" });
  await rule.getByLabel("People who must approve").fill(approvers);
  await rule.getByLabel("Of each of these groups somebody").fill(groups);
  await page.getByRole("button", { name: "Save the policy" }).click();
}

for (const javaScriptEnabled of [true, false]) {
  test(`two approvers, one from legal: set by an owner, then both are needed (scripts ${javaScriptEnabled ? "run" : "are blocked"})`, async ({ open, httpAgent, site }) => {
    const owner = await open({ context: { javaScriptEnabled } });
    const tag = javaScriptEnabled ? "a" : "b";
    const ben = await follow(open, await invite(owner, "Ben Okafor", `ben.${tag}@example.com`));
    const lea = await follow(open, await invite(owner, "Lea Brandt", `lea.${tag}@example.com`));
    await addMember(owner, `ben.${tag}@example.com`);

    // Nobody is from legal yet: the rule says so at its own place, and what was typed is still there.
    watch(owner).allow(/status of 422/);
    await publishTakes(owner, "2", "legal");
    const rule = owner.getByRole("group", { name: "Publishing" });
    await expect(rule.getByText("Nobody who may decide on this site belongs to the group “legal”.")).toBeVisible();
    await expect(rule.getByLabel("People who must approve")).toHaveValue("2");
    await expect(rule.getByLabel("Of each of these groups somebody")).toHaveValue("legal");
    await addMember(owner, `lea.${tag}@example.com`, "legal");
    await publishTakes(owner, "2", "legal");
    await expect(owner.getByText("The policy is saved and holds at once.")).toBeVisible();
    await expect(owner.locator(".rules")).toContainText("Publishing: Two people must approve, somebody from legal among them.");

    await httpAgent.edit(site, "about", { body: `Our story, told ${tag} time.` });
    const asked = await httpAgent.asks("publish", { site });
    for (const [person, done] of [[ben, false], [lea, true]] as const) {
      await visit(person, asked.url);
      await person.getByRole("button", { name: "Approve publishing" }).click();
      await expect(person.getByText(done ? "it may run this once" : "somebody of the group “legal”")).toBeVisible();
      const answer = await httpAgent.call("publish", { site, ...(done ? { approvalId: asked.approvalId } : {}) });
      expect(answer).toMatchObject(done ? { status: "ok" } : { status: "approval_pending", approved: false });
    }
    expect((await record(owner, site, asked.approvalId)).decisions).toHaveLength(2);

    // Lea leaves: the page says that nobody can satisfy the rule any more.
    await owner.goto(SETTINGS);
    const row = owner.locator(".member", { hasText: "Lea Brandt" });
    await row.locator("summary", { hasText: "Remove" }).click();
    await row.getByRole("button", { name: "Take off this site" }).click();
    await expect(owner.getByText("Taken off this site.")).toBeVisible();
    await expect(owner.locator(".rules")).toContainText("Nobody can satisfy this as things stand");
    await lea.goto(SETTINGS).then((response) => expect(response!.status()).toBe(404));
    watch(lea).allow(/status of 404/);

    await owner.locator("summary", { hasText: "Change the policy" }).click();
    await owner.getByLabel("A rule of its own for: publishing").uncheck();
    await owner.getByRole("button", { name: "Save the policy" }).click();
    await expect(owner.locator(".rules")).toContainText("Everything that waits: One person must approve.");
  });
}

test("a key is shown once, and revoked its next call is refused", async ({ cloudhal, ada, site }) => {
  await visit(ada, "/agents");
  await ada.locator("summary", { hasText: "Add an agent" }).click();
  const form = ada.locator("#add");
  await form.getByLabel("Name").fill("press-officer");
  await form.getByLabel("Its first key ends").selectOption({ label: "In 30 days" });
  await form.getByRole("button", { name: "Add and make its key" }).click();
  await expect(ada.getByRole("heading", { name: "The key of press-officer" })).toBeVisible();
  await hydrated(ada);
  const key = (await ada.locator(".shown code").first().textContent())!;
  expect(key).toMatch(/^clh_/);
  expect(ada.url()).toBe(`${cloudhal.url}/agents`);
  await ada.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await ada.locator(".shown").getByRole("button", { name: "Copy" }).first().click();
  await expect(ada.locator(".shown").getByText("Copied")).toBeVisible();
  expect(await ada.evaluate(() => navigator.clipboard.readText())).toBe(key);

  const officer = new HttpAgent(cloudhal.url, key);
  expect(await officer.site(BAKERY)).toBe(site);
  await visit(ada, "/agents");
  expect(await ada.content()).not.toContain(key.slice(31));

  const row = ada.locator(".agent", { hasText: "press-officer" });
  await row.locator("summary", { hasText: "Revoke" }).click();
  await row.getByRole("button", { name: "Revoke this key" }).click();
  await expect(ada.getByText("Revoked. The next call with that key is refused.")).toBeVisible();
  const answer = await fetch(`${cloudhal.url}/tools`, { headers: { authorization: `Bearer ${key}` } });
  expect(answer.status).toBe(401);
  await expect(row).toContainText("Revoked");
});

test("a scope that is narrowed holds at the next call, and a form that is wrong keeps what was typed", async ({ cloudhal, ada, site }) => {
  const made = await cloudhal.command(["agent", "add", "--name", "night-clerk", "--owner", "ada@example.com", "--site", BAKERY]);
  const clerk = new HttpAgent(cloudhal.url, made.get("agent-key")!);
  await visit(ada, "/agents");
  const row = ada.locator(".agent", { hasText: "night-clerk" });
  await row.locator("summary", { hasText: "Change scope" }).click();
  await row.getByLabel("Only these:").check();
  watch(ada).allow(/status of 422/);
  await row.getByRole("button", { name: "Save the scope" }).click();
  await expect(row.getByText("Tick at least one tool, or choose every tool.")).toBeVisible();
  await expect(row.getByLabel("Only these:")).toBeChecked();
  await row.getByLabel("site-list").check();
  await row.getByRole("button", { name: "Save the scope" }).click();
  await expect(ada.getByText("Saved.")).toBeVisible();
  expect(await clerk.call("publish", { site })).toMatchObject({ error: { code: "insufficient_scope" } });
  await clerk.ok("site-list", {});
});

test("a disabled person's page ends by itself", async ({ ada, open }) => {
  const eve = await follow(open, await invite(ada, "Eve Moss", "eve@example.com"));
  await visit(eve, "/approvals");
  await ada.goto("/people");
  const row = ada.locator(".agent", { hasText: "Eve Moss" });
  await row.locator("summary", { hasText: "Disable" }).click();
  await row.getByRole("button", { name: "Disable the account" }).click();
  await expect(row).toContainText("Disabled");
  watch(eve).allow(/status of 401|EventSource|MIME/);
  expect((await eve.request.get("/api/sites")).status()).toBe(401);
  await eve.goto("/approvals");
  await expect(eve).toHaveURL(/\/login/);
});
