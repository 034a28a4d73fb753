package main

import (
	"os"
	"os/exec"
	"syscall"
)

// forwarded are the signals that the command gets when locktool does.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// process is a running command. It has a process group of its own, so that signals reach what
// it starts. At a terminal it shares locktool's group, which alone may read from the terminal,
// and the terminal sends it the signals of its keys.
type process struct {
	cmd        *exec.Cmd
	atTerminal bool
}

func (p *process) start() error {
	if tty, err := os.Open("/dev/tty"); err == nil {
		p.atTerminal = true
		_ = tty.Close() // opened to see whether there is one
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   !p.atTerminal,
		Pdeathsig: syscall.SIGKILL, // nobody extends the lease of a command that survives locktool
	}
	return p.cmd.Start()
}

// signal sends a signal. It fails only if the command has ended, which its status tells.
func (p *process) signal(s os.Signal) {
	switch number, ok := s.(syscall.Signal); {
	case !ok:
	case !p.atTerminal:
		_ = syscall.Kill(-p.cmd.Process.Pid, number)
	case number != syscall.SIGINT && number != syscall.SIGQUIT && number != syscall.SIGWINCH:
		_ = p.cmd.Process.Signal(number)
	}
}
