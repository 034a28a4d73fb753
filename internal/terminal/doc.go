// Package terminal shows on a terminal what others have sent. It knows no command
// and no store, imports nothing of ours and fails only as what it writes to does.
package terminal
