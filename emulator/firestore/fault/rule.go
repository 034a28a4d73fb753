package fault

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Stage is a moment at which a rule can act.
type Stage int

const (
	// Before is before the server handles the request: nothing is applied.
	Before Stage = iota
	// Locked is when a commit holds its locks and has not applied anything yet.
	Locked
	// After is when the request is applied but not answered. A failure here loses
	// the answer.
	After
	// BeforeSave is before a batch of commits is written to the data directory. A
	// batch has no RPC, name or owner to match.
	BeforeSave
	// AfterSave is when a batch is written but not yet visible or answered.
	AfterSave
)

// Rule acts on the requests that match all of its conditions.
type Rule struct {
	RPC         string  // method name, such as "Commit"; empty: any
	NamePrefix  string  // of a document in the request: its full name, or its path such as "drones/"; empty: any
	Owner       string  // name of the client, see DialOptions; empty: any
	Nth         int     // only the nth match, counted from 1; 0: all
	Times       int     // at most this often; 0: unlimited
	Probability float64 // chance of acting on a match, in (0, 1]; 0: always
	At          Stage
	Do          Action
}

// Call is what rules know of a request.
type Call struct {
	RPC         string
	Owner       string
	Names       []string // documents, and collections that are listed or queried
	Transaction []byte
}

// OwnerHeader is the metadata key of the owner.
const OwnerHeader = "x-firestoreemu-owner"

func (r *Rule) matches(c Call, at Stage) bool {
	if r.At != at {
		return false
	}
	if at == BeforeSave || at == AfterSave {
		return true
	}
	return (r.RPC == "" || r.RPC == c.RPC) &&
		(r.Owner == "" || r.Owner == c.Owner) &&
		(r.NamePrefix == "" || slices.ContainsFunc(c.Names, r.names))
}

func (r *Rule) names(name string) bool {
	if strings.HasPrefix(name, r.NamePrefix) {
		return true
	}
	_, path, found := strings.Cut(name, "/documents/")
	return found && strings.HasPrefix(path, r.NamePrefix)
}

// Action is what a rule does. Make one with Fail, Drop, Delay, Pause, Abort,
// ExpireTransaction or Crash.
type Action struct {
	Kind  Kind
	Code  codes.Code
	Delay time.Duration
	Gate  *Gate
	Crash func()
}

// Kind is the kind of an action.
type Kind int

const (
	// KindFail answers with Code. At After, the request is applied nevertheless. At
	// BeforeSave and AfterSave, this and all later commits fail.
	KindFail Kind = iota
	// KindDrop closes the client's connection. The client sees UNAVAILABLE.
	KindDrop
	// KindDelay waits for Delay by the server's clock.
	KindDelay
	// KindPause waits until Gate opens.
	KindPause
	// KindAbort answers ABORTED, as if an older transaction had won. The request's
	// transaction loses its locks.
	KindAbort
	// KindExpire expires the request's transaction before the request is handled.
	KindExpire
	// KindCrash calls Crash, which should end the process.
	KindCrash
)

// Fail answers with a code.
func Fail(code codes.Code) Action { return Action{Kind: KindFail, Code: code} }

// Drop closes the client's connection.
func Drop() Action { return Action{Kind: KindDrop} }

// Delay waits, by the server's clock. At Locked, the commit holds its locks for that
// time.
func Delay(d time.Duration) Action { return Action{Kind: KindDelay, Delay: d} }

// Pause waits until the gate is opened.
func Pause(g *Gate) Action { return Action{Kind: KindPause, Gate: g} }

// Abort aborts a transaction as if it had lost a conflict. With a Probability it is
// an abort rate.
func Abort() Action { return Action{Kind: KindAbort} }

// ExpireTransaction expires the request's transaction before it is handled.
func ExpireTransaction() Action { return Action{Kind: KindExpire} }

// Crash calls f, which should end the process.
func Crash(f func()) Action { return Action{Kind: KindCrash, Crash: f} }
