// What a test gets: the file's server, an agent, a signed-in person, somebody signed out.

import { type APIRequestContext, type Browser, type BrowserContext, type Page, test as base, expect, request } from "@playwright/test";
import { HttpAgent, McpAgent, type Pending } from "./agent.ts";
import { Cloudhal, type Settings } from "./server.ts";
import { Watch } from "./watch.ts";

export const BAKERY = "harbour-street-bakery";
export const GRACE = { name: "Grace Park", email: "grace@example.com", password: "a lamp in the window" };

/** The server of the running file, and the cookies of its people. */
class Stage {
  private constructor(
    readonly cloudhal: Cloudhal,
    readonly ada: Cookies,
  ) {}

  static async set(settings: Settings): Promise<Stage> {
    const cloudhal = await Cloudhal.start({ settings });
    try {
      const link = await cloudhal.command(["person", "add", "--email", "ada.too@example.com", "--name", "Ada Osei", "--owner"]);
      await cloudhal.command(["person", "add", "--email", GRACE.email, "--name", GRACE.name, "--owner", "--password-stdin"], GRACE.password);
      return new Stage(cloudhal, await spend(cloudhal, link.get("sign-in") ?? ""));
    } catch (error) {
      await cloudhal.stop();
      throw error;
    }
  }
}

type Cookies = Awaited<ReturnType<APIRequestContext["storageState"]>>;

let stage: Stage | undefined;

/** Once at the top of a file: its server, and at its end the proof that nothing was lost or bent. */
export function useCloudhal(settings: Settings = {}): void {
  base.beforeAll(async () => {
    stage = await Stage.set(settings);
  });
  base.afterAll(async () => {
    if (!stage) return;
    const { cloudhal } = stage;
    stage = undefined;
    try {
      const verified = await cloudhal.run(["verify"]);
      expect(verified.code, verified.stdout + verified.stderr).toBe(0);
      expect(cloudhal.log).not.toMatch(/panicked|ERROR/);
    } finally {
      await cloudhal.stop();
    }
  });
}

function staged(): Stage {
  if (!stage) throw new Error("the file does not call useCloudhal()");
  return stage;
}

interface Fixtures {
  cloudhal: Cloudhal;
  /** Over MCP, without a session. */
  agent: McpAgent;
  /** The same agent over plain HTTP. */
  httpAgent: HttpAgent;
  /** The bakery's id. */
  site: string;
  /** A signed-in owner's tab. */
  ada: Page;
  /** A tab of somebody who is signed out. */
  anonymous: Page;
  /** Opens further tabs; every one of them has to keep its console empty. */
  open: Open;
}

export interface Open {
  (options?: { signedIn?: boolean; context?: Parameters<Browser["newContext"]>[0] }): Promise<Page>;
}

const watches = new WeakMap<Page, Watch>();

/** What a page may say without failing the test. */
export function watch(page: Page): Watch {
  const found = watches.get(page);
  if (!found) throw new Error("the page was not opened through the fixtures");
  return found;
}

export const test = base.extend<Fixtures>({
  cloudhal: async ({}, use) => use(staged().cloudhal),

  agent: async ({ cloudhal }, use) => {
    const agent = await McpAgent.connect(cloudhal.url, cloudhal.agentKey);
    await use(agent);
    await agent.close();
  },

  httpAgent: async ({ cloudhal }, use) => use(new HttpAgent(cloudhal.url, cloudhal.agentKey)),

  site: async ({ httpAgent }, use) => use(await httpAgent.site(BAKERY)),

  open: async ({ browser, cloudhal }, use) => {
    const contexts: BrowserContext[] = [];
    const pages: Page[] = [];
    await use(async ({ signedIn = true, context: options = {} } = {}) => {
      const context = await browser.newContext({
        baseURL: cloudhal.url,
        reducedMotion: "reduce",
        storageState: signedIn ? staged().ada : undefined,
        ...options,
      });
      contexts.push(context);
      context.on("page", (page) => {
        const watch = new Watch(page);
        // Where scripts are off, Chromium wonders why nobody uses what the page asked it to load for them.
        if (options.javaScriptEnabled === false) watch.allow(/was preloaded using link preload but not used/);
        watches.set(page, watch);
        pages.push(page);
      });
      return context.newPage();
    });
    const problems = pages.flatMap((page) => watch(page).problems());
    for (const context of contexts) await context.close();
    expect(problems, "the console of every page stays empty").toEqual([]);
  },

  ada: async ({ open }, use) => use(await open()),
  anonymous: async ({ open }, use) => use(await open({ signedIn: false })),
});

export { expect };

/** Waits until scripts run on the page, whatever that takes. */
export async function hydrated(page: Page): Promise<void> {
  await expect(page.locator("html[data-hydrated]")).toBeAttached();
}

/** Opens a page of ours and waits until it is alive. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await hydrated(page);
}

/** The record as people's programs read it. */
export async function record(page: Page, site: string, approvalId: string): Promise<any> {
  const response = await page.request.get(`/api/sites/${site}/approvals/${approvalId}`);
  expect(response.status(), await response.text()).toBe(200);
  return response.json();
}

/** A decision without looking: for tests of what comes after it. */
export async function decide(page: Page, site: string, asked: Pending, verdict: "approve" | "deny", reason?: string): Promise<void> {
  const { seenDigest } = await record(page, site, asked.approvalId);
  const response = await page.request.post(`/api/sites/${site}/approvals/${asked.approvalId}/${verdict}`, {
    data: { seenDigest, reason },
    headers: { Origin: staged().cloudhal.url },
  });
  expect(response.status(), await response.text()).toBe(200);
}

/** Signs in over a one-time link as a browser would: a page, then its form. */
async function spend(cloudhal: Cloudhal, link: string): Promise<Cookies> {
  const browser = await request.newContext({ extraHTTPHeaders: { Origin: cloudhal.url } });
  try {
    expect((await browser.get(link)).status()).toBe(200);
    const response = await browser.post(link, { form: { next: "" } });
    expect(response.url()).toContain("/approvals");
    return await browser.storageState();
  } finally {
    await browser.dispose();
  }
}
