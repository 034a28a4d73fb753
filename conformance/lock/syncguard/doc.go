// Package syncguard runs SyncGuard, the TypeScript library whose locks a backend shares,
// as a process beside a test. bench/peers/README.md says how to get it; SYNCGUARD_DIR
// names the folder whose node_modules has it.
//
// It is test support. It must not import a backend.
package syncguard
