// A person's own MCP client: its key lives as long as the session, and it may ask its person.

import { GRACE, expect, hydrated, record, test, useCloudhal, visit } from "./support/fixtures.ts";
import { McpAgent } from "./support/agent.ts";

useCloudhal();

test("the key of a person's own client ends when they sign out", async ({ cloudhal, open, site }) => {
  const grace = await open({ signedIn: false });
  await grace.goto("/login");
  await hydrated(grace);
  await grace.getByLabel("E-mail").fill(GRACE.email);
  await grace.getByLabel("Password").fill(GRACE.password);
  await grace.getByRole("button", { name: "Sign in" }).click();
  await expect(grace).toHaveURL("/approvals");
  await visit(grace, "/agents");
  const own = grace.locator("section.box", { has: grace.getByRole("heading", { name: "Your own client" }) });
  await own.locator("summary", { hasText: "New key" }).click();
  await own.getByLabel("Which client").fill("laptop");
  await own.getByRole("button", { name: "Make a key for it" }).click();
  await expect(grace.getByRole("heading", { name: "The key of your client laptop" })).toBeVisible();
  await hydrated(grace);
  const key = (await grace.locator(".shown code").first().textContent())!;
  expect(key).toMatch(/^clhp_/);

  // It opens MCP and nothing else, and what it asks for waits like anybody's.
  const refused = await fetch(`${cloudhal.url}/tools`, { headers: { authorization: `Bearer ${key}` } });
  expect(refused.status).toBe(401);
  const laptop = await McpAgent.connect(cloudhal.url, key);
  await laptop.edit(site, "orders", { body: "By Grace's own client." });
  const asked = await laptop.asks("publish", { site });
  await visit(grace, `/approvals/${asked.approvalId}`);
  await expect(grace.locator(".ask .by")).toContainText(/Grace .*asked over MCP/);
  await grace.screenshot({ path: "test-results/own-client-asks.png", fullPage: true });
  await grace.getByRole("button", { name: /^Approve/ }).click();
  await expect(grace.getByText("Approved").first()).toBeVisible();
  await laptop.ok("publish", { site, approvalId: asked.approvalId });

  await visit(grace, "/agents");
  await expect(own).toContainText("laptop");
  await grace.screenshot({ path: "test-results/own-client.png", fullPage: true });
  await grace.locator("details.person summary").click();
  await grace.getByRole("button", { name: "Sign out" }).click();
  await expect(grace).toHaveURL(/login/);
  const gone = await fetch(`${cloudhal.url}/mcp`, { method: "POST", headers: { authorization: `Bearer ${key}` }, body: "{}" });
  expect(gone.status).toBe(401);
});

test("a client that can ask its person runs what they approve in it", async ({ cloudhal, ada, site }) => {
  const answer = await ada.request.post("/api/personal-keys", { data: { name: "desk" }, headers: { origin: cloudhal.url } });
  expect(answer.status(), await answer.text()).toBe(200);
  const { key, id } = await answer.json();
  let said = "deny";
  const questions: string[] = [];
  const desk = await McpAgent.connect(cloudhal.url, key, "auto", (question) => {
    questions.push(question.message);
    return { action: "accept", content: { decision: said, reason: "Not before noon." } };
  });
  await desk.edit(site, "orders", { body: "Cakes need four days." });
  expect(await desk.call("publish", { site })).toMatchObject({ status: "error", error: { code: "approval_denied" } });
  said = "approve";
  await desk.edit(site, "orders", { body: "Cakes need five days." });
  const { version } = await desk.ok("publish", { site });
  expect(questions).toHaveLength(2);
  expect(questions[1]).toContain("Publish 1 changed page of Harbour Street Bakery");
  const url = questions[1]!.match(/https?:\S+/)![0];
  const decided = await record(ada, site, url.split("/").pop()!);
  expect(decided).toMatchObject({ status: "redeemed", decisions: [{ decision: "approve", via: "client_elicitation" }] });
  expect(decided.receipt.result.version).toBe(version);
  await visit(ada, url);
  await expect(ada.locator("main")).toContainText("in their own MCP client");
  const ended = await ada.request.delete(`/api/personal-keys/${id}`, { headers: { origin: cloudhal.url } });
  expect(ended.status()).toBe(200);
});
