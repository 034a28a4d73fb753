//go:build unix

package cli

import (
	"os"
	"syscall"
)

// takeOwner gives a file the owner and group of another.
func takeOwner(f *os.File, of os.FileInfo) error {
	if s, ok := of.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}
