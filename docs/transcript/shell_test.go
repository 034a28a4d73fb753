//go:build unix

package transcript

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Shell is a running bash into which steps are typed.
type Shell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	close func()
	steps int
}

// mark ends the output of a step.
const mark = "--- end of step"

// Start starts a shell in a folder with an environment. When ctx ends, the
// shell and everything it started are killed.
func Start(ctx context.Context, dir string, env []string) (*Shell, error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(bash, "--noprofile", "--norc")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, write, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that nothing it starts outlives it
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	// The shell has its own; with this one open its end could not be seen.
	if err := errors.Join(err, write.Close()); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return &Shell{cmd: cmd, stdin: stdin, out: bufio.NewReader(read), close: func() { stop(); _ = read.Close() }}, nil
}

// Run types a command and returns the lines it printed and its exit code. An
// error means that the shell ended.
func (s *Shell) Run(command string) (lines []string, code int, err error) {
	s.steps++
	end := fmt.Sprintf("%s %d:", mark, s.steps)
	if _, err := fmt.Fprintf(s.stdin, "%s\nprintf '\\n%s %%d\\n' $?\n", command, end); err != nil {
		return nil, 0, fmt.Errorf("the shell is gone: %w", err)
	}
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return lines, 0, fmt.Errorf("the shell ended: %w", err)
		}
		line = strings.TrimSuffix(line, "\n")
		if status, over := strings.CutPrefix(line, end); over {
			_, err := fmt.Sscan(status, &code)
			// The line break before the mark ends an unfinished line, or is one.
			if n := len(lines); n > 0 && lines[n-1] == "" {
				lines = lines[:n-1]
			}
			return lines, code, err
		}
		lines = append(lines, line)
	}
}

// Close kills the shell with everything it started.
func (s *Shell) Close() error {
	err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	_ = s.cmd.Wait() // it says that it was killed
	s.close()
	return err
}
