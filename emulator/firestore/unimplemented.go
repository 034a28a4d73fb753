package firestoreemu

import (
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// The RPCs that this server refuses (E-RPC-03).

// ExecutePipeline is refused.
func (s *Server) ExecutePipeline(*pb.ExecutePipelineRequest, pb.Firestore_ExecutePipelineServer) error {
	return unimplemented("ExecutePipeline")
}

// Write, the streaming form of Commit, is refused.
func (s *Server) Write(pb.Firestore_WriteServer) error { return unimplemented("Write") }
