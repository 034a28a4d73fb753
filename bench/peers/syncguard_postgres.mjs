// A process that locks with SyncGuard on Postgres, for comparison only: the tests of
// lock/postgreslock start some beside their own backends, on one database.
//
//     SYNCGUARD_DIR=DIR POSTGRES_URL=URL node syncguard_postgres.mjs
//
// DIR holds node_modules with syncguard and postgres. A line on stdin is a command in
// JSON, and each is answered by a line on stdout before the next is read. It ends with its
// stdin.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SYNCGUARD_DIR, "package.json"));
const { createPostgresBackend, setupSchema } = await import(pathToFileURL(require.resolve("syncguard/postgres")));
const sql = require("postgres")(process.env.POSTGRES_URL, { max: 1, onnotice: () => {} });
const backend = createPostgresBackend(sql);

const operations = {
  setup: async () => (await setupSchema(sql), { ok: true }),
  acquire: ({ key, ttlMs }) => backend.acquire({ key, ttlMs }),
  release: ({ lockId }) => backend.release({ lockId }),
  extend: ({ lockId, ttlMs }) => backend.extend({ lockId, ttlMs }),
  isLocked: async ({ key }) => ({ ok: await backend.isLocked({ key }) }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    answer = await operations[command.op](command);
  } catch (error) {
    answer = { ok: false, code: error.code ?? error.name, message: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await sql.end();
