//go:build !unix

package cli

import "os"

func takeOwner(*os.File, os.FileInfo) error { return nil }
