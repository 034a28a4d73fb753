package firestoreemu

import (
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// These RPCs are not implemented (E-RPC-03).

// ExecutePipeline is not implemented.
func (s *Server) ExecutePipeline(*pb.ExecutePipelineRequest, pb.Firestore_ExecutePipelineServer) error {
	return unimplemented("ExecutePipeline")
}

// Write is not implemented; it is the streaming form of Commit.
func (s *Server) Write(pb.Firestore_WriteServer) error { return unimplemented("Write") }
