package ratelimit

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Budget is a kind of request with a limit of its own.
type Budget string

const (
	Reads    Budget = "reads"
	Commands Budget = "commands"
	Streams  Budget = "streams"
)

// Budgets lists all budgets.
var Budgets = []Budget{Reads, Commands, Streams}

// Config limits what one caller may request. 0 means no limit.
type Config struct {
	Reads    float64 // requests a second, on average
	Commands float64 // requests a second, on average
	Streams  int     // open at once
}

// Default is enough for a person with the console, and for scripts that wait for answers.
var Default = Config{Reads: 20, Commands: 2, Streams: 20}

// SavedFor is how long a caller that asks for nothing saves up requests: it may send as
// many at once as the average allows in that time.
const SavedFor = 10 * time.Second

// longestWait is what a caller is told at most. At a tiny rate the wait fits no duration.
const longestWait = 365 * 24 * time.Hour

// MaxCallers bounds each of the two tables of callers, to about 3 MB.
const MaxCallers = 10_000

// Caller is who asks.
type Caller struct {
	ID string
	// Known says that the caller's credentials were verified. Whoever has none can
	// change its address, but takes no room from known callers.
	Known bool
}

// Limiter is safe for concurrent use. A nil one limits nothing.
type Limiter struct {
	cfg Config
	now func() time.Time

	mu      sync.Mutex
	known   table
	unknown table
	swept   time.Time
}

// table has the callers of one kind.
type table struct {
	callers map[string]*caller
	others  *caller // shared by those for whom the table has no room
}

type caller struct {
	reads, commands *rate.Limiter
	streams         int
}

// New returns a limiter that reads the time from now.
func New(cfg Config, now func() time.Time) *Limiter {
	l := &Limiter{cfg: cfg, now: now, swept: now()}
	l.known, l.unknown = l.newTable(), l.newTable()
	return l
}

func (l *Limiter) newTable() table { return table{map[string]*caller{}, l.newCaller()} }

func (l *Limiter) newCaller() *caller {
	return &caller{reads: bucket(l.cfg.Reads), commands: bucket(l.cfg.Commands)}
}

// bucket is a full bucket; one without a limit never runs dry.
func bucket(perSecond float64) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), int(math.Max(1, perSecond*SavedFor.Seconds())))
}

// Take takes one request from a caller's budget, Reads or Commands. If that is used up,
// it takes nothing and returns how long the caller must wait.
func (l *Limiter) Take(who Caller, b Budget) (wait time.Duration) { return l.ask(who, b, 1) }

// Wait is what Take would return, and takes nothing.
func (l *Limiter) Wait(who Caller, b Budget) time.Duration { return l.ask(who, b, 0) }

// ask takes up to one request from a caller's budget if there is one.
func (l *Limiter) ask(who Caller, b Budget, n int) (wait time.Duration) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.find(who, now)
	from := c.reads
	if b == Commands {
		from = c.commands
	}
	missing := 1 - from.TokensAt(now)
	if from.Limit() == rate.Inf || missing <= 0 {
		from.AllowN(now, n)
		return 0
	}
	return time.Duration(math.Ceil(min(missing/float64(from.Limit()), longestWait.Seconds()) * float64(time.Second)))
}

// OpenStream counts a stream of a caller until closed is called. It returns nil if the
// caller has as many as it may.
func (l *Limiter) OpenStream(who Caller) (closed func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.find(who, l.now())
	if l.cfg.Streams > 0 && c.streams >= l.cfg.Streams {
		return nil
	}
	c.streams++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.streams--
	}
}

// Callers is how many callers are remembered.
func (l *Limiter) Callers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known.callers) + len(l.unknown.callers)
}

// find returns the entry of a caller.
func (l *Limiter) find(who Caller, now time.Time) *caller {
	if now.Sub(l.swept) >= SavedFor {
		l.swept = now
		l.known.sweep(now)
		l.unknown.sweep(now)
	}
	t := &l.unknown
	if who.Known {
		t = &l.known
	}
	c := t.callers[who.ID]
	if c == nil {
		if len(t.callers) >= MaxCallers {
			return t.others
		}
		c = l.newCaller()
		t.callers[who.ID] = c
	}
	return c
}

// sweep forgets the callers whose buckets are full. It looks at every caller, once in SavedFor.
func (t *table) sweep(now time.Time) {
	for id, c := range t.callers {
		if c.streams == 0 && full(c.reads, now) && full(c.commands, now) {
			delete(t.callers, id)
		}
	}
}

func full(b *rate.Limiter, now time.Time) bool {
	return b.Limit() == rate.Inf || b.TokensAt(now) >= float64(b.Burst())
}
