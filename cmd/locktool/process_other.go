//go:build !linux

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// forwarded are the signals that the command gets when locktool does.
var forwarded = []os.Signal{syscall.SIGHUP, syscall.SIGTERM}

// process is a running command. A terminal sends it the signals of its keys itself.
type process struct{ cmd *exec.Cmd }

func (p *process) start() error { return p.cmd.Start() }

// signal sends a signal. It fails only if the command has ended, which its status tells.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }
