// An agent as the world has them: the official MCP client with a key, or plain HTTP.

import { Client, type ElicitRequest, type ElicitResult, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** What every tool answers, over any door. */
export interface Answer {
  status: "ok" | "approval_pending" | "error";
  // biome-ignore lint: the shapes are the contract's, and what a test does not expect shows itself.
  data?: any;
  replayed?: boolean;
  approvalId?: string;
  url?: string;
  expiresAt?: string;
  approved?: boolean;
  argsHash?: string;
  stateHash?: string;
  error?: { code: string; message: string; retryable: boolean; details: Record<string, unknown> };
}

export interface Pending extends Answer {
  approvalId: string;
  url: string;
}

/** `auto` finds the revision without sessions, `legacy` opens a session as older clients do. */
export type Era = "auto" | "legacy";

export type Asked = (question: ElicitRequest["params"]) => ElicitResult;

export abstract class Agent {
  abstract call(tool: string, args: Record<string, unknown>): Promise<Answer>;
  abstract close(): Promise<void>;

  /** A call that has to be answered. */
  async ok(tool: string, args: Record<string, unknown> = {}): Promise<any> {
    const answer = await this.call(tool, args);
    if (answer.status !== "ok") throw new Error(`${tool} answered ${JSON.stringify(answer)}`);
    return answer.data;
  }

  /** A call that has to stop and wait. */
  async asks(tool: string, args: Record<string, unknown>): Promise<Pending> {
    const answer = await this.call(tool, args);
    if (answer.status !== "approval_pending" || !answer.approvalId || !answer.url) {
      throw new Error(`${tool} did not wait: ${JSON.stringify(answer)}`);
    }
    return answer as Pending;
  }

  async site(slug: string): Promise<string> {
    const { items } = await this.ok("site_list");
    const site = items.find((one: { slug: string }) => one.slug === slug);
    if (!site) throw new Error(`no site ${slug}`);
    return site.id;
  }

  /** The id of the page at an address of the site; empty for the home page. */
  async node(site: string, path: string): Promise<string> {
    const { items } = await this.ok("node_list", { site, limit: 200 });
    const found = items.find((one: { path: string }) => one.path === path);
    if (!found) throw new Error(`no page ${path}`);
    return found.id;
  }

  /** Writes a page anew, or changes what is said. */
  async edit(site: string, path: string, change: Record<string, unknown>): Promise<void> {
    await this.ok("node_update", { site, node: await this.node(site, path), ...change });
  }
}

export class McpAgent extends Agent {
  private constructor(private readonly client: Client) {
    super();
  }

  /** With `asked` it is a client that can put a form to its person, and that is what they say. */
  static async connect(url: string, key: string, era: Era = "auto", asked?: Asked): Promise<McpAgent> {
    const capabilities = asked ? { elicitation: { form: {} } } : {};
    const client = new Client({ name: "browser-test", version: "1.0.0" }, { versionNegotiation: { mode: era }, capabilities });
    if (asked) client.setRequestHandler("elicitation/create", async (request) => asked(request.params));
    const headers = { Authorization: `Bearer ${key}` };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
    return new McpAgent(client);
  }

  async tools(): Promise<string[]> {
    const { tools } = await this.client.listTools();
    return tools.map((tool) => tool.name);
  }

  async call(tool: string, args: Record<string, unknown>): Promise<Answer> {
    const result = await this.client.callTool({ name: tool, arguments: args });
    if (!result.structuredContent) throw new Error(`${tool} answered without structured content: ${JSON.stringify(result)}`);
    return result.structuredContent as unknown as Answer;
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}

export class HttpAgent extends Agent {
  constructor(
    private readonly url: string,
    private readonly key: string,
  ) {
    super();
  }

  async call(tool: string, all: Record<string, unknown>): Promise<Answer> {
    // Beside the arguments of a gated call; an argument like any other where the tool is about approvals.
    const { approvalId, reason, ...others } = all;
    const aboutApprovals = tool.startsWith("approvals");
    const args = aboutApprovals ? all : others;
    const response = await fetch(`${this.url}/tools/${tool.replaceAll("_", "-")}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.key}`, "Content-Type": "application/json" },
      body: JSON.stringify(aboutApprovals ? { arguments: args } : { arguments: args, approvalId, reason }),
    });
    return (await response.json()) as Answer;
  }

  async close(): Promise<void> {}
}
