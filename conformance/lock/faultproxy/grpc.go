package faultproxy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const maxMessageBytes = 16 << 20

// Proxy forwards gRPC requests to one server. Its methods are safe for concurrent use.
type Proxy struct {
	core[Fault]
	server   *grpc.Server
	upstream *grpc.ClientConn
	stopped  chan struct{}

	// Under core's mutex.
	more     *sync.Cond // broadcast with every call, and with the last one's end
	calls    map[string]int
	underWay int // requests received and not answered
	skew     time.Duration
	clear    chan struct{} // closed by Clear
}

// settleMethod is the proxy's own RPC; see Settle.
const settleMethod = "/dronefleet.FaultProxy/Settle"

// Rule is what happens to matching requests.
type Rule = RuleFor[Fault]

// Fault is what happens to a request. The zero value lets it pass.
type Fault struct {
	Before    codes.Code    // answer this instead of forwarding
	After     codes.Code    // forward, then answer this instead of the reply
	Text      string        // of Before and After
	BlackHole bool          // swallow the request: no answer until the client goes away
	HoldReply bool          // forward, then give no answer until the client goes away
	Delay     time.Duration // between the server's answer and the client
}

// Start begins to forward to the server at an address.
func Start(upstream string) (*Proxy, error) {
	conn, err := grpc.NewClient(upstream,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.ForceCodec(rawCodec{})))
	if err != nil {
		return nil, fmt.Errorf("faultproxy: dial %s: %w", upstream, err)
	}
	p := &Proxy{upstream: conn, calls: make(map[string]int), stopped: make(chan struct{}), clear: make(chan struct{})}
	if err := p.listen(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	p.more = sync.NewCond(&p.mu)
	p.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.ForceServerCodec(rawCodec{}),
		grpc.InTapHandle(p.receive),
		grpc.UnknownServiceHandler(p.handle))
	go func() {
		defer close(p.stopped)
		_ = p.server.Serve(p.listener) // ends with Close
	}()
	return p, nil
}

// Close breaks all connections.
func (p *Proxy) Close() error {
	p.server.Stop()
	<-p.stopped
	return p.upstream.Close()
}

// LoseSome loses a share of the commits, loses the same share of their replies, and delays
// as many, drawn from a seed.
func (p *Proxy) LoseSome(seed uint64, share float64) {
	p.addRandom("Commit", seed, share, Fault{Before: codes.Unavailable}, Fault{After: codes.Unavailable}, Fault{Delay: 30 * time.Millisecond})
}

// Clear drops all rules, counts and the skew, and refuses the requests that were swallowed.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.skew = nil, 0
	clear(p.calls)
	close(p.clear)
	p.clear = make(chan struct{})
}

// Skew shifts the times of all further answers: positive is a server ahead.
func (p *Proxy) Skew(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skew = d
}

// Calls returns how often each RPC was requested since the last Clear.
func (p *Proxy) Calls() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}

// WaitCalls waits until an RPC has been requested n times since the last Clear.
func (p *Proxy) WaitCalls(rpc string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.calls[rpc] < n {
		p.more.Wait()
	}
}

// receive counts a request as under way. It runs in the order of arrival, before any request
// of the connection is handled.
func (p *Proxy) receive(ctx context.Context, info *tap.Info) (context.Context, error) {
	if info.FullMethodName != settleMethod {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay++
	}
	return ctx, nil
}

func (p *Proxy) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.underWay--; p.underWay == 0 {
		p.more.Broadcast()
	}
}

// Settle returns when no request sent through conn, a connection to the proxy, can still take
// effect. It sends a request of its own, which is answered after all others.
func (p *Proxy) Settle(ctx context.Context, conn *grpc.ClientConn) error {
	var nothing []byte
	return conn.Invoke(ctx, settleMethod, &nothing, &nothing, grpc.ForceCodec(rawCodec{}))
}

// settle answers Settle.
func (p *Proxy) settle(in grpc.ServerStream) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer context.AfterFunc(in.Context(), p.more.Broadcast)()
	for p.underWay > 0 && in.Context().Err() == nil {
		p.more.Wait()
	}
	if err := in.Context().Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	var nothing []byte
	return in.SendMsg(&nothing)
}

// count counts a request. The caller holds mu.
func (p *Proxy) count(rpc string) {
	p.calls[rpc]++
	p.more.Broadcast()
}

// admit counts a request and finds what happens to it.
func (p *Proxy) admit(rpc string, request []byte) (f Fault, hook func(), skew time.Duration, cleared <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(rpc)
	f, hook = p.judge(rpc, request)
	return f, hook, p.skew, p.clear
}

// handle forwards one RPC.
func (p *Proxy) handle(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	if method == settleMethod {
		return p.settle(in)
	}
	defer p.answered()
	rpc := path.Base(method)
	if rpc == "Listen" {
		return p.pass(in, method)
	}
	var request []byte
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	fault, hook, skew, cleared := p.admit(rpc, request)
	if hook == nil {
		hook = func() {}
	}
	if !fault.HoldReply {
		hook()
	}
	switch {
	case fault.BlackHole:
		return silence(in.Context(), cleared)
	case fault.Before != codes.OK:
		return status.Error(fault.Before, fault.Text)
	}
	if skew != 0 && rpc == "Commit" {
		request = unshiftPreconditions(request, skew)
	}
	replies, err := p.forward(in.Context(), method, request)
	switch {
	case fault.HoldReply:
		hook()
		return silence(in.Context(), cleared)
	case fault.After != codes.OK && err == nil:
		return status.Error(fault.After, fault.Text)
	}
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-in.Context().Done():
		}
	}
	p.mu.Lock()
	skew = p.skew // a hook may have set the clock
	p.mu.Unlock()
	for _, reply := range replies {
		if skew != 0 {
			reply = shift(rpc, reply, skew)
		}
		if err := in.SendMsg(&reply); err != nil {
			return err
		}
	}
	return err
}

// silence gives no answer until the client has gone away or Clear is called.
func silence(ctx context.Context, cleared <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-cleared:
		return status.Error(codes.PermissionDenied, "faultproxy: cleared")
	}
}

// forward sends one request and collects the replies. The request runs to its
// end even if the client goes away, as on a real network.
func (p *Proxy) forward(ctx context.Context, method string, request []byte) ([][]byte, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	out := metadata.NewOutgoingContext(context.WithoutCancel(ctx), md)
	out, cancel := context.WithTimeout(out, time.Minute)
	defer cancel()
	stream, err := p.upstream.NewStream(out, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&request); err != nil && err != io.EOF {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	var replies [][]byte
	for {
		var reply []byte
		switch err := stream.RecvMsg(&reply); err {
		case nil:
			replies = append(replies, reply)
		case io.EOF:
			return replies, nil
		default:
			return replies, err
		}
	}
}

// pass connects a two-way stream and lets everything through.
func (p *Proxy) pass(in grpc.ServerStream, method string) error {
	p.mu.Lock()
	p.count(path.Base(method))
	p.mu.Unlock()
	md, _ := metadata.FromIncomingContext(in.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(in.Context(), md))
	defer cancel()
	out, err := p.upstream.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		defer func() { _ = out.CloseSend() }()
		for {
			var request []byte
			if in.RecvMsg(&request) != nil || out.SendMsg(&request) != nil {
				return
			}
		}
	}()
	for {
		var reply []byte
		if err := out.RecvMsg(&reply); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := in.SendMsg(&reply); err != nil {
			return err
		}
	}
}

// shift moves all times of the server in a reply.
func shift(rpc string, reply []byte, by time.Duration) []byte {
	switch rpc {
	case "Commit":
		return edit(reply, &pb.CommitResponse{}, func(r *pb.CommitResponse) {
			move(r.CommitTime, by)
			for _, w := range r.WriteResults {
				move(w.UpdateTime, by)
			}
		})
	case "BatchGetDocuments":
		return edit(reply, &pb.BatchGetDocumentsResponse{}, func(r *pb.BatchGetDocumentsResponse) {
			move(r.ReadTime, by)
			moveDocument(r.GetFound(), by)
		})
	case "RunQuery":
		return edit(reply, &pb.RunQueryResponse{}, func(r *pb.RunQueryResponse) {
			move(r.ReadTime, by)
			moveDocument(r.Document, by)
		})
	}
	return reply
}

// unshiftPreconditions turns versions the client saw back into the server's.
func unshiftPreconditions(request []byte, by time.Duration) []byte {
	return edit(request, &pb.CommitRequest{}, func(r *pb.CommitRequest) {
		for _, w := range r.Writes {
			if v, ok := w.GetCurrentDocument().GetConditionType().(*pb.Precondition_UpdateTime); ok {
				move(v.UpdateTime, -by)
			}
		}
	})
}

func edit[M proto.Message](raw []byte, m M, change func(M)) []byte {
	if proto.Unmarshal(raw, m) != nil {
		return raw
	}
	change(m)
	edited, err := proto.Marshal(m)
	if err != nil {
		return raw
	}
	return edited
}

func moveDocument(d *pb.Document, by time.Duration) {
	if d != nil {
		move(d.UpdateTime, by)
		move(d.CreateTime, by)
	}
}

func move(t *timestamppb.Timestamp, by time.Duration) {
	if t == nil {
		return
	}
	moved := timestamppb.New(t.AsTime().Add(by))
	t.Seconds, t.Nanos = moved.Seconds, moved.Nanos
}

// rawCodec passes messages as bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("faultproxy: cannot marshal %T", v)
	}
	return *b, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("faultproxy: cannot unmarshal into %T", v)
	}
	*b = append([]byte(nil), data...)
	return nil
}
