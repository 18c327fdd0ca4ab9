import { defineConfig } from "@playwright/test";

// One worker: each file has a server and a database of its own, and the machine has few cores.
export default defineConfig({
  testDir: "tests",
  outputDir: "test-results",
  workers: 1,
  retries: 0,
  forbidOnly: true,
  reporter: [["list"]],
  // The front end of a debug build weighs megabytes; these limits only end what hangs.
  timeout: 180_000,
  expect: { timeout: 30_000 },
  use: {
    actionTimeout: 30_000,
    navigationTimeout: 60_000,
    contextOptions: { reducedMotion: "reduce" },
    locale: "en-GB",
    timezoneId: "UTC",
    trace: "off",
    launchOptions: {
      executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
