package fleetmin

// prospect is how near the attempts to save one more vehicle have come since the
// last was saved: their insertions, those that left few requests unplaced, and
// those that left twice as many at most.
type prospect struct{ insertions, few, some int }

// Few is one request in fewOf, at least fewLeast.
const (
	fewOf    = 50
	fewLeast = 4
)

// An attempt that succeeds has had few unplaced for most of its time: so one in
// goodOneIn insertions with few is a promise. Where none in hopelessAfter per
// request has come near, none will.
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
