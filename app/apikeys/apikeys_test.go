package apikeys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// fleet is some processes that check keys in one database, with one clock.
type fleet struct {
	t       *testing.T
	clients *connect.Clients
	clock   *clockwork.FakeClock
	store   *firestoretx.Store
	log     bytes.Buffer
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, clients: emutest.Clients(t), clock: clockwork.NewFakeClockAt(time.Now())}
	f.store = firestoretx.New(f.clients.Firestore, firestoretx.Config{Now: f.clock.Now})
	return f
}

// process is a checker of a process of its own.
func (f *fleet) process(recordUse bool) *apikeys.Checker {
	return apikeys.New(apikeys.Config{Store: f.store, Now: f.clock.Now, RecordUse: recordUse, Log: slog.New(slog.NewTextHandler(&f.log, nil))})
}

// make stores a key that lasts for a month.
func (f *fleet) make(role domain.KeyRole, subject string) (text string, k domain.APIKey) {
	f.t.Helper()
	text = apikeys.NewText()
	k = domain.APIKey{Hash: apikeys.Hash(text), Role: role, Subject: subject, CreatedAt: f.clock.Now(), CreatedBy: "ann", Why: "test", ExpiresAt: f.clock.Now().Add(30 * 24 * time.Hour)}
	if err := f.store.CreateKey(f.t.Context(), k); err != nil {
		f.t.Fatal(err)
	}
	return text, k
}

// refused expects an *apikeys.InvalidError with a reason that does not show the key.
func (f *fleet) refused(text string, err error, reason string) {
	f.t.Helper()
	var invalid *apikeys.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), reason) {
		f.t.Errorf("error %v, want an *InvalidError with %q", err, reason)
	}
	if secret := strings.TrimPrefix(text, apikeys.Prefix); err != nil && len(secret) > 8 && strings.Contains(err.Error(), secret) {
		f.t.Errorf("the error shows the key: %v", err)
	}
}

// F-INT-06: a revoked key is dead within ten seconds in every process, whenever each has read it,
// and so is a session that was opened with it.
func TestChecker_RefusesARevokedKeyWithinTenSeconds(t *testing.T) {
	f := newFleet(t)
	text, k := f.make(domain.KeyDrone, "DRONE-1")
	other, _ := f.make(domain.KeyViewer, "")
	var processes []*apikeys.Checker
	for range 10 {
		p := f.process(false)
		if got, err := p.Check(t.Context(), text); err != nil || got.Subject != "DRONE-1" || got.Role != domain.KeyDrone {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := p.Recheck(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, p)
		f.clock.Advance(time.Second)
	}
	if _, err := f.store.RevokeKey(t.Context(), k.Hash, "ann", "stolen"); err != nil {
		t.Fatal(err)
	}
	var alive int
	for range 10 { // seconds
		for _, p := range processes {
			if _, err := p.Check(t.Context(), text); err == nil {
				alive++
			}
			_ = p.Recheck(t.Context(), k) // as a session does every second
		}
		f.clock.Advance(time.Second)
	}
	if alive == 0 {
		t.Error("no process believed its cache; the test shows nothing")
	}
	for i, p := range processes {
		_, err := p.Check(t.Context(), text)
		f.refused(text, err, "it was revoked ")
		if err := p.Recheck(t.Context(), k); err == nil {
			t.Errorf("process %d lets a session go on", i)
		}
		if _, err := p.Check(t.Context(), other); err != nil {
			t.Errorf("another key: %v", err)
		}
	}
}

// F-INT-06: however many processes see a key used, and however often, its last use is written at
// most once an hour; a gateway never writes it.
func TestChecker_RecordsTheLastUseOnceAnHour(t *testing.T) {
	f := newFleet(t)
	text, k := f.make(domain.KeyOperator, "")
	processes := make([]*apikeys.Checker, 20)
	for i := range processes {
		processes[i] = f.process(i != 0)
	}
	// used checks the key 1,000 times at once and returns how many writes that took.
	used := func() int64 {
		before := f.clients.Meter.FirestoreTotals().Writes
		var all sync.WaitGroup
		for _, p := range processes {
			all.Go(func() {
				for range 50 {
					if _, err := p.Check(t.Context(), text); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return f.clients.Meter.FirestoreTotals().Writes - before
	}
	for hour := range 3 {
		now := f.clock.Now()
		if n := used(); n != 1 {
			t.Errorf("hour %d: %d writes, want 1", hour, n)
		}
		if got, _, err := f.store.Key(t.Context(), k.Hash); err != nil || got.LastUsedAt.Sub(now).Abs() > time.Millisecond {
			t.Errorf("hour %d: last used %s, want %s (%v)", hour, got.LastUsedAt, now, err)
		}
		f.clock.Advance(59*time.Minute + 59*time.Second)
		if n := used(); n != 0 {
			t.Errorf("hour %d: %d writes before it is over", hour, n)
		}
		f.clock.Advance(time.Second)
	}
	if f.log.Len() > 0 {
		t.Errorf("logged %s", f.log.String())
	}
}

// F-INT-06: a key that does not count is refused with a reason that helps.
func TestChecker_SaysWhyAKeyDoesNotCount(t *testing.T) {
	f := newFleet(t)
	p := f.process(true)
	text, k := f.make(domain.KeyRequester, "HOSPITAL-7")
	for name, c := range map[string]struct{ text, reason string }{
		"cut":                {text[:20], "it has 20 characters, and keys have 47; copy the whole key"},
		"empty":              {"", "it has 0 characters"},
		"with a stray sign":  {text[:46] + "!", "characters that no key has"},
		"of another service": {"ghp_" + text[4:], "characters that no key has"},
		"unknown":            {apikeys.NewText(), "it is unknown; copy the key again, or ask for a new one"},
		"in upper case":      {apikeys.Prefix + strings.ToUpper(text[4:]), "it is unknown"},
	} {
		_, err := p.Check(t.Context(), c.text)
		f.refused(c.text, err, c.reason)
		if p.Knows(c.text) {
			t.Errorf("%s: it is known", name)
		}
	}
	if _, err := p.Check(t.Context(), text); err != nil || !p.Knows(text) {
		t.Errorf("the key itself: %v", err)
	}
	f.clock.Advance(15 * 24 * time.Hour)
	if f.log.Len() > 0 {
		t.Errorf("logged %s", f.log.String())
	}
	f.clock.Advance(2 * 24 * time.Hour)
	for range 3 {
		if _, err := p.Check(t.Context(), text); err != nil {
			t.Error(err)
		}
	}
	if log := f.log.String(); strings.Count(log, "API key in use ends soon") != 1 || !strings.Contains(log, k.Name()) {
		t.Errorf("logged %s, want one line that %s ends soon", log, k.Name())
	}
	f.clock.Advance(15 * 24 * time.Hour)
	_, err := p.Check(t.Context(), text)
	f.refused(text, err, "it expired "+k.ExpiresAt.UTC().Format(time.RFC3339)+"; ask for a new one")
	f.refused(text, p.Recheck(t.Context(), k), "it expired ")
}

// F-INT-06: no log, error or trace shows a key, or a part of one.
func TestChecker_ShowsKeysNowhere(t *testing.T) {
	f := newFleet(t)
	spans := tracetest.NewSpanRecorder()
	tracing := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
	f.clients.Meter.TraceCalls(tracing)
	ctx, root := tracing.Tracer("test").Start(t.Context(), "request")
	text, k := f.make(domain.KeyViewer, "")
	guess := apikeys.NewText()
	shown := []string{k.Name()}
	for _, try := range []string{text, guess, text + "x", text[:40]} {
		_, err := f.process(true).Check(ctx, try)
		shown = append(shown, fmt.Sprint(err))
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err := f.process(true).Check(gone, text)
	shown = append(shown, fmt.Sprint(err), fmt.Sprint(f.process(false).Recheck(gone, k)))
	root.End()
	for _, span := range spans.Ended() {
		shown = append(shown, span.Name(), fmt.Sprint(span.Attributes(), span.Events(), span.Status()))
	}
	if len(spans.Ended()) < 3 {
		t.Errorf("only %d spans", len(spans.Ended()))
	}
	for _, line := range append(shown, f.log.String()) {
		for _, secret := range []string{text, guess} {
			if secret = strings.TrimPrefix(secret, apikeys.Prefix); strings.Contains(line, secret[:12]) || strings.Contains(line, secret[31:43]) {
				t.Errorf("shown: %s", line)
			}
		}
	}
}

// F-INT-06: a clock that is set back does not make what was read valid for longer.
func TestChecker_ReadsAgainAfterAClockSetBack(t *testing.T) {
	f := newFleet(t)
	p := f.process(false)
	text, k := f.make(domain.KeyViewer, "")
	if _, err := p.Check(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.RevokeKey(t.Context(), k.Hash, "ann", "stolen"); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(-time.Minute)
	_, err := p.Check(t.Context(), text)
	f.refused(text, err, "it was revoked ")
}

// F-INT-06: while Firestore does not answer, no key is refused for good, and none is believed.
func TestChecker_FailsClosedWithoutFirestore(t *testing.T) {
	f := newFleet(t)
	p := f.process(false)
	text, k := f.make(domain.KeyViewer, "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Check(gone, text)
	var invalid *apikeys.InvalidError
	if err == nil || errors.As(err, &invalid) {
		t.Errorf("error %v, want one that a later try may not meet", err)
	}
	if err := p.Recheck(gone, k); err == nil || errors.As(err, &invalid) {
		t.Errorf("a session: error %v", err)
	}
	if _, err := p.Check(t.Context(), text); err != nil {
		t.Error(err)
	}
}

func TestParseExpiry_TakesDaysDurationsAndTimes(t *testing.T) {
	now := time.Date(2026, 11, 27, 16, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"90d": "2027-02-25T16:00:00Z", "12h": "2026-11-28T04:00:00Z", "2027-01-31": "2027-01-31T00:00:00Z", "2027-01-31t12:00:00+01:00": "2027-01-31T11:00:00Z",
		"0d": "2026-11-27T16:00:00Z", "": "", "soon": "", "1.5d": "", "-3d": "", "99999d": "", "d": "", "2027-02-30": "",
	} {
		at, err := apikeys.ParseExpiry(text, now)
		if got := at.UTC().Format(time.RFC3339); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
