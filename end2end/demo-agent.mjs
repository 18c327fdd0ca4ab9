// The demo's agent: edits a page, asks to publish it, waits for a person, and repeats its call.
// `cargo xtask demo` starts it beside a fresh server; the addresses and the key come by environment.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { approve, signIn } from "./demo-person.mjs";

const SITE = "harbour-street-bakery";
const NEWS = "From this week we bake on Sundays too, from eight to noon.";

const url = required("CLOUDHAL_URL").replace(/\/$/, "");
const signInLink = required("CLOUDHAL_SIGN_IN");
const agentKey = required("CLOUDHAL_AGENT_KEY");
const unattended = process.argv.includes("--unattended");

try {
  await story();
} catch (error) {
  console.error(`\nThe story broke off: ${error.message}`);
  process.exitCode = 1;
}

async function story() {
  const client = new Client({ name: "demo-agent", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  const headers = { Authorization: `Bearer ${agentKey}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  try {
    say(`The agent is connected to ${url}/mcp.`);
    const site = await findSite(client);
    const page = await editPage(client, site);
    const pending = await askToPublish(client, site);
    await (unattended ? decideAsThePerson(site, pending) : inviteThePerson(pending));
    if (!(await waitForThePerson(client, pending))) return;
    await publish(client, site, pending);
    await showLivePage(site, page);
  } finally {
    await client.close();
  }
}

async function findSite(client) {
  const { items } = await ok(client, "site_list", {});
  const site = items.find((one) => one.slug === SITE);
  if (!site) throw new Error(`the agent sees no site ${SITE}`);
  say(`It finds the site "${site.title}".`);
  return site;
}

async function editPage(client, site) {
  const { items } = await ok(client, "node_list", { site: site.id });
  const page = items.find((node) => node.kind === "page");
  if (!page) throw new Error("the demo site has no page");
  const { body, rev } = await ok(client, "node_get", { site: site.id, node: page.id });
  await ok(client, "node_update", {
    site: site.id,
    node: page.id,
    expectedRev: rev,
    body: `${body.trimEnd()}\n\n${NEWS}\n`,
  });
  say(`It adds a sentence to the page "${page.title}": that is only the draft, and nobody has to be asked.`);
  return page;
}

async function askToPublish(client, site) {
  const answer = await call(client, "publish", { site: site.id, reason: "The opening hours have changed." });
  if (answer.status !== "approval_pending") throw new Error(`publish answered ${JSON.stringify(answer)}`);
  say("It calls `publish`. Publishing has consequences, so nothing runs: the agent gets a link for a person.");
  return answer;
}

function inviteThePerson(pending) {
  say("Now you are that person. First sign in here (the link works once):");
  console.log(`\n    ${signInLink}\n`);
  say("then look at what would change, and approve or deny it:");
  console.log(`\n    ${pending.url}\n`);
  say("The agent waits for you …");
}

async function decideAsThePerson(site, pending) {
  const person = await signIn(signInLink);
  await approve(person, url, site.id, pending.approvalId);
  say("The person signs in, looks at the change and approves it.");
}

async function waitForThePerson(client, pending) {
  for (;;) {
    const record = await ok(client, "approvals_get", { approvalId: pending.approvalId, waitSeconds: 40 });
    if (record.status === "approved") {
      say("Approved.");
      return true;
    }
    if (record.status !== "pending") {
      const reason = record.decisions?.at(-1)?.reason;
      say(`The request is ${record.status}${reason ? ` ("${reason}")` : ""}, so nothing is published. That is the end of this story.`);
      if (unattended) throw new Error(`the request is ${record.status}, not approved`);
      return false;
    }
  }
}

async function publish(client, site, pending) {
  const again = { site: site.id, approvalId: pending.approvalId };
  const first = await answered(client, "publish", again);
  say(`The agent repeats its call with the approval's id: version ${first.data.version} is live.`);
  const second = await answered(client, "publish", again);
  if (!second.replayed) throw new Error("the same call ran a second time");
  say("It repeats the call once more, as after a lost answer: it gets the stored result, and nothing runs twice.");
}

async function showLivePage(site, page) {
  const home = new URL(site.liveUrl.replace(/\/?$/, "/"), url);
  const live = new URL(page.path ? `${page.path}/` : "", home).href;
  const response = await fetch(live);
  const text = await response.text();
  if (!response.ok || !text.includes(NEWS)) throw new Error(`${live} answers ${response.status}, without the new sentence`);
  say("The new sentence is on the live page:");
  console.log(`\n    ${live}\n`);
}

async function ok(client, tool, args) {
  return (await answered(client, tool, args)).data;
}

async function answered(client, tool, args) {
  const answer = await call(client, tool, args);
  if (answer.status !== "ok") throw new Error(`${tool} answered ${JSON.stringify(answer)}`);
  return answer;
}

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  if (!result.structuredContent) throw new Error(`${name} answered without structured content: ${JSON.stringify(result)}`);
  return result.structuredContent;
}

function say(text) {
  console.log(`  · ${text}`);
}

function required(name) {
  const value = process.env[name];
  if (!value) {
    console.error(`${name} is not set; \`cargo xtask demo\` sets it.`);
    process.exit(2);
  }
  return value;
}
