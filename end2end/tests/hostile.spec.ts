// What an agent writes is shown, never run: as the server prints it, after hydration, in previews, and live (C40, C44, C45).

import type { Page } from "@playwright/test";
import { BAKERY, decide, expect, hydrated, test, useCloudhal, visit, watch } from "./support/fixtures.ts";
import { HttpAgent, McpAgent, type Pending } from "./support/agent.ts";

useCloudhal();

const BREAKOUTS = [
  `</textarea><script>document.title='run'</script>`,
  `</title><script>document.title='run'</script>`,
  `</script><script>document.title='run'</script>`,
  `<!--`,
  `--><img src=x onerror="document.title='run'">`,
  `<svg onload="document.title='run'">`,
  `"'><iframe srcdoc="<script>top.document.title='run'</script>"></iframe>`,
  `</style></details></template></noscript><base href="https://evil.example/">`,
  `<meta http-equiv="refresh" content="0;url=https://evil.example/">`,
  `javascript:document.title='run'`,
  `{{constructor.constructor('return 1')()}}`,
  `[run](javascript:document.title='run') ![x](x" onerror="document.title='run')`,
];
const RIGHT_TO_LEFT = "invoice\u202Efdp.exe";
const ZERO_WIDTH = "pay\u200Bpal";
const CYRILLIC = "p\u0430yment";

/** Whether anything of a stranger's came to life on the page. */
async function expectInert(page: Page): Promise<void> {
  await expect(page).not.toHaveTitle(/^run$/);
  for (const alive of ["[onerror]", "[onload]", "base", "meta[http-equiv=refresh]", 'a[href^="javascript:" i]', "iframe[srcdoc]"]) {
    await expect(page.locator(alive), alive).toHaveCount(0);
  }
  // Our own scripts carry the policy's nonce; there are two: the start, and what hydration reads.
  const strangers = await page.locator("script").evaluateAll((all) => all.filter((one) => !(one as HTMLScriptElement).nonce).length);
  expect(strangers).toBe(0);
}

/** The page with and without scripts. */
async function expectInertBothWays(pages: Page[], path: string, seen: string[]): Promise<void> {
  for (const page of pages) {
    await page.goto(path);
    if (page === pages[0]) await hydrated(page);
    for (const text of seen) await expect(page.locator("body"), `${path} shows it`).toContainText(text);
    await expectInert(page);
  }
}

test("in every field that an agent can fill", async ({ cloudhal, httpAgent, site, open }) => {
  // C40, C44, C45.
  const pages = [await open(), await open({ context: { javaScriptEnabled: false } })];
  const everything = BREAKOUTS.join("\n\n");
  const node = await httpAgent.node(site, "about");
  const title = `About ${BREAKOUTS[0]} ${BREAKOUTS[1]} <!--`;
  const fields = { description: `${BREAKOUTS[4]} ${RIGHT_TO_LEFT}`, "<script>odd</script>": BREAKOUTS[2], note: `${ZERO_WIDTH} ${CYRILLIC}` };
  const edited = await httpAgent.call("node_update", { site, node, title, body: `${everything}\n\n${RIGHT_TO_LEFT}\n\n${ZERO_WIDTH}\n\n${CYRILLIC}`, fields });
  expect(edited, "the draft takes any text").toMatchObject({ status: "ok" });
  const refused = await httpAgent.call("node_update", { site, node, slug: "</title><script>" });
  expect(refused).toMatchObject({ error: { code: "invalid_arguments" } });
  const asked = await httpAgent.asks("publish", { site, reason: `${BREAKOUTS[0]}${BREAKOUTS[3]}${RIGHT_TO_LEFT}` });

  await expectInertBothWays(pages, asked.url, ["</textarea><script>document.title='run'</script>", "<!--", "U+202E", "U+200B"]);
  const ada = pages[0];
  await hydrated(ada);
  await expect(ada.locator("#changes .odd", { hasText: "U+202E" }).first()).toBeVisible();
  await expect(ada.locator("#changes .mixed", { hasText: CYRILLIC }).first()).toContainText("mixed letters");
  await expect(ada.locator("#changes details.exact").first()).toContainText("\\u{202e}");
  // Nothing of the odd text stands as itself where a person reads.
  const text = await ada.locator("main").innerText();
  expect(text).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u200B]/);

  await expectInertBothWays(pages, "/approvals", ["Harbour Street Bakery"]);
  await expectInertBothWays(pages, `/approvals?tab=all&text=${encodeURIComponent(BREAKOUTS[0] + RIGHT_TO_LEFT)}&agent=${encodeURIComponent(BREAKOUTS[1])}`, ["</textarea><script>"]);
  await expectInertBothWays(pages, `/sites/${BAKERY}`, ["</textarea><script>"]);
  await expectInertBothWays(pages, `/sites/${BAKERY}/nodes/${node}`, ["</textarea><script>", "U+202E"]);
  await expectInertBothWays(pages, "/journal", ["Journal"]);
  for (const page of pages) watch(page).allow(/status of 404 .*\/journal/);
  await expectInertBothWays(pages, `/journal?site=${encodeURIComponent(BREAKOUTS[1])}`, ["There is nothing here for you"]);

  // The preview, opened as a page of its own, is sandboxed and empty of anything that runs.
  for (const path of [`/preview/approvals/${asked.approvalId}/${node}/after`, `/preview/sites/${BAKERY}/${node}`]) {
    const response = await ada.goto(path);
    expect(response!.headers()["content-security-policy"]).toMatch(/sandbox(?!.*allow)/);
    await expectNothingRuns(ada);
  }

  // And when a person lets it through, it is as dead on the live site.
  await decide(ada, site, asked, "approve");
  expect(await httpAgent.call("publish", { site, approvalId: asked.approvalId })).toMatchObject({ status: "ok" });
  await visit(ada, asked.url);
  await expectInert(ada);
  const response = await ada.goto(`/live/${BAKERY}/about/`);
  expect(response!.headers()["content-security-policy"]).toContain("script-src 'none'");
  await expectNothingRuns(ada);
  expect(cloudhal.log).not.toContain("panicked");
});

async function expectNothingRuns(page: Page): Promise<void> {
  await expect(page).toHaveTitle(/About/);
  for (const alive of ["script", "[onerror]", "[onload]", "base", "form", "iframe", "meta[http-equiv=refresh]", 'a[href^="javascript:" i]']) {
    await expect(page.locator(alive), alive).toHaveCount(0);
  }
}

test("in the agent's own name", async ({ cloudhal, open }) => {
  const add = (name: string) => ["agent", "add", "--name", name, "--owner", "ada@example.com", "--site", BAKERY];
  const invisible = await cloudhal.run(add(RIGHT_TO_LEFT));
  expect(invisible.code).not.toBe(0);
  const added = await cloudhal.command(add(`</title><script>document.title='run'</script>`));
  const agent = new HttpAgent(cloudhal.url, added.get("agent-key")!);
  const site = await agent.site(BAKERY);
  await agent.edit(site, "orders", { body: "From an agent with a strange name." });
  const asked: Pending = await agent.asks("publish", { site });
  const pages = [await open(), await open({ context: { javaScriptEnabled: false } })];
  for (const path of [asked.url, "/approvals", "/agents", "/journal", `/sites/${BAKERY}`]) {
    await expectInertBothWays(pages, path, ["</title><script>document.title='run'</script>"]);
  }
});

test("in what a sign-in page is asked to carry", async ({ open }) => {
  const pages = [await open({ signedIn: false }), await open({ signedIn: false, context: { javaScriptEnabled: false } })];
  for (const text of [BREAKOUTS.join(""), BREAKOUTS[1]]) {
    const words = encodeURIComponent(text);
    await expectInertBothWays(pages, `/login?next=/approvals/${words}&notice=${words}`, ["Sign in"]);
  }
  await expectInertBothWays(pages, `/login/link/${encodeURIComponent(BREAKOUTS[1].replaceAll("/", ""))}`, ["One more click"]);
});

test("the frames of the approval page hold nothing that could run", async ({ cloudhal, ada }) => {
  const agent = await McpAgent.connect(cloudhal.url, cloudhal.agentKey, "legacy");
  const site = await agent.site(BAKERY);
  await agent.edit(site, "orders", { body: `${BREAKOUTS.join("\n\n")}\n\nThe end.` });
  const asked = await agent.asks("publish", { site });
  await agent.close();
  await visit(ada, asked.url);
  const node = ada.locator("#changes details.node").first();
  await node.scrollIntoViewIfNeeded();
  const frames = node.locator("iframe");
  for (const frame of await frames.all()) await expect(frame).toHaveAttribute("sandbox", "");
  const after = node.frameLocator("iframe").last();
  await expect(after.getByText("The end.")).toBeVisible();
  for (const alive of ["script", "[onerror]", "[onload]", "form", "iframe"]) await expect(after.locator(alive)).toHaveCount(0);
});
