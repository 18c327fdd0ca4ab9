// The protocol's own conformance suite against the debug build's test door: the product's handler, the suite's fixtures beside it,
// and the demo's agent as the one caller, since the suite cannot send a key. Fails for what fails unexpectedly, and for what is
// expected to fail and passes.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { startDemo } from "./server.mjs";

const SUITE = resolve(import.meta.dirname, "../node_modules/@modelcontextprotocol/conformance/dist/index.js");
const REVISIONS = ["2026-07-28", "2025-11-25"];
/** What a revision does not require, which the run for it therefore shows and does not judge: extensions, and what came later. */
const BESIDE = {
  "2026-07-28": [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
    "json-schema-2020-12",
    "http-header-validation",
    "http-custom-header-server-validation",
  ],
  "2025-11-25": ["json-schema-2020-12"],
};
const only = process.argv.slice(2);

const keyFile = (data) => join(data, "caller");
let suite;
process.once("exit", () => suite?.kill("SIGKILL"));
const server = await startDemo((data) => ({ CLOUDHAL_TEST_CONFORMANCE: keyFile(data) }));
const failed = [];
try {
  await writeFile(keyFile(server.data), server.agentKey, { mode: 0o600 });
  for (const revision of REVISIONS) {
    if (only.length && !only.includes(revision)) continue;
    await check(revision, "what it requires", ["--requirements", revision]);
    for (const scenario of BESIDE[revision]) {
      await check(revision, scenario, ["--scenario", scenario, "--spec-version", revision]);
    }
  }
} finally {
  await server.stop();
}
if (failed.length) {
  console.error(`\nThe conformance suite is not content with ${failed.join(", ")}.`);
  process.exitCode = 1;
}

async function check(revision, what, chosen) {
  const expected = resolve(import.meta.dirname, `expected-failures-${revision}.yml`);
  const results = ["--output-dir", join(server.data, "results")];
  const args = [SUITE, "server", "--url", `${server.url}/mcp`, ...chosen, "--expected-failures", expected, ...results];
  suite = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [suite.stdout, suite.stderr]) stream.on("data", (chunk) => (said += chunk));
  const [code] = await once(suite, "close");
  const summary = said.slice(Math.max(0, said.indexOf("=== SUMMARY")));
  const total = summary.match(/Total: .*|Passed: .*/)?.[0] ?? "";
  console.log(`${code === 0 ? "  passed" : "  FAILED"}  ${revision}, ${what}. ${total}`);
  if (code === 0) return;
  console.log(summary);
  failed.push(`${what} (${revision})`);
}
