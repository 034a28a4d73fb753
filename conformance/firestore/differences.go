package conformance

import "google.golang.org/grpc/codes"

// Difference is a deliberate difference between the answers of the embedded server and
// of Google's emulator.
type Difference struct {
	// Name identifies the row and its test.
	Name string
	// Official and Embedded are the codes of the answers. If both are OK, the contents
	// of the answers differ.
	Official, Embedded codes.Code
	// What is the difference, and Reason why the embedded server keeps it. Requirement
	// ids are those of docs/requirements.md.
	What, Reason string
}

// Deliberate lists all known differences. The random sequences avoid them. A test
// checks each row against both servers, so that it goes when its cause does.
var Deliberate = []Difference{
	{
		Name: "time of a delete", Official: codes.OK, Embedded: codes.OK,
		What:   "a document is deleted and written in one commit: officially the delete has an update time, and the write may have none",
		Reason: "E-WR-05: the result of a delete has no update time, that of a write has the commit time",
	},
	{
		Name: "preconditions between writes to one document", Official: codes.InvalidArgument, Embedded: codes.FailedPrecondition,
		What:   "a commit writes a document twice, the second time with an update time as precondition: the official emulator cannot combine the writes",
		Reason: "E-WR-03: a precondition sees the earlier writes of its commit, and the first one changes the time",
	},
	{
		Name: "base version of the future", Official: codes.InvalidArgument, Embedded: codes.FailedPrecondition,
		What:   "a precondition with an update time later than the stored one",
		Reason: "E-WR-03: any other update time fails the precondition",
	},
	{
		Name: "base version of a missing document", Official: codes.NotFound, Embedded: codes.FailedPrecondition,
		What:   "writing a deleted document, with the time of its deletion as precondition",
		Reason: "E-WR-03: a missing document fails the precondition",
	},
	{
		Name: "base version of a deletion", Official: codes.OK, Embedded: codes.FailedPrecondition,
		What:   "deleting a deleted document, with the time of its deletion as precondition",
		Reason: "E-WR-03: a missing document fails the precondition",
	},
	{
		Name: "arrays inside arrays by transform", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a union of an array with elements that are arrays or vectors",
		Reason: "E-ER-01: arrays cannot contain arrays",
	},
	{
		Name: "masks beside missing documents", Official: codes.OK, Embedded: codes.OK,
		What:   "listing with show_missing: the official emulator ignores the mask",
		Reason: "E-RPC-01: fields of a request are not ignored",
	},
	{
		Name: "times of missing documents", Official: codes.OK, Embedded: codes.OK,
		What:   "listing with show_missing: officially a deleted document with documents below it has an update time",
		Reason: "by the protocol, missing documents have neither fields nor times",
	},
	{
		Name: "four underscores as a field", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a field named ____",
		Reason: "E-ER-01: field names matching __.*__ are reserved",
	},
	{
		Name: "writing the name", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a transform of __name__: officially it creates a field __key__",
		Reason: "E-ER-01: __name__ is reserved",
	},
	{
		Name: "reading long ids", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "reading a document whose id has more than 1500 bytes",
		Reason: "E-ER-01: refused in reads too, as in the cloud",
	},
	{
		Name: "names over 6 KiB", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "writing a document with such a name",
		Reason: "E-ER-01: the documented limit",
	},
	{
		Name: "field paths of 1500 bytes", Official: codes.InvalidArgument, Embedded: codes.OK,
		What:   "ordering by a field with the longest legal name",
		Reason: "E-ER-01: more than 1500 bytes are too long",
	},
	{
		Name: "long paths in transforms", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a transform of a path of more than 20 segments or 1500 bytes; the official emulator refuses such paths elsewhere",
		Reason: "E-ER-01: the same rule for all field paths",
	},
	{
		Name: "501 transforms", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "more than 500 field transforms of a document in one commit, here in two writes",
		Reason: "E-WR-07: the documented limit",
	},
	{
		Name: "foreign database", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a commit to one database that writes a document of another",
		Reason: "E-ER-01: a request concerns one database",
	},
	{
		Name: "descending names", Official: codes.FailedPrecondition, Embedded: codes.OK,
		What:   "ordering a collection by __name__ descending",
		Reason: "the cloud allows it with a declared index, so the index check refuses it (E-IX-06)",
	},
	{
		Name: "empty projection", Official: codes.OK, Embedded: codes.OK,
		What:   "a projection without fields: officially only the name",
		Reason: "by the protocol, an empty projection means all fields",
	},
	{
		Name: "disjunctions written twice", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a filter with more than 30 disjunctions as written, but fewer without repetitions",
		Reason: "E-QY-05: disjunctions are counted after expansion, and repeating one has no use",
	},
	{
		Name: "six aggregations", Official: codes.Unknown, Embedded: codes.InvalidArgument,
		What:   "more than five aggregations: the official emulator fails with an internal error",
		Reason: "E-QY-07",
	},
	{
		Name: "four underscores as an alias", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "an aggregation named ____",
		Reason: "E-ER-01: an alias is a field name",
	},
	{
		Name: "BSON values", Official: codes.InvalidArgument, Embedded: codes.Unimplemented,
		What:   "a map that encodes a BSON value",
		Reason: "E-RPC-03",
	},
	{
		Name: "find_nearest", Official: codes.OK, Embedded: codes.Unimplemented,
		What:   "a vector search",
		Reason: "E-RPC-03",
	},
}
