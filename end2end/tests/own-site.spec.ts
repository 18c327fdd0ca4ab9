// A person's own documentation site: a folder of Markdown becomes a site, an agent edits it, a person approves, it is live.

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, hydrated, test, useCloudhal, visit } from "./support/fixtures.ts";
import { McpAgent } from "./support/agent.ts";

useCloudhal();

// One story in three parts.
test.describe.configure({ mode: "serial" });

const FOLDER = join(import.meta.dirname, "../fixtures/site");
const SLUG = "tidewatch";

test("a folder of Markdown, edited by an agent, approved in the browser, seen live", async ({ cloudhal, ada, anonymous }) => {
  const imported = await cloudhal.run(["site", "import", FOLDER, "--slug", SLUG]);
  expect(imported.code, imported.stderr).toBe(0);
  expect(imported.stdout).toContain("Imported 8 pages as “Tidewatch”.");
  expect(imported.stdout).toMatch(/skipped reference\/broken\.md: \S/);
  const key = await cloudhal.command(["agent", "add", "--name", "docs-writer", "--owner", "ada.too@example.com", "--site", SLUG]);

  const agent = await McpAgent.connect(cloudhal.url, key.get("agent-key")!);
  const site = await agent.site(SLUG);
  expect((await anonymous.request.get(`/live/${SLUG}/`)).status()).toBe(404);

  // The first publish brings every page.
  const first = await agent.asks("publish", { site });
  await visit(ada, first.url);
  await expect(ada.getByRole("heading", { level: 1 })).toContainText("Tidewatch");
  await expect(ada.locator("#changes details.node")).toHaveCount(8);
  await expect(ada.getByText("This is not one of your own agents.")).toHaveCount(0);
  await ada.getByRole("button", { name: "Approve publishing" }).click();
  await expect(ada.getByText("it may run this once")).toBeVisible();
  expect(await agent.call("publish", { site, approvalId: first.approvalId })).toMatchObject({ status: "ok", data: { version: 1 } });

  // It reads as a site: navigation, links between the files, tables, code.
  await anonymous.goto(`/live/${SLUG}/`);
  await expect(anonymous.getByRole("heading", { level: 1 })).toHaveText("Tidewatch");
  await anonymous.locator("main").getByRole("link", { name: "installing it" }).click();
  await expect(anonymous).toHaveURL(`/live/${SLUG}/guide/install/`);
  await expect(anonymous.getByRole("cell", { name: "Fedora" })).toBeVisible();
  await anonymous.locator("main").getByRole("link", { name: "your first table" }).first().click();
  await anonymous.locator("main").getByRole("link", { name: "the options" }).click();
  await expect(anonymous).toHaveURL(`/live/${SLUG}/reference/options/#week`);
  await expect(anonymous.getByRole("heading", { name: "week" })).toBeInViewport();

  // The agent edits, moves and adds; the page names each, and nothing is live before the decision.
  await agent.edit(site, "guide/install", { body: "```sh\ncargo install tidewatch\n```\n\nThen make [your first table](first-table.md).\n" });
  await agent.edit(site, "guide/printing", { title: "Printing and sharing" });
  await agent.ok("node_create", { site, parent: await agent.node(site, "guide"), kind: "page", slug: "sharing", title: "Sharing", body: "Send the file." });
  const second = await agent.asks("publish", { site, reason: "Debian dropped the package." });
  await visit(ada, second.url);
  await expect(ada.locator("#changes details.node")).toHaveCount(3);
  await expect(ada.locator("#changes .kind.added")).toHaveCount(1);
  const install = ada.locator("#changes details.node").filter({ hasText: "Installing" });
  await expect(install.locator("ins").first()).toContainText("cargo");
  await expect(install.locator("del").first()).toContainText("apt");
  await install.scrollIntoViewIfNeeded();
  await expect(install.frameLocator("iframe").first().getByRole("cell", { name: "Fedora" })).toBeVisible();
  await expect(install.frameLocator("iframe").last().getByText("cargo install tidewatch")).toBeVisible();
  // What the agent says comes last and closed.
  await expect(ada.getByText("Debian dropped the package.")).toBeHidden();
  await ada.getByText("Written by the agent, not checked by Cloudhal").click();
  await expect(ada.getByText("Debian dropped the package.")).toBeVisible();
  expect(await (await anonymous.request.get(`/live/${SLUG}/guide/install/`)).text()).not.toContain("cargo");

  await ada.getByRole("button", { name: "Approve publishing" }).click();
  await expect(ada.getByText("it may run this once")).toBeVisible();
  expect(await agent.call("publish", { site, approvalId: second.approvalId })).toMatchObject({ status: "ok", data: { version: 2 } });
  await anonymous.goto(`/live/${SLUG}/guide/install/`);
  await expect(anonymous.getByText("cargo install tidewatch")).toBeVisible();
  await anonymous.goto(`/live/${SLUG}/guide/sharing/`);
  await expect(anonymous.getByText("Send the file.")).toBeVisible();
  await agent.close();
});

test("the person takes it back with a rollback, and publishes again by their own click", async ({ ada, anonymous }) => {
  await visit(ada, `/sites/${SLUG}/versions`);
  await ada.locator("summary", { hasText: "Roll back to this" }).click();
  await ada.getByRole("button", { name: "Show version 1" }).click();
  await expect(ada.getByText("Rolled back. The draft was left as it is.")).toBeVisible();
  await expect(ada.locator(".version.is-live .number")).toHaveText("1");
  expect((await anonymous.request.get(`/live/${SLUG}/guide/sharing/`)).status()).toBe(404);

  await visit(ada, `/sites/${SLUG}`);
  await ada.getByRole("button", { name: "Publish now" }).click();
  await expect(ada.getByText("Published. The new version is live.")).toBeVisible();
  await hydrated(ada);
  await expect(ada.getByText("The draft equals what is live")).toBeVisible();
  expect((await anonymous.request.get(`/live/${SLUG}/guide/sharing/`)).status()).toBe(200);
});

test("the site as files, for any web server", async ({ cloudhal }, info) => {
  const out = info.outputPath("export");
  const done = await cloudhal.run(["site", "export", SLUG, "--out", out]);
  expect(done.code, done.stderr).toBe(0);
  const { readFile } = await import("node:fs/promises");
  expect(await readFile(join(out, "guide/sharing/index.html"), "utf8")).toContain("Send the file.");
});

test("a change of hundreds of pages is read a stretch at a time, to its end", async ({ cloudhal, ada }, info) => {
  const folder = info.outputPath("archive");
  await mkdir(folder, { recursive: true });
  for (let n = 1; n <= 230; n += 1) {
    await writeFile(join(folder, `day-${n}.md`), `---\ntitle: Day ${n}\nweight: ${n}\n---\nHigh water on day ${n}.\n`);
  }
  expect((await cloudhal.run(["site", "import", folder, "--slug", "archive"])).code).toBe(0);
  const key = await cloudhal.command(["agent", "add", "--name", "archivist", "--owner", "ada.too@example.com", "--site", "archive"]);
  const agent = await McpAgent.connect(cloudhal.url, key.get("agent-key")!);
  const asked = await agent.asks("publish", { site: await agent.site("archive") });

  await visit(ada, asked.url);
  const nodes = ada.locator("details.node");
  await expect(nodes).toHaveCount(200);
  await ada.getByRole("link", { name: "Read on" }).last().click();
  await expect(ada.getByText("Changes 201 to 230 of 230")).toBeVisible();
  await expect(nodes).toHaveCount(30);
  const rest = await nodes.allTextContents();
  await expect(ada.getByRole("link", { name: "Further ones" })).toHaveCount(0);
  await ada.getByRole("link", { name: "Earlier ones" }).click();
  await expect(ada.getByText("Changes 1 to 200 of 230")).toBeVisible();
  await expect(nodes).toHaveCount(200);
  const days = [...(await nodes.allTextContents()), ...rest].map((text) => /High water on day (\d+)\./.exec(text)?.[1]);
  expect(new Set(days).size, "each page once, and none left out").toBe(230);
  await ada.getByRole("link", { name: "The request" }).click();
  await expect(ada.getByRole("button", { name: "Approve publishing" })).toBeVisible();
  await agent.close();
});
