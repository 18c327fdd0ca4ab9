// A demo server of the debug build for one run: a free port, a fresh folder of data, gone afterwards.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const BINARY = process.env.CLOUDHAL_BIN || resolve(import.meta.dirname, "../../target/debug/cloudhal");
const START_MS = 60_000;
const STOP_MS = 10_000;
const SAID = ["url", "sign-in", "agent-key"];

/** Starts `cloudhal serve --demo`; `settings(data)` are more variables of its environment. */
export async function startDemo(settings = () => ({})) {
  const data = await mkdtemp(join(tmpdir(), "cloudhal-mcp-"));
  const env = { ...environment(data), CLOUDHAL_ADDR: `127.0.0.1:${await freePort()}`, ...settings(data) };
  const child = spawn(BINARY, ["serve", "--demo"], { cwd: data, env, stdio: ["ignore", "pipe", "pipe"] });
  const server = { data, child, said: new Map(), log: "" };
  child.stderr.on("data", (chunk) => (server.log += chunk));
  // Whoever runs this may be ended at any time: then the server is, too, and its data is gone.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  process.once("exit", () => {
    child.kill("SIGKILL");
    rmSync(data, { recursive: true, force: true });
  });
  try {
    await listen(server);
  } catch (error) {
    await stop(server);
    throw error;
  }
  return {
    data,
    url: server.said.get("url").replace(/\/$/, ""),
    signIn: server.said.get("sign-in"),
    agentKey: server.said.get("agent-key"),
    stop: () => stop(server),
  };
}

/** For programs of ours that work on this data: nothing of the surroundings' own settings. */
export function environment(data) {
  const { DATABASE_URL, CLOUDHAL_PUBLIC_URL, ...rest } = process.env;
  return { ...rest, CLOUDHAL_DATA_DIR: data };
}

async function listen(server) {
  let text = "";
  await new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`the server did not start:\n${server.log}`)), START_MS);
    server.child.once("error", failed);
    server.child.once("exit", (code) => failed(new Error(`the server ended with ${code}:\n${server.log}`)));
    server.child.stdout.on("data", (chunk) => {
      text += chunk;
      for (const line of text.split("\n").slice(0, -1)) {
        const at = line.indexOf(": ");
        if (at > 0) server.said.set(line.slice(0, at).trim(), line.slice(at + 2).trim());
      }
      if (!SAID.every((name) => server.said.has(name))) return;
      clearTimeout(timer);
      done();
    });
  });
}

async function stop({ child, data }) {
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await gone;
    clearTimeout(timer);
  }
  await rm(data, { recursive: true, force: true });
}

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}
