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

// MaxCallers bounds the table of callers, to about 3 MB.
const MaxCallers = 10_000

// Limiter is safe for concurrent use. A nil one limits nothing.
type Limiter struct {
	cfg Config
	now func() time.Time

	mu      sync.Mutex
	callers map[string]*caller
	others  *caller // shared by those for whom the table has no room
	swept   time.Time
}

type caller struct {
	reads, commands *rate.Limiter
	streams         int
}

// New returns a limiter that reads the time from now.
func New(cfg Config, now func() time.Time) *Limiter {
	l := &Limiter{cfg: cfg, now: now, callers: map[string]*caller{}, swept: now()}
	l.others = l.newCaller()
	return l
}

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
func (l *Limiter) Take(name string, b Budget) (wait time.Duration) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.find(name, now)
	from := c.reads
	if b == Commands {
		from = c.commands
	}
	if from.AllowN(now, 1) {
		return 0
	}
	missing := 1 - from.TokensAt(now)
	return time.Duration(math.Ceil(min(missing/float64(from.Limit()), longestWait.Seconds()) * float64(time.Second)))
}

// OpenStream counts a stream of a caller until closed is called. It returns nil if the
// caller has as many as it may.
func (l *Limiter) OpenStream(name string) (closed func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.find(name, l.now())
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
	return len(l.callers)
}

// find returns the entry of a caller.
func (l *Limiter) find(name string, now time.Time) *caller {
	if now.Sub(l.swept) >= SavedFor {
		l.sweep(now)
	}
	c := l.callers[name]
	if c == nil {
		if len(l.callers) >= MaxCallers {
			return l.others
		}
		c = l.newCaller()
		l.callers[name] = c
	}
	return c
}

// sweep forgets the callers that have saved up all they can. It takes as long as there
// are callers, once in SavedFor.
func (l *Limiter) sweep(now time.Time) {
	l.swept = now
	for name, c := range l.callers {
		if c.streams == 0 && full(c.reads, now) && full(c.commands, now) {
			delete(l.callers, name)
		}
	}
}

func full(b *rate.Limiter, now time.Time) bool {
	return b.Limit() == rate.Inf || b.TokensAt(now) >= float64(b.Burst())
}
