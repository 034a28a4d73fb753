// Package tcpproxy is a proxy between a client and any server of requests and replies
// on TCP that makes them fail on demand: it cuts connections before a request reaches the
// server or after the server has answered, swallows requests and replies, and delays. It
// knows no protocol: a request is what arrives in one piece.
//
// It is test support. It must not import the lock or a backend.
package tcpproxy
