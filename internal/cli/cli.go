package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// Keeping holds the flag of commands that write records.
type Keeping struct {
	Retention domain.Retention `help:"How long new documents are kept, such as events=30y,cycles=30d: in days or years, at least 7d; orders and missions at least 31d after their end. Others are kept as long as without it: orders and missions for ever, the rest 90 days. Give State Managers, optimizers and operators the same." placeholder:"COLLECTION=TIME,..."`
}

// Connection holds the flags that say where the fleet is.
type Connection struct {
	Project       string `help:"Google Cloud project. With emulators any name will do." env:"GOOGLE_CLOUD_PROJECT" placeholder:"ID" check:"id"`
	Database      string `help:"Firestore database." default:"(default)" env:"FIRESTORE_DATABASE" check:"id"`
	FirestoreHost string `help:"Address of a Firestore emulator; empty for Google Cloud." env:"FIRESTORE_EMULATOR_HOST" placeholder:"HOST:PORT" check:"address"`
	PubsubHost    string `help:"Address of a Pub/Sub emulator; empty for Google Cloud." env:"PUBSUB_EMULATOR_HOST" placeholder:"HOST:PORT" check:"address"`
}

func (c Connection) config() connect.Config {
	return connect.Config{Project: c.Project, Database: c.Database, FirestoreHost: c.FirestoreHost, PubSubHost: c.PubsubHost}
}

// CheckConnection refuses settings that cannot lead to a fleet.
func (c Connection) CheckConnection(r *config.Refuser) {
	if err := c.config().CheckProject(); err != nil {
		r.Refuse("project", "%s", err)
	}
	if err := c.config().CheckDatabase(); err != nil {
		r.Refuse("database", "%s", err)
	}
}

// Open connects, makes sure that Firestore and Pub/Sub answer, and returns the
// fleet's clock.
func (c Connection) Open(ctx context.Context) (*connect.Clients, *simclock.Clock, error) {
	return open(ctx, c.config())
}

// OpenReadOnly is Open with a Firestore client that refuses to write.
func (c Connection) OpenReadOnly(ctx context.Context) (*connect.Clients, *simclock.Clock, error) {
	cfg := c.config()
	cfg.ReadOnly = true
	return open(ctx, cfg)
}

func open(ctx context.Context, cfg connect.Config) (*connect.Clients, *simclock.Clock, error) {
	// Google's libraries prefer these variables, even to what a flag says.
	for _, name := range []string{connect.FirestoreHost, connect.PubSubHost} {
		if err := os.Unsetenv(name); err != nil {
			return nil, nil, err
		}
	}
	clients, err := connect.Open(ctx, cfg, meter.New())
	if err != nil {
		return nil, nil, err
	}
	waiting := func(text string) { fmt.Fprintln(os.Stderr, text) } // standard output may be piped to a program
	if err := clients.Check(ctx, waiting); err != nil {
		return nil, nil, errors.Join(err, clients.Close())
	}
	clock, err := clients.Clock(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, clients.Close())
	}
	return clients, clock, nil
}

// Locks holds the flag of the lock store.
type Locks struct {
	Lock string `help:"Store of the fleet's locks, the same for all optimizers and State Managers: redis://HOST:PORT/DB, rediss:// for TLS, or postgres://USER@HOST:PORT/DB; empty for the fleet's Firestore. A password that is not in it is taken from LOCK_PASSWORD. See docs/lock.md." placeholder:"URL" env:"LOCK_STORE" secret:""`
}

// CheckLocks refuses a value that is not the address of a store.
func (l Locks) CheckLocks(r *config.Refuser) {
	if _, err := l.store(); err != nil {
		r.Refuse("lock", "%s", err)
	}
}

func (l Locks) store() (connect.LockStore, error) {
	if l.Lock == "" {
		return connect.LockStore{}, nil
	}
	return connect.ParseLockStore(l.Lock)
}

// OpenWithLocks is Open for commands that use the fleet's locks.
func (c Connection) OpenWithLocks(ctx context.Context, l Locks) (*connect.Clients, *simclock.Clock, error) {
	store, err := l.store()
	if err != nil {
		return nil, nil, fmt.Errorf("--lock %w", err)
	}
	clients, clock, err := c.Open(ctx)
	if err == nil {
		clients.LockStore = store
	}
	return clients, clock, err
}

// Logging holds the flags of the log.
type Logging struct {
	LogLevel slog.Level `help:"Lowest severity that is logged: debug, info, warn, error." default:"info" env:"LOG_LEVEL" accepts:"debug, info, warn or error"`
}

// Logger writes JSON lines in the field names of Cloud Logging.
func (l Logging) Logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: l.LogLevel,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindDuration { // a bare number has no unit
				a.Value = slog.StringValue(a.Value.Duration().String())
			}
			if len(groups) > 0 {
				return a
			}
			switch a.Key {
			case slog.LevelKey:
				level, _ := a.Value.Any().(slog.Level)
				a = slog.String("severity", severity(level))
			case slog.MessageKey:
				a.Key = "message"
			}
			return a
		},
	}))
}

// severity is Cloud Logging's name of a level.
func severity(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "DEBUG"
	case l < slog.LevelWarn:
		return "INFO"
	case l < slog.LevelError:
		return "WARNING"
	}
	return "ERROR"
}

// Version is the module version and revision the binary was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version += " " + s.Value
		}
	}
	return version + " " + info.GoVersion
}

// Main parses the command line into grammar, a kong struct whose commands have a
// method Run(context.Context) error, and runs the selected command. Settings come
// from flags, environment and file; see package config. The first interrupt or
// SIGTERM cancels the context; a second one kills the process.
//
// The exit status, as docs/operate.md documents it, is 0 for success, 1 for failure
// (a failed write to Stdout included), 2 for a wrong command line or wrong settings,
// and 130 for a command that was interrupted before it was done. A command tagged
// serves:"" that stops cleanly when told to has succeeded.
func Main(grammar any, description string) {
	MainWith(grammar, description, Statuses{Failed: 1, Misused: 2})
}

// Statuses are the exit statuses of a program that fails.
type Statuses struct {
	Failed  int
	Misused int // a wrong command line or wrong settings
}

// Exit is the error of a command that ends with a status of its own. Err is printed
// unless it is nil.
type Exit struct {
	Status int
	Err    error
}

// Error implements error.
func (e *Exit) Error() string { return fmt.Sprintf("exit status %d: %v", e.Status, e.Err) }

// Unwrap returns what is printed.
func (e *Exit) Unwrap() error { return e.Err }

// MainWith is Main for a program whose failures have other exit statuses.
func MainWith(grammar any, description string, statuses Statuses) {
	name := filepath.Base(os.Args[0])
	parser, err := config.New(grammar,
		kong.Name(name), kong.Description(description), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"version": name + " " + Version()},
		kong.Writers(Stdout, os.Stderr), kong.Exit(func(code int) {
			if stdout.err != nil {
				fail(name, stdout.err, statuses.Failed)
			}
			os.Exit(code)
		}),
	)
	if err != nil {
		fail(name, err, statuses.Failed)
	}
	if completed(parser) {
		return
	}
	command, err := parser.Parse(os.Args[1:])
	for _, warning := range parser.Misspelled() {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, warning)
	}
	var problems config.Problems
	switch {
	case stdout.err != nil: // kong reports help that it could not write as a wrong command line
		fail(name, stdout.err, statuses.Failed)
	case errors.As(err, &problems):
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, problems)
		os.Exit(statuses.Misused)
	case err != nil:
		fail(name, fmt.Errorf("%w; see \"%s --help\"", err, misused(name, err)), statuses.Misused)
	case command.Prints:
		if err := command.Print(Stdout); err != nil {
			fail(name, err, statuses.Failed)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal kills the process
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run()
	if err == nil {
		err = stdout.err
	}
	if exit, ok := errors.AsType[*Exit](err); ok {
		if exit.Err == nil {
			os.Exit(exit.Status)
		}
		fail(name, exit.Err, exit.Status)
	}
	if err != nil {
		selected := command.Selected() // nil if the program has no commands
		serves := selected != nil && selected.Tag.Has("serves")
		code := statuses.Failed
		if ctx.Err() != nil && !serves {
			code = interrupted
		}
		if ctx.Err() != nil && cancelled(err) {
			err = errInterrupted
		}
		fail(name, err, code)
	}
}

// interrupted is the exit status that shells give a command ended by Ctrl-C.
const interrupted = 130

// errInterrupted replaces the errors of calls that an interrupt cancelled.
var errInterrupted = errors.New("interrupted")

// cancelled reports whether err means only that a context was cancelled, as a Go
// error or a gRPC status.
func cancelled(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !cancelled(err) })
	}
	return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
}

// misused returns the command whose help explains a wrong command line: the last
// one that the line names, or the program.
func misused(name string, err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return name
	}
	for _, step := range slices.Backward(wrong.Context.Path) {
		if step.Command != nil {
			return step.Command.FullPath()
		}
	}
	return name
}

// fail prints err as one line and exits.
func fail(name string, err error, code int) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, oneLine(withNetworkCause(err)))
	os.Exit(code)
}

// withNetworkCause adds why a connection failed. Errors of the lock library leave out
// their causes, which may hold keys; the cause of a failed connection holds only an address.
func withNetworkCause(err error) error {
	if cause, ok := errors.AsType[*net.OpError](err); ok && !strings.Contains(err.Error(), cause.Error()) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

// oneLine returns an error's text as one line without control characters: errors quote
// what others sent, and a terminal would obey such characters.
func oneLine(err error) string {
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}
