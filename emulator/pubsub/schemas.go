package pubsubemu

import (
	"context"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// errNoSchemas answers every schema call and every topic that names a schema.
var errNoSchemas = status.Error(codes.Unimplemented,
	"schemas are not supported by the embedded Pub/Sub server; validate messages in the publisher, or use the official emulator")

// schemas refuses the whole google.pubsub.v1.SchemaService.
type schemas struct {
	pubsubpb.UnimplementedSchemaServiceServer
}

func (schemas) CreateSchema(context.Context, *pubsubpb.CreateSchemaRequest) (*pubsubpb.Schema, error) {
	return nil, errNoSchemas
}

func (schemas) GetSchema(context.Context, *pubsubpb.GetSchemaRequest) (*pubsubpb.Schema, error) {
	return nil, errNoSchemas
}

func (schemas) ListSchemas(context.Context, *pubsubpb.ListSchemasRequest) (*pubsubpb.ListSchemasResponse, error) {
	return nil, errNoSchemas
}

func (schemas) ListSchemaRevisions(context.Context, *pubsubpb.ListSchemaRevisionsRequest) (*pubsubpb.ListSchemaRevisionsResponse, error) {
	return nil, errNoSchemas
}

func (schemas) CommitSchema(context.Context, *pubsubpb.CommitSchemaRequest) (*pubsubpb.Schema, error) {
	return nil, errNoSchemas
}

func (schemas) RollbackSchema(context.Context, *pubsubpb.RollbackSchemaRequest) (*pubsubpb.Schema, error) {
	return nil, errNoSchemas
}

func (schemas) DeleteSchemaRevision(context.Context, *pubsubpb.DeleteSchemaRevisionRequest) (*pubsubpb.Schema, error) {
	return nil, errNoSchemas
}

func (schemas) DeleteSchema(context.Context, *pubsubpb.DeleteSchemaRequest) (*emptypb.Empty, error) {
	return nil, errNoSchemas
}

func (schemas) ValidateSchema(context.Context, *pubsubpb.ValidateSchemaRequest) (*pubsubpb.ValidateSchemaResponse, error) {
	return nil, errNoSchemas
}

func (schemas) ValidateMessage(context.Context, *pubsubpb.ValidateMessageRequest) (*pubsubpb.ValidateMessageResponse, error) {
	return nil, errNoSchemas
}
