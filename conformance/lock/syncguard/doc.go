// Package syncguard runs SyncGuard, the TypeScript library that shares locks with the backends,
// as a process beside a test. SYNCGUARD_DIR names the folder whose node_modules has it;
// bench/peers/README.md says how to get it.
//
// It is test support. It must not import a backend.
package syncguard
