// A process that locks with SyncGuard, for comparison only: tests of the lock library
// start some beside its own backends, on one server.
//
//     SYNCGUARD_DIR=DIR FIRESTORE_EMULATOR_HOST=ADDRESS node syncguard_worker.mjs
//
// DIR holds node_modules with syncguard and the client of the store that is used:
// @google-cloud/firestore (commands name a project), ioredis (commands have redis,
// host:port, and the prefix of keys) or postgres (commands have its URL). A line on stdin is
// a command in JSON, and each is answered by a line on stdout before the next is read. It
// ends with its stdin.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SYNCGUARD_DIR, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { getByIdRaw, getByKeyRaw, hashKey, lock: withLock, makeStorageKey } = await load("syncguard/common");

// Backends by what the commands name; a store's client is loaded when it is used.
const backends = new Map();
const atEnd = [];
const postgres = (url) => {
  const sql = require("postgres")(url, { onnotice: () => {} });
  atEnd.push(() => sql.end());
  return sql;
};
const stores = {
  project: async ({ project }) => {
    const { createFirestoreBackend } = await load("syncguard/firestore");
    const { Firestore } = require("@google-cloud/firestore");
    return createFirestoreBackend(new Firestore({ projectId: project }));
  },
  redis: async ({ redis, prefix }) => {
    const { createRedisBackend } = await load("syncguard/redis");
    const Redis = require("ioredis");
    const [host, port] = redis.split(":");
    const client = new Redis({ host, port: Number(port) });
    atEnd.push(() => client.disconnect());
    return createRedisBackend(client, { keyPrefix: prefix });
  },
  postgres: async (command) => {
    const { createPostgresBackend } = await load("syncguard/postgres");
    return createPostgresBackend(postgres(command.postgres));
  },
};
async function backend(command) {
  const store = Object.keys(stores).find((name) => command[name]);
  const name = JSON.stringify([store, command[store], command.prefix]);
  if (!backends.has(name)) backends.set(name, await stores[store](command));
  return backends.get(name);
}

const operations = {
  setup: async (command) => {
    const { setupSchema } = await load("syncguard/postgres");
    await setupSchema(postgres(command.postgres));
    return { ok: true };
  },
  acquire: async (command) => (await backend(command)).acquire({ key: command.key, ttlMs: command.ttlMs }),
  release: async (command) => (await backend(command)).release({ lockId: command.lockId }),
  extend: async (command) => (await backend(command)).extend({ lockId: command.lockId, ttlMs: command.ttlMs }),
  isLocked: async (command) => ({ ok: await (await backend(command)).isLocked({ key: command.key }) }),
  lookup: async (command) => {
    const b = await backend(command);
    const info = await (command.lockId ? getByIdRaw(b, command.lockId) : getByKeyRaw(b, command.key));
    return { ok: info !== null, ...info };
  },
  // Workers that acquire and release one key in turns, for so long: for each acquisition, in
  // their order, which worker made it and how long it took since that worker's last, in ms;
  // and the codes of the errors that ended an attempt.
  contend: async (command) => {
    const took = [], holders = [], failures = [];
    const b = await backend(command);
    const end = Date.now() + command.forMs;
    await Promise.all(Array.from({ length: command.workers }, async (_, worker) => {
      for (let began = performance.now(); Date.now() < end; ) {
        try {
          await withLock(b, async () => {
            took.push(performance.now() - began);
            holders.push(worker);
          }, { key: command.key });
          began = performance.now();
        } catch (error) {
          if (error.code !== "AcquisitionTimeout") failures.push(error.code ?? error.name);
        }
      }
    }));
    return { ok: true, took, holders, failures };
  },
  storageKey: ({ prefix, key, limit, reserve }) => ({ ok: true, key: makeStorageKey(prefix, key, limit, reserve) }),
  hash: ({ key }) => ({ ok: true, keyHash: hashKey(key) }),
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
for (const end of atEnd) await end();
