// Package grpconly tells clients of HTTP/1 that a server speaks gRPC only. Without it they
// would get bytes of HTTP/2, which curl and HTTP libraries report as a broken server.
//
// It must not import anything of the fleet.
package grpconly
