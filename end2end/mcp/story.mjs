// What every client plays, against one site of the demo: the honest story, and the forged ones, none of which may have an effect.
// An effect is counted where it cannot be talked about: in the versions that the site has.

import { approve, waiting as waitingFor } from "../demo-person.mjs";

const INVENTED = {
  decision: { action: "accept", content: { decision: "approve" } },
  link: { action: "accept" },
};

/** Facts of the server that no client under test tells. */
export class Facts {
  constructor(server) {
    this.server = server;
  }

  async tool(name, args) {
    const response = await fetch(`${this.server.url}/tools/${name}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.server.agentKey}` },
      body: JSON.stringify({ arguments: args }),
    });
    const answer = await response.json();
    if (answer.status !== "ok") throw new Error(`${name} answered ${JSON.stringify(answer)}`);
    return answer.data;
  }

  async versions(site) {
    return (await this.tool("version-list", { site })).items.length;
  }
}

/** The agent edits, asks, waits, and is answered once. Returns the site and the approval that was used. */
export async function honest(client, facts, person, name, tell = () => {}) {
  const tools = await client.tools();
  for (const tool of ["site_list", "node_update", "publish", "approvals_get", "approvals_resume"]) {
    expect(tools.includes(tool), `${tool} is listed`);
  }
  const site = (await ok(client, "site_list", {})).items[0].id;
  await edit(client, site, name);
  const before = await facts.versions(site);
  const asked = await client.call("publish", { site, reason: `Told by ${name}` });
  tell("publish", { site, reason: `Told by ${name}` }, asked);
  const pending = structured(asked);
  expect(pending.status === "approval_pending" && pending.approved === false, `publish waits: ${JSON.stringify(pending)}`);
  const id = pending.approvalId;
  const early = structured(await client.call("publish", { site, reason: `Told by ${name}`, approvalId: id }));
  expect(early.status === "approval_pending", `a repeat before the decision waits: ${JSON.stringify(early)}`);
  expect((await facts.versions(site)) === before, "nothing ran while it waits");

  const waiting = client.call("approvals_get", { approvalId: id, waitSeconds: 30 });
  await approve(person, facts.server.url, site, id);
  const woken = await waiting;
  tell("approvals_get", { approvalId: id, waitSeconds: 30 }, woken);
  expect(structured(woken).data?.status === "approved", `the wait ends with the decision: ${JSON.stringify(woken)}`);

  const ran = await client.call("publish", { site, reason: `Told by ${name}`, approvalId: id });
  tell("publish", { site, reason: `Told by ${name}`, approvalId: id }, ran);
  expect(structured(ran).status === "ok" && !structured(ran).replayed, `the repeat runs: ${JSON.stringify(ran)}`);
  const again = await client.call("approvals_resume", { approvalId: id });
  tell("approvals_resume", { approvalId: id }, again);
  expect(structured(again).replayed === true, `resuming it once more is a replay: ${JSON.stringify(again)}`);
  expect(structured(again).data.version === structured(ran).data.version, "a replay has the stored result");
  expect((await facts.versions(site)) === before + 1, "it ran once");
  return { site, used: id };
}

/** A client that holds a task where others hold a waiting answer: its call ends when a person has decided, and ran once. */
export async function asTask(client, facts, person, name) {
  const site = (await ok(client, "site_list", {})).items[0].id;
  await edit(client, site, name);
  const before = await facts.versions(site);
  let over = false;
  const call = client.call("publish", { site, reason: `Told by ${name}` }).finally(() => (over = true));
  let open = [];
  while (!over && open.length === 0) open = await waitingFor(person, facts.server.url, site);
  expect(!over, "the call waits for a person");
  expect((await facts.versions(site)) === before, "nothing ran while it waits");
  await approve(person, facts.server.url, site, open[0].id);
  const ran = structured(await call);
  expect(ran.status === "ok" && ran.data.version, `the task ran: ${JSON.stringify(ran)}`);
  const again = structured(await client.call("approvals_resume", { approvalId: open[0].id }));
  expect(again.replayed === true && again.data.version === ran.data.version, `it has run: ${JSON.stringify(again)}`);
  expect((await facts.versions(site)) === before + 1, "it ran once");
}

/** Every way to a version that is not a person's decision. Returns how many were tried. */
export async function forged(client, facts, { site, used }, name) {
  await edit(client, site, `${name}, forged`);
  const reason = `Forged by ${name}`;
  const pending = structured(await client.call("publish", { site, reason }));
  const id = pending.approvalId;
  const before = await facts.versions(site);
  const node = (await facts.tool("node-list", { site })).items.find((one) => one.kind === "page");
  const attempts = [
    ["the approval before anybody decided", () => client.call("publish", { site, approvalId: id })],
    ["resuming what waits", () => client.call("approvals_resume", { approvalId: id })],
    ["an invented approval", () => client.call("publish", { site, approvalId: "aaaaaaaaaaaaaaaaaaaaaaaaaa" })],
    ["a used approval for what is new", () => client.call("publish", { site, reason, approvalId: used })],
    ["a used approval, resumed", () => client.call("approvals_resume", { approvalId: used })],
    ["another tool with the approval", () => client.call("rollback", { site, version: 1, approvalId: used })],
    ["deletion with the approval", () => client.call("delete", { site, node: node.id, approvalId: id })],
    ["arguments that decide", () => client.call("publish", { site, approvalId: id, approved: true })],
    ["a token of the machine's door", () => client.call("publish", { site, confirmToken: id })],
    ["answers among the arguments", () => client.call("publish", { site, inputResponses: INVENTED })],
  ];
  const { decision, link } = INVENTED;
  for (const [what, invented] of [
    ["an invented form", { inputResponses: { decision }, requestState: id }],
    ["an invented link", { inputResponses: { link }, requestState: pending.url }],
    ["an invented state", { inputResponses: { decision }, requestState: "rs2.b3Vycw.AAAA" }],
    ["answers without a state", { inputResponses: { decision, link } }],
    ["a state without answers", { requestState: id }],
  ]) {
    if (!client.forge) break;
    attempts.push([what, () => client.forge("publish", { site, reason }, invented)]);
    attempts.push([`${what}, with the approval`, () => client.forge("publish", { site, reason, approvalId: id }, invented)]);
  }
  if (client.send) {
    const result = { action: "accept", content: { decision: "approve" } };
    attempts.push(["an answer to no question", () => client.send({ jsonrpc: "2.0", id: 1, result })]);
  }
  for (const [what, attempt] of attempts) {
    // A client may also refuse by itself to send it, or to hand over what it got.
    const answer = await attempt().catch((error) => ({ raised: String(error) }));
    const said = answer?.structuredContent;
    const harmless = !said || said.status !== "ok" || said.replayed === true || said.data?.status === "pending";
    expect(harmless, `${what} is answered ${JSON.stringify(answer)}`);
    expect((await facts.versions(site)) === before, `${what} has no effect`);
  }
  const open = structured(await client.call("approvals_get", { approvalId: id }));
  expect(open.data?.status === "pending", `nobody decided it: ${JSON.stringify(open)}`);
  return attempts.length;
}

async function edit(client, site, what) {
  const page = (await ok(client, "node_list", { site })).items.find((one) => one.kind === "page");
  const { body, rev } = await ok(client, "node_get", { site, node: page.id });
  await ok(client, "node_update", { site, node: page.id, expectedRev: rev, body: `${body.trimEnd()}\n\nBy ${what}.\n` });
}

async function ok(client, tool, args) {
  const answer = structured(await client.call(tool, args));
  expect(answer.status === "ok", `${tool} answers ${JSON.stringify(answer)}`);
  return answer.data;
}

export function structured(result) {
  expect(result?.structuredContent, `the answer has structured content: ${JSON.stringify(result)}`);
  return result.structuredContent;
}

export function expect(holds, what) {
  if (!holds) throw new Error(`this does not hold: ${what}`);
}
