// `cloudhal mcp` over its standard input and output, as a person's own client starts it: here the person may be asked in the client.

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ofSdk, REVISIONS } from "./adapters.mjs";
import { BINARY, environment } from "./server.mjs";
import { expect, structured } from "./story.mjs";

/** The plays, by what the person does. */
export function overPipes(server, facts) {
  return {
    "approved in a form": () => inAForm(server, facts, { action: "accept", content: { decision: "approve" } }, "ok", 1),
    "approved in a form of the older era": () =>
      inAForm(server, facts, { action: "accept", content: { decision: "approve" } }, "ok", 1, "legacy"),
    "denied in a form": () =>
      inAForm(server, facts, { action: "accept", content: { decision: "deny", reason: "Not today" } }, "approval_denied", 0),
    "a form declined": () => inAForm(server, facts, { action: "decline" }, "approval_pending", 0),
    "a form accepted empty": () => inAForm(server, facts, { action: "accept", content: {} }, "approval_pending", 0),
    "by confirm token": () => byToken(server, facts),
    "no token without the flag": () => noToken(server, facts),
  };
}

async function inAForm(server, facts, answer, outcome, effects, mode = "auto") {
  let asked = 0;
  const decide = () => {
    asked += 1;
    return answer;
  };
  const client = await connect(server, [], decide, mode);
  try {
    const { site, before } = await edited(client, facts, outcome);
    const said = structured(await client.call("publish", { site, reason: "From the person's own client" }));
    const code = said.error?.code ?? said.status;
    expect(code === outcome, `publish ends as ${outcome}: ${JSON.stringify(said)}`);
    expect(asked > 0, "the person was asked");
    expect((await facts.versions(site)) === before + effects, `it has ${effects} effects`);
    return `${outcome}, ${effects} effects`;
  } finally {
    await client.close();
  }
}

async function byToken(server, facts) {
  const client = await connect(server, ["--allow-confirm-token"]);
  try {
    const { site, before } = await edited(client, facts, "token");
    const pending = structured(await client.call("publish", { site }));
    expect(pending.status === "approval_pending" && pending.confirmToken, `a token comes along: ${JSON.stringify(pending)}`);
    const { confirmToken } = pending;
    const invented = structured(await client.call("publish", { site, confirmToken: `${confirmToken}x` }));
    expect(invented.status === "error", `an invented token is refused: ${JSON.stringify(invented)}`);
    const other = structured(await client.call("rollback", { site, version: 1, confirmToken }));
    expect(other.status === "error", `the token is not for another tool: ${JSON.stringify(other)}`);
    expect((await facts.versions(site)) === before, "nothing ran");
    const ran = structured(await client.call("publish", { site, confirmToken }));
    expect(ran.status === "ok" && !ran.replayed, `the call runs: ${JSON.stringify(ran)}`);
    const again = structured(await client.call("publish", { site, confirmToken }));
    expect(again.status !== "ok" || again.replayed, `the token counts once: ${JSON.stringify(again)}`);
    expect((await facts.versions(site)) === before + 1, "it ran once");
    return "ran once";
  } finally {
    await client.close();
  }
}

async function noToken(server, facts) {
  const client = await connect(server, []);
  try {
    const { site, before } = await edited(client, facts, "no token");
    const pending = structured(await client.call("publish", { site }));
    expect(pending.status === "approval_pending" && !("confirmToken" in pending), `no token comes along: ${JSON.stringify(pending)}`);
    const answer = await client.call("publish", { site, confirmToken: pending.approvalId });
    expect(structured(answer).status !== "ok", `an invented token does nothing: ${JSON.stringify(answer)}`);
    expect((await facts.versions(site)) === before, "nothing ran");
    return "waits";
  } finally {
    await client.close();
  }
}

/** A client that asks its person, where `decide` answers for them. */
async function connect(server, flags, decide, mode = "auto") {
  const capabilities = decide ? { elicitation: { form: {} } } : {};
  const client = new Client({ name: "typescript-pipes", version: "2.4.0" }, { capabilities, versionNegotiation: { mode } });
  if (decide) client.setRequestHandler("elicitation/create", async () => decide());
  const transport = new StdioClientTransport({
    command: BINARY,
    args: ["mcp", ...flags],
    env: environment(server.data),
    stderr: "ignore",
  });
  await client.connect(transport);
  const spoken = client.getNegotiatedProtocolVersion();
  expect(spoken === REVISIONS[mode], `the revision is that of ${mode}: ${spoken}`);
  return ofSdk(client, transport);
}

async function edited(client, facts, what) {
  const ok = async (tool, args) => {
    const answer = structured(await client.call(tool, args));
    expect(answer.status === "ok", `${tool} answers ${JSON.stringify(answer)}`);
    return answer.data;
  };
  const site = (await ok("site_list", {})).items[0].id;
  const page = (await ok("node_list", { site })).items.find((one) => one.kind === "page");
  const { body, rev } = await ok("node_get", { site, node: page.id });
  await ok("node_update", { site, node: page.id, expectedRev: rev, body: `${body.trimEnd()}\n\nPipes: ${what}.\n` });
  return { site, before: await facts.versions(site) };
}
