// What programs do to pages without being asked: previews of links, prefetching, and the same page over and over.

import type { Page } from "@playwright/test";
import { BAKERY, expect, record, test, useCloudhal } from "./support/fixtures.ts";

useCloudhal();

const PREVIEWERS = [
  "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
  "facebookexternalhit/1.1",
  "Twitterbot/1.0",
  "WhatsApp/2.23",
  "TelegramBot (like TwitterBot)",
  "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
  "Mozilla/5.0 (Windows NT 10.0) SkypeUriPreview Preview/0.5",
  "LinkedInBot/1.0",
  "Microsoft Office/16.0 (Microsoft Outlook; SafeLinks)",
  "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (Applebot/0.1)",
];

async function cookies(page: Page): Promise<string> {
  const all = await page.context().cookies();
  return all.map(({ name, value }) => `${name}=${value}`).join("; ");
}

test("thirty link previews change nothing, signed out or in (C56)", async ({ cloudhal, ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "Seen by robots." });
  const asked = await httpAgent.asks("publish", { site });
  const journal = async () => (await cloudhal.run(["journal", "export"])).stdout;
  const before = [await record(ada, site, asked.approvalId), await journal()];
  expect(before[1]).toContain(asked.approvalId);

  const session = await cookies(ada);
  for (const cookie of ["", session]) {
    for (const agent of PREVIEWERS) {
      for (const method of ["GET", "HEAD", "OPTIONS"]) {
        const response = await fetch(asked.url, {
          method,
          redirect: "manual",
          headers: { "User-Agent": agent, Purpose: "prefetch", "Sec-Purpose": "prefetch", ...(cookie && { Cookie: cookie }) },
        });
        const text = await response.text();
        expect(response.status, `${method} by ${agent}`).toBeLessThan(500);
        if (method === "GET") expect(response.status).toBe(cookie ? 200 : 303);
        if (!cookie) expect(text).not.toContain("Harbour Street Bakery");
      }
    }
  }
  expect([await record(ada, site, asked.approvalId), await journal()]).toEqual(before);
});

/** A page of ours ends with what hydration reads, after the document. */
const WHOLE = /<\/html>(<script nonce="[^"]+">__[^<]*<\/script>)*\s*$/;

test("each page answers 200 times in a row, in full", async ({ cloudhal, ada, httpAgent, site }) => {
  await httpAgent.edit(site, "orders", { body: "Again and again." });
  const pending = await httpAgent.asks("publish", { site });
  const node = await httpAgent.node(site, "orders");
  const Cookie = await cookies(ada);
  const pages: [path: string, status: number, end: RegExp][] = [
    ["/approvals", 200, WHOLE],
    [`/approvals/${pending.approvalId}`, 200, WHOLE],
    ["/sites", 200, WHOLE],
    [`/sites/${BAKERY}`, 200, WHOLE],
    [`/sites/${BAKERY}/versions`, 200, WHOLE],
    [`/sites/${BAKERY}/nodes/${node}`, 200, WHOLE],
    ["/agents", 200, WHOLE],
    ["/journal", 200, WHOLE],
    ["/nothing/here", 404, WHOLE],
    ["/login", 200, WHOLE],
    [`/preview/approvals/${pending.approvalId}/${node}/after`, 200, WHOLE],
    [`/live/${BAKERY}/`, 200, WHOLE],
  ];
  for (const [path, status, end] of pages) {
    let left = 200;
    const ask = async () => {
      while (left-- > 0) {
        // The limit only ends a hang; how long an answer takes is the benchmark's matter.
        const response = await fetch(cloudhal.url + path, { headers: { Cookie }, signal: AbortSignal.timeout(60_000) });
        const text = await response.text();
        expect(response.status, path).toBe(status);
        expect(text, `${path} ends`).toMatch(end);
      }
    };
    await Promise.all([ask(), ask(), ask(), ask()]);
  }
});
