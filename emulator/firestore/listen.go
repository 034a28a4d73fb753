package firestoreemu

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// Listen sends clients the documents that match their targets, and then every
// change. What it sends leads from one consistent state of all targets to the next;
// a NO_CHANGE with the read time and a resume token marks each.
func (s *Server) Listen(stream pb.Firestore_ListenServer) error {
	requests := make(chan *pb.ListenRequest)
	received := make(chan error, 1)
	go func() {
		for {
			req, err := stream.Recv()
			if err != nil {
				received <- err
				return
			}
			select {
			case requests <- req:
			case <-stream.Context().Done():
				received <- stream.Context().Err()
				return
			}
		}
	}()
	l := &listener{server: s, stream: stream, targets: map[int32]*target{}}
	defer l.close()
	for {
		var err error
		select {
		case req := <-requests:
			err = l.handle(req)
		case <-l.ready():
			err = l.catchUp()
		case err = <-received:
			if errors.Is(err, io.EOF) {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// listener is one Listen stream.
type listener struct {
	server  *Server
	stream  pb.Firestore_ListenServer
	db      *database // nil before the first request
	watcher *store.Watcher
	pending []store.Event // taken from the watcher, but later than what the targets show
	missed  int64         // time of the newest commit that is missing in pending, 0 if none is
	targets map[int32]*target
	lastID  int32 // last target id that the server chose
}

func (l *listener) close() {
	if l.watcher != nil {
		l.watcher.Close()
	}
}

// ready receives when commits are waiting, never before the first request.
func (l *listener) ready() <-chan struct{} {
	if l.watcher == nil {
		return nil
	}
	return l.watcher.Ready()
}

func (l *listener) handle(req *pb.ListenRequest) error {
	if l.db == nil {
		d, err := l.server.database(req.GetDatabase())
		if err != nil {
			return err
		}
		l.db, l.watcher = d, d.store.Watch()
	}
	if name := req.GetDatabase(); name != "" && name != l.db.name {
		return invalidf("a Listen stream serves one database: got %q after %q", name, l.db.name)
	}
	switch change := req.GetTargetChange().(type) {
	case *pb.ListenRequest_AddTarget:
		return l.add(change.AddTarget)
	case *pb.ListenRequest_RemoveTarget:
		if _, known := l.targets[change.RemoveTarget]; !known {
			return nil
		}
		delete(l.targets, change.RemoveTarget)
		return l.stream.Send(ofTarget(&pb.TargetChange{
			TargetChangeType: pb.TargetChange_REMOVE, TargetIds: []int32{change.RemoveTarget},
		}))
	}
	return invalidf("a Listen request must add or remove a target")
}

// add starts a target. It sends ADD, the present state or the changes since the
// resume point, CURRENT, and the mark of a consistent state.
func (l *listener) add(t *pb.Target) error {
	id := t.GetTargetId()
	if id == 0 {
		l.lastID++
		id = l.lastID
	}
	if _, taken := l.targets[id]; taken || id < 0 {
		return invalidf("target id %d is in use or negative; use another positive number", id)
	}
	added, err := l.newTarget(id, t)
	if err != nil {
		return l.stream.Send(ofTarget(&pb.TargetChange{
			TargetChangeType: pb.TargetChange_REMOVE, TargetIds: []int32{id}, Cause: status.Convert(err).Proto(),
		}))
	}
	now, responses := l.start(added, t)
	l.targets[id] = added
	ids := []int32{id}
	current := &pb.TargetChange{TargetChangeType: pb.TargetChange_CURRENT, TargetIds: ids}
	l.stamp(current, now)
	responses = append(responses, ofTarget(current), l.consistent(now))
	if t.GetOnce() {
		delete(l.targets, id)
		responses = append(responses, ofTarget(&pb.TargetChange{TargetChangeType: pb.TargetChange_REMOVE, TargetIds: ids}))
	}
	return l.send(responses)
}

// start brings the new target and all others to the present, and returns its time.
func (l *listener) start(added *target, t *pb.Target) (at int64, responses []*pb.ListenResponse) {
	now := l.db.store.Now()
	defer now.Close()
	responses = append(l.advance(now), ofTarget(&pb.TargetChange{
		TargetChangeType: pb.TargetChange_ADD, TargetIds: []int32{added.id},
	}))
	if !l.resume(added, t) {
		responses = append(responses, ofTarget(&pb.TargetChange{
			TargetChangeType: pb.TargetChange_RESET, TargetIds: []int32{added.id},
		}))
	}
	responses = append(responses, added.refresh(now)...)
	if t.GetResumeType() != nil {
		responses = append(responses, added.filter())
	}
	return now.Time, responses
}

// resume sets what the client already has. It reports false if that is no longer
// known; the client must then discard it.
func (l *listener) resume(t *target, req *pb.Target) bool {
	var from int64
	switch r := req.GetResumeType().(type) {
	case *pb.Target_ReadTime:
		from = store.Micros(r.ReadTime)
	case *pb.Target_ResumeToken:
		from = l.timeOf(r.ResumeToken)
	default:
		return true
	}
	then, err := l.db.store.At(from)
	if err != nil {
		return false
	}
	defer then.Close()
	t.refresh(then)
	return true
}

// catchUp brings all targets to the newest commit.
func (l *listener) catchUp() error {
	now := l.db.store.Now()
	responses := l.advance(now)
	now.Close() // before sending: a slow client must not keep old versions in memory
	if len(responses) == 0 {
		return nil
	}
	return l.send(append(responses, l.consistent(now.Time)))
}

// advance brings all targets to a snapshot and returns the messages to send.
func (l *listener) advance(to *store.Snapshot) []*pb.ListenResponse {
	events, missed := l.watcher.Take()
	l.pending = append(l.pending, events...)
	l.missed = max(l.missed, missed)
	due := 0
	for due < len(l.pending) && l.pending[due].Time <= to.Time {
		due++
	}
	changes := l.pending[:due]
	l.pending = slices.Clone(l.pending[due:])
	var responses []*pb.ListenResponse
	for _, t := range l.targets {
		if l.missed != 0 {
			responses = append(responses, t.refresh(to)...)
		} else {
			responses = append(responses, t.follow(changes, to)...)
		}
	}
	if l.missed <= to.Time {
		l.missed = 0
	}
	return responses
}

// consistent marks that all targets have reached the same time.
func (l *listener) consistent(at int64) *pb.ListenResponse {
	change := &pb.TargetChange{TargetChangeType: pb.TargetChange_NO_CHANGE}
	l.stamp(change, at)
	return ofTarget(change)
}

// stamp adds the read time and the token to resume from there.
func (l *listener) stamp(change *pb.TargetChange, at int64) {
	change.ReadTime = store.Timestamp(at)
	token := binary.BigEndian.AppendUint64(nil, l.server.epoch)
	change.ResumeToken = binary.BigEndian.AppendUint64(token, uint64(at))
}

// timeOf returns the time to resume from with a token, or 0 if the token is from
// before a restart. The server saves the times of commits only. If the clock was
// set back, a time sent before the restart can come again after other commits.
func (l *listener) timeOf(token []byte) int64 {
	if len(token) != 16 || binary.BigEndian.Uint64(token) != l.server.epoch {
		return 0
	}
	return int64(binary.BigEndian.Uint64(token[8:]))
}

func ofTarget(change *pb.TargetChange) *pb.ListenResponse {
	return &pb.ListenResponse{ResponseType: &pb.ListenResponse_TargetChange{TargetChange: change}}
}

func (l *listener) send(responses []*pb.ListenResponse) error {
	for _, r := range responses {
		if err := l.stream.Send(r); err != nil {
			return err
		}
	}
	return nil
}
