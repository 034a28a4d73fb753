package devrun

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
)

// incidentDesk starts and ends the incidents of a run, as its settings, a person at the terminal
// or one at the console say. It is an httpapi.Incidents.
type incidentDesk struct {
	run *devRun
	ctx context.Context // of the run: an incident outlives the request that starts it

	mu      sync.Mutex
	active  map[string]*activeIncident // by name
	ended   bool                       // none can be started any more
	pending sync.WaitGroup             // of active
}

type activeIncident struct {
	httpapi.Incident
	end func()
}

func newIncidentDesk(ctx context.Context, run *devRun) *incidentDesk {
	return &incidentDesk{run: run, ctx: ctx, active: map[string]*activeIncident{}}
}

// List implements httpapi.Incidents.
func (d *incidentDesk) List() (list []httpapi.Incident) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range incidents {
		shown := httpapi.Incident{Name: i.name, Does: i.does}
		if a := d.active[i.name]; a != nil {
			shown = a.Incident
		}
		list = append(list, shown)
	}
	return list
}

// Start implements httpapi.Incidents. An incident that cannot begin yet is an errNotYet.
func (d *incidentDesk) Start(name, by string) (httpapi.Incident, error) {
	i := incidents[slices.Index(incidentNames(), name)]
	ctx, end := context.WithCancel(d.ctx)
	a, err := d.enter(i, end)
	if err != nil {
		end()
		return httpapi.Incident{}, err
	}
	b, err := i.begin(d.ctx, d.run)
	if err != nil {
		d.leave(name)
		end()
		return httpapi.Incident{}, err
	}
	now := a.Incident
	now.What, now.Console, now.Terminal = b.what, b.console, b.terminal
	if b.end != nil {
		until := d.run.clock.Now().Add(i.lasts)
		now.Until = &until
	}
	d.mu.Lock()
	a.Incident = now
	d.mu.Unlock()
	if by != "" {
		by = ", started by " + by
	}
	d.run.say("incident %s: %s%s\n  console: %s\n  terminal: %s", name, b.what, by, b.console, b.terminal)
	go func() {
		defer d.leave(name)
		defer end()
		if b.end == nil {
			return
		}
		d.run.wait(ctx, i.lasts)
		b.end()
		d.run.say("incident %s is over", name)
	}()
	return now, nil
}

// enter makes an incident active, unless it is already.
func (d *incidentDesk) enter(i incident, end func()) (*activeIncident, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ended:
		return nil, errors.New("the run is ending")
	case d.active[i.name] != nil:
		return nil, errors.New("it is under way; end it first")
	}
	a := &activeIncident{httpapi.Incident{Name: i.name, Does: i.does}, end}
	d.active[i.name] = a
	d.run.practised.Store(true)
	d.pending.Add(1)
	return a, nil
}

func (d *incidentDesk) leave(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.active, name)
	d.pending.Done()
}

// End implements httpapi.Incidents.
func (d *incidentDesk) End(name, _ string) (httpapi.Incident, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.active[name]
	if a == nil {
		return httpapi.Incident{}, errors.New("it is not under way; start it first")
	}
	a.end()
	return a.Incident, nil
}

// work starts the incidents of the settings at their times, and those that a person at the
// terminal chooses, until the run ends. Then it ends those under way.
func (d *incidentDesk) work() {
	var scheduled sync.WaitGroup
	for _, i := range d.run.cfg.GameDay.Incidents {
		scheduled.Go(func() { d.schedule(i) })
	}
	if d.run.cfg.In != nil {
		d.menu(d.run.cfg.In)
	}
	<-d.ctx.Done()
	scheduled.Wait()
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.pending.Wait()
}

func (d *incidentDesk) schedule(i Incident) {
	err := errNotYet
	for wait := i.At; errors.Is(err, errNotYet); wait = time.Second {
		if !d.run.wait(d.ctx, wait) {
			return
		}
		_, err = d.Start(i.Name, "")
	}
	d.complain(i.Name, err)
}

func (d *incidentDesk) complain(name string, err error) {
	if err != nil && d.ctx.Err() == nil {
		d.run.say("incident %s: %s", name, err)
	}
}

// menu starts an incident when its number is typed, and ends it when it is typed again.
func (d *incidentDesk) menu(in io.Reader) {
	lines := make(chan string)
	go func() { // a terminal cannot be told to stop reading, so this may end with the process
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-d.ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-d.ctx.Done():
			return
		case line, more := <-lines:
			if !more {
				return
			}
			d.run.console.entered()
			d.choose(strings.TrimSpace(line))
		}
	}
}

func (d *incidentDesk) choose(line string) {
	n, err := strconv.Atoi(line)
	if err != nil || n < 1 || n > len(incidents) {
		d.run.console.print(2, menuLines()...)
		return
	}
	name := incidents[n-1].name
	if _, err := d.End(name, ""); err == nil {
		return
	}
	_, err = d.Start(name, "")
	d.complain(name, err)
}

// menuLines are the menu for a person at the terminal.
func menuLines() []string {
	lines := []string{"Incidents: type a number and Enter to start one, and again to end it."}
	for n, i := range incidents {
		lines = append(lines, fmt.Sprintf("  %d  %-14s  %s", n+1, i.name, i.does))
	}
	return lines
}

// wait returns after d of simulated time; false means that ctx ended first.
func (run *devRun) wait(ctx context.Context, d time.Duration) bool {
	timer := run.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.Chan():
		return true
	}
}

// say prints what goes wrong on purpose, with the simulated time since the start, as the status
// shows it.
func (run *devRun) say(format string, args ...any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	lines[0] = fmt.Sprintf("%6s  %s", run.clock.Since(run.simBegan).Truncate(time.Second), lines[0])
	for i := range lines[1:] {
		lines[i+1] = "      " + lines[i+1]
	}
	run.console.print(8, lines...)
}
