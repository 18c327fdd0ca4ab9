// A real Cloudhal for one test file: a free port, a fresh folder of data, a clock that a test can move.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const BINARY = process.env.CLOUDHAL_BIN || resolve(import.meta.dirname, "../../../target/debug/cloudhal");
const START_MS = 60_000;
const STOP_MS = 10_000;

/** Settings of the server by their environment names. */
export type Settings = Record<string, string>;

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

export class Cloudhal {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** What the server printed as `name: value`. */
  readonly said = new Map<string, string>();
  log = "";

  private child?: ChildProcess;

  private constructor(
    private readonly data: string,
    private readonly port: number,
    private readonly settings: Settings,
  ) {
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts on the demo's bakery, or empty. */
  static async start({ demo = true, settings = {} }: { demo?: boolean; settings?: Settings } = {}): Promise<Cloudhal> {
    const data = await mkdtemp(join(tmpdir(), "cloudhal-browser-"));
    const cloudhal = new Cloudhal(data, await freePort(), settings);
    await cloudhal.moveClock(0);
    try {
      await cloudhal.serve(demo ? ["--demo"] : []);
    } catch (error) {
      await cloudhal.stop();
      throw error;
    }
    return cloudhal;
  }

  get agentKey(): string {
    return this.value("agent-key");
  }

  value(name: string): string {
    const value = this.said.get(name);
    if (!value) throw new Error(`the server did not print ${name}:\n${this.log}`);
    return value;
  }

  /**
   * Moves the server's clock to now plus so much. Sessions begin by the real time but are swept by this one: whoever
   * moves it by more than half an hour signs everybody out.
   */
  async moveClock(ms: number): Promise<void> {
    await writeFile(this.clockFile, String(ms));
  }

  /** Another command of the same program on the same data. */
  async run(args: string[], input = ""): Promise<Finished> {
    const child = spawn(BINARY, args, { cwd: this.data, env: this.environment });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (chunk) => (stdout += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk));
    // A command that reads nothing may have ended before this is written.
    child.stdin.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
    child.stdin.end(input);
    const [code] = await once(child, "close");
    return { code, stdout, stderr };
  }

  /** The same, where anything but success is a fault of the test. Returns the printed `name: value` lines. */
  async command(args: string[], input = ""): Promise<Map<string, string>> {
    const { code, stdout, stderr } = await this.run(args, input);
    if (code !== 0) throw new Error(`cloudhal ${args.join(" ")} ended with ${code}: ${stdout}${stderr}`);
    return readLines(stdout);
  }

  async stop(): Promise<void> {
    const child = this.child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await ended;
      clearTimeout(force);
    }
    await rm(this.data, { recursive: true, force: true });
  }

  private get clockFile(): string {
    return join(this.data, "clock");
  }

  private get environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      CLOUDHAL_DATA_DIR: this.data,
      DATABASE_URL: `sqlite://${join(this.data, "cloudhal.db")}`,
      CLOUDHAL_ADDR: `127.0.0.1:${this.port}`,
      CLOUDHAL_PUBLIC_URL: this.url,
      CLOUDHAL_TEST_CLOCK: this.clockFile,
      NO_COLOR: "1",
      ...this.settings,
    };
  }

  private async serve(args: string[]): Promise<void> {
    const child = spawn(BINARY, ["serve", ...args], { cwd: this.data, env: this.environment, stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    // However this process ends, its server does not stay.
    process.once("exit", () => child.kill("SIGKILL"));
    const last = args.includes("--demo") ? "agent-key" : "url";
    await new Promise<void>((ready, failed) => {
      const late = setTimeout(() => failed(new Error(`the server is not ready:\n${this.log}`)), START_MS);
      child.once("error", failed);
      child.once("exit", (code) => failed(new Error(`the server ended with ${code}:\n${this.log}`)));
      child.stderr.on("data", (chunk) => (this.log += chunk));
      child.stdout.on("data", (chunk) => {
        this.log += chunk;
        for (const [name, value] of readLines(this.log)) this.said.set(name, value);
        if (this.said.has(last)) {
          clearTimeout(late);
          ready();
        }
      });
    });
    const answer = await fetch(`${this.url}/readyz`);
    if (!answer.ok) throw new Error(`/readyz answers ${answer.status}:\n${this.log}`);
  }
}

function readLines(text: string): Map<string, string> {
  const lines = text.matchAll(/^\s*([a-z][a-z-]*): (\S+)[ \t]*\n/gm);
  return new Map(Array.from(lines, ([, name, value]) => [name, value]));
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (!address || typeof address === "string") throw new Error("no free port");
  server.close();
  await once(server, "close");
  return address.port;
}
