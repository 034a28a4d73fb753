package fleetmin

// prospect says how near the attempts to save one more vehicle have come: their insertions
// since the last saved one, and how many of these left few requests without a route, or at
// most twice as many.
type prospect struct{ insertions, few, some int }

// Few is one request in fewOf, at least fewLeast.
const (
	fewOf    = 50
	fewLeast = 4
)

// An attempt that succeeds has had few requests without a route for most of its time, so one
// such insertion in goodOneIn is a good sign. If none of hopelessAfter per request has come
// near, none will.
const (
	goodOneIn     = 20
	hopelessAfter = 40
)

// note counts an insertion that left requests unplaced.
func (p *prospect) note(unplaced, requests int) {
	few := max(fewLeast, requests/fewOf)
	p.insertions++
	if unplaced <= few {
		p.few++
	}
	if unplaced <= 2*few {
		p.some++
	}
}

func (p *prospect) add(q prospect) {
	p.insertions, p.few, p.some = p.insertions+q.insertions, p.few+q.few, p.some+q.some
}

func (p *prospect) good() bool { return p.few > 0 && p.few*goodOneIn >= p.insertions }

func (p *prospect) hopeless(requests int) bool {
	return p.some == 0 && p.insertions >= hopelessAfter*requests
}
