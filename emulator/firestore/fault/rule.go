package fault

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Stage is a moment in the life of a request at which a rule can act.
type Stage int

const (
	// Before the server looks at the request: nothing is applied.
	Before Stage = iota
	// Locked is when a commit holds its locks and has not applied anything yet.
	Locked
	// After the request is applied, before it is answered: the answer is lost.
	After
	// BeforeSave is before a batch of commits is written to the log. Only the
	// rule's Nth, Times and Probability count here.
	BeforeSave
	// AfterSave is when a batch is written but not yet visible or answered.
	AfterSave
)

// Rule does something to the requests that match all of its conditions.
type Rule struct {
	RPC         string  // method name, "Commit"; empty: any
	NamePrefix  string  // of a document in the request, full or from below /documents/; empty: any
	Owner       string  // what the client calls itself, see OwnerHeader; empty: any
	Nth         int     // only the nth match, counted from 1; 0: every one
	Times       int     // only so many times in all; 0: without end
	Probability float64 // chance of each match, drawn from the seed; 0: certain
	At          Stage
	Do          Action
}

// Call is a request as rules see it.
type Call struct {
	RPC         string
	Owner       string
	Names       []string // of documents, and of collections that are listed or queried
	Transaction []byte
}

// OwnerHeader is the metadata key under which a client may tell who it is.
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

// Action is what a rule does; make one with the functions below.
type Action struct {
	Kind  Kind
	Code  codes.Code
	Delay time.Duration
	Gate  *Gate
	Crash func()
}

// Kind tells actions apart.
type Kind int

const (
	// KindFail answers with Code. At After the request has been applied. At
	// BeforeSave the log write fails, and with it every later one.
	KindFail Kind = iota
	// KindDrop closes the client's connection: it sees UNAVAILABLE.
	KindDrop
	// KindDelay waits for Delay on the server's clock.
	KindDelay
	// KindPause waits until Gate opens.
	KindPause
	// KindAbort answers ABORTED as if an older transaction had won; the request's
	// own transaction loses its locks.
	KindAbort
	// KindExpire lets the request's transaction expire before it is looked at.
	KindExpire
	// KindCrash calls Crash, which is expected to end the process.
	KindCrash
)

// Fail answers with a code.
func Fail(code codes.Code) Action { return Action{Kind: KindFail, Code: code} }

// Drop closes the client's connection.
func Drop() Action { return Action{Kind: KindDrop} }

// Delay waits, on the server's clock. At Locked it holds the commit's locks for
// that time.
func Delay(d time.Duration) Action { return Action{Kind: KindDelay, Delay: d} }

// Pause waits until the gate is opened.
func Pause(g *Gate) Action { return Action{Kind: KindPause, Gate: g} }

// Abort makes a transaction lose against a competitor that does not exist. With
// a Probability it is an abort rate.
func Abort() Action { return Action{Kind: KindAbort} }

// ExpireTransaction ends the request's transaction first.
func ExpireTransaction() Action { return Action{Kind: KindExpire} }

// Crash calls f, which is expected to end the process.
func Crash(f func()) Action { return Action{Kind: KindCrash, Crash: f} }
