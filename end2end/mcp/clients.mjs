// Clients that others wrote, each with the honest story and the forged ones, on one demo server. `--transcript` shows what the first
// honest story said. Names of clients as arguments choose among them.

import { signIn } from "../demo-person.mjs";
import { inspector, python, typescript, typescriptV1 } from "./adapters.mjs";
import { overPipes } from "./pipes.mjs";
import { startDemo } from "./server.mjs";
import { asTask, Facts, forged, honest } from "./story.mjs";

const CLIENTS = {
  "typescript-legacy": (server) => typescript(server, "legacy"),
  "typescript-auto": (server) => typescript(server, "auto"),
  "typescript-v1": typescriptV1,
  python,
  "inspector-legacy": (server) => inspector(server, "legacy"),
};

/** Clients that take a task, and wait for it by themselves. */
const WITH_TASKS = { "inspector-modern": (server) => inspector(server, "modern") };

const transcript = process.argv.includes("--transcript");
const chosen = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const wants = (name) => chosen.length === 0 || chosen.includes(name);
for (const name of chosen) {
  const names = [...Object.keys(CLIENTS), ...Object.keys(WITH_TASKS), "pipes"];
  if (!names.includes(name)) throw new Error(`there is no client ${name}; say one of ${names.join(", ")}`);
}

const server = await startDemo();
const failed = [];
try {
  const facts = new Facts(server);
  const person = await signIn(server.signIn);
  for (const [name, connect] of Object.entries(CLIENTS).filter(([name]) => wants(name))) {
    await part(name, async () => {
      const client = await connect(server);
      try {
        const story = await honest(client, facts, person, name, transcript ? tell : undefined);
        const attempts = await forged(client, facts, story, name);
        return `published once, replayed; ${attempts} forgeries, 0 effects`;
      } finally {
        await client.close();
      }
    });
  }
  for (const [name, connect] of Object.entries(WITH_TASKS).filter(([name]) => wants(name))) {
    await part(name, async () => {
      await asTask(await connect(server), facts, person, name);
      return "published once, as a task; replayed";
    });
  }
  if (wants("pipes")) {
    for (const [name, play] of Object.entries(overPipes(server, facts))) await part(`pipes, ${name}`, play);
  }
} finally {
  await server.stop();
}
if (failed.length) {
  console.error(`\nFailed: ${failed.join(", ")}.`);
  process.exitCode = 1;
}

async function part(name, play) {
  try {
    console.log(`  passed  ${name}: ${await play()}`);
  } catch (error) {
    console.error(`  FAILED  ${name}: ${error.stack ?? error}`);
    failed.push(name);
  }
}

function tell(tool, args, result) {
  console.log(`→ ${tool} ${JSON.stringify(args)}\n← ${result.content.map((one) => one.text).join("\n")}\n`);
}
