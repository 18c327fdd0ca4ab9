// A page as people see it: two widths, light and dark. axe finds nothing serious, nothing runs out of the window.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import { expect } from "./fixtures.ts";

export const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const LOOKS = [
  { name: "1280", width: 1280, height: 800, colorScheme: "light" },
  { name: "1280-dark", width: 1280, height: 800, colorScheme: "dark" },
  { name: "390", width: 390, height: 844, colorScheme: "light" },
  { name: "390-dark", width: 390, height: 844, colorScheme: "dark" },
] as const;
export const PHONE = LOOKS[2];

interface Violation {
  id: string;
  impact: string | null;
  nodes: { target: string[]; failureSummary?: string }[];
}

/** The page that is open, in every look; a picture of each is left in `test-results/screens`. */
export async function inspect(page: Page, name: string): Promise<void> {
  await page.evaluate(AXE);
  for (const { name: size, width, height, colorScheme } of LOOKS) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect.soft(wider, `${name} at ${size} scrolls sideways`).toBe(0);
    const violations: Violation[] = await page.evaluate(async () => {
      // @ts-expect-error axe is what was just evaluated.
      const { violations } = await axe.run(document, { iframes: false, resultTypes: ["violations"] });
      return violations;
    });
    const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const found = grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
    expect.soft(found, `${name} at ${size} in ${colorScheme}`).toEqual([]);
    await page.screenshot({ path: `test-results/screens/${name}-${size}.png` });
  }
}
