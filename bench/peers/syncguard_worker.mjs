// A process that locks with SyncGuard, for comparison only: the lock library's
// interop test starts some beside its own backends, on one server.
//
//     SYNCGUARD_DIR=DIR FIRESTORE_EMULATOR_HOST=ADDRESS node syncguard_worker.mjs
//
// DIR holds node_modules with syncguard and @google-cloud/firestore. A line on
// stdin is a command in JSON, and each is answered by a line on stdout before
// the next is read. It ends with its stdin.

import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SYNCGUARD_DIR, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { createFirestoreBackend } = await load("syncguard/firestore");
const { getByIdRaw, getByKeyRaw, hashKey, makeStorageKey } = await load("syncguard/common");
const { Firestore } = require("@google-cloud/firestore");

const backends = new Map(); // by project
function backend(projectId) {
  if (!backends.has(projectId)) backends.set(projectId, createFirestoreBackend(new Firestore({ projectId })));
  return backends.get(projectId);
}

const operations = {
  acquire: ({ project, key, ttlMs }) => backend(project).acquire({ key, ttlMs }),
  release: ({ project, lockId }) => backend(project).release({ lockId }),
  extend: ({ project, lockId, ttlMs }) => backend(project).extend({ lockId, ttlMs }),
  isLocked: async ({ project, key }) => ({ ok: await backend(project).isLocked({ key }) }),
  lookup: async ({ project, key, lockId }) => {
    const info = await (lockId ? getByIdRaw(backend(project), lockId) : getByKeyRaw(backend(project), key));
    return { ok: info !== null, ...info };
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
