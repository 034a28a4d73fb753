// Package proto holds the wire format's source. The Go code beside it is
// generated: run "go generate ./proto" after changing a .proto file. The package must
// not import anything.
package proto

//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf generate"
