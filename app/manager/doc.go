// Package manager is the State Manager as one service: it consumes the inbound
// topics, sends mission commands, and sweeps the fleet for what no message reports.
// Any number of managers share the work in any way. Run returns an error when a
// subscription cannot be consumed or a shutdown ran out of time. The package must
// not import httpapi or cmd.
package manager
