// The clients, each behind the same few words: `call` calls a tool and returns the result as the client hands it over, `forge` does so
// with answers to questions that nobody asked, `close` says goodbye. `who` is how the client names itself.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const MODULES = resolve(import.meta.dirname, "../node_modules");
const INSPECTOR = join(MODULES, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");

/** What the client and the server are to agree on. */
export const REVISIONS = { legacy: "2025-11-25", auto: "2026-07-28" };

const bearer = (key) => ({ headers: { Authorization: `Bearer ${key}` } });

/** `@modelcontextprotocol/client`; `mode` is its version negotiation. */
export async function typescript({ url, agentKey }, mode) {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client({ name: `typescript-${mode}`, version: "2.4.0" }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: bearer(agentKey) });
  await client.connect(transport);
  const spoken = client.getNegotiatedProtocolVersion();
  if (spoken !== REVISIONS[mode]) throw new Error(`in mode ${mode} the client speaks ${spoken}`);
  return ofSdk(client, transport);
}

/** `@modelcontextprotocol/sdk`, the first generation. */
export async function typescriptV1({ url, agentKey }) {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client({ name: "typescript-v1", version: "1.32.2" });
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: bearer(agentKey) });
  await client.connect(transport);
  return ofSdk(client, transport);
}

/** Both generations of the TypeScript client have these words. */
export function ofSdk(client, transport) {
  return {
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, args) => client.callTool({ name, arguments: args }),
    forge: (name, args, invented) => client.callTool({ name, arguments: args, ...invented }),
    /** A message of the client's own making, past its rules. */
    send: (message) => transport.send(message),
    close: () => client.close(),
  };
}

/** Python's `mcp`, in the virtual environment that `cargo xtask setup` makes. */
export async function python({ url, agentKey }) {
  const program = process.env.CLOUDHAL_PYTHON;
  if (!program) throw new Error("CLOUDHAL_PYTHON does not name the Python of the set-up; start this by `cargo xtask test mcp`");
  const child = spawn(program, [join(import.meta.dirname, "client.py")], {
    env: { ...process.env, CLOUDHAL_URL: url, CLOUDHAL_AGENT_KEY: agentKey },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (question) => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error("the Python client ended early");
    const answer = JSON.parse(value);
    if (answer.raised) throw new Error(answer.raised);
    return answer;
  };
  return {
    tools: () => ask({ tools: true }),
    call: (name, args) => ask({ name, arguments: args }),
    forge: (name, args, invented) => ask({ name, arguments: args, ...invented }),
    close: async () => {
      const gone = once(child, "exit");
      child.stdin.end();
      await gone;
    },
  };
}

/** The Inspector's command line, of an era: a process for each call. It sends arguments, and cannot forge what stands beside them. */
export async function inspector({ url, agentKey, data }, era) {
  const home = join(data, `inspector-${era}`);
  await mkdir(home, { recursive: true });
  const config = join(home, "mcp.json");
  const server = { type: "streamable-http", url: `${url}/mcp`, headers: bearer(agentKey).headers, protocolEra: era };
  await writeFile(config, JSON.stringify({ mcpServers: { cloudhal: server } }), { mode: 0o600 });
  const run = async (args) => {
    const child = spawn(process.execPath, [INSPECTOR, "--cli", "--config", config, "--server", "cloudhal", "--format", "json", ...args], {
      env: { ...process.env, HOME: home, MCP_INSPECTOR_SECRET_STORE: "memory" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (err += chunk));
    const [code] = await once(child, "close");
    try {
      const answer = JSON.parse(out);
      return answer.result ?? answer;
    } catch {
      throw new Error(`the Inspector ended with ${code}: ${err || out}`);
    }
  };
  const pairs = (args) => Object.entries(args).flatMap(([name, value]) => ["--tool-arg", `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`]);
  return {
    tools: async () => (await run(["--method", "tools/list"])).tools.map((tool) => tool.name),
    call: (name, args) => run(["--method", "tools/call", "--tool-name", name, ...pairs(args)]),
    close: async () => {},
  };
}
