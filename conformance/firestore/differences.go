package conformance

import "google.golang.org/grpc/codes"

// Difference is one point in which the embedded server answers other than
// Google's emulator, on purpose.
type Difference struct {
	// Name identifies the row; its test bears it.
	Name string
	// Official and Embedded are the codes of the answers. Where both are OK the
	// answers differ in content.
	Official, Embedded codes.Code
	// What happens, and why the embedded server does not follow. Requirement ids
	// are those of the embedded server's contract.
	What, Reason string
}

// Deliberate lists every known difference. The random sequences steer around
// these, and a test holds each row against both servers, so that a row cannot
// outlive its cause.
var Deliberate = []Difference{
	{
		Name: "time of a delete", Official: codes.OK, Embedded: codes.OK,
		What:   "a document deleted and written in one commit: the official results give the delete a time and may give none to the write",
		Reason: "E-WR-05: a delete's result has no update time; a write's has the commit's",
	},
	{
		Name: "preconditions between writes to one document", Official: codes.InvalidArgument, Embedded: codes.FailedPrecondition,
		What:   "two writes to one document in a commit, the second with an update time as precondition: the official emulator cannot collapse them",
		Reason: "E-WR-03: a precondition sees the earlier writes of its commit, and the first one changed the time",
	},
	{
		Name: "base version of the future", Official: codes.InvalidArgument, Embedded: codes.FailedPrecondition,
		What:   "an update time later than the stored one as precondition",
		Reason: "E-WR-03: any other update time fails the precondition",
	},
	{
		Name: "base version of a missing document", Official: codes.NotFound, Embedded: codes.FailedPrecondition,
		What:   "writing a deleted document with the time of its deletion as precondition",
		Reason: "E-WR-03: a missing document fails the precondition",
	},
	{
		Name: "base version of a deletion", Official: codes.OK, Embedded: codes.FailedPrecondition,
		What:   "deleting a deleted document with the time of its deletion as precondition",
		Reason: "E-WR-03: a missing document fails the precondition",
	},
	{
		Name: "arrays inside arrays by transform", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "array union with an array or a vector as element",
		Reason: "E-ER-01: no array holds an array, by whichever way",
	},
	{
		Name: "masks beside missing documents", Official: codes.OK, Embedded: codes.OK,
		What:   "listing with show_missing: the official emulator ignores the mask",
		Reason: "E-RPC-01: never ignore a field that was set",
	},
	{
		Name: "times of missing documents", Official: codes.OK, Embedded: codes.OK,
		What:   "listing with show_missing: a deleted document with documents below it bears an update time officially",
		Reason: "the protocol: missing documents have neither fields nor times",
	},
	{
		Name: "four underscores as a field", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a field named ____",
		Reason: "E-ER-01: field names matching __.*__ are reserved",
	},
	{
		Name: "writing the name", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a transform of __name__: officially it makes a field __key__",
		Reason: "E-ER-01: __name__ is reserved",
	},
	{
		Name: "reading long ids", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "reading a document whose id has more than 1500 bytes",
		Reason: "E-ER-01: refused in reads too, as the cloud does",
	},
	{
		Name: "names over 6 KiB", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "writing a document with such a name",
		Reason: "E-ER-01: the documented limit",
	},
	{
		Name: "field paths of 1500 bytes", Official: codes.InvalidArgument, Embedded: codes.OK,
		What:   "ordering by a field whose name has the longest legal length",
		Reason: "E-ER-01: only over 1500 bytes is too long",
	},
	{
		Name: "long paths in transforms", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a transform of a path of more than 20 segments or 1500 bytes; the official emulator refuses such paths elsewhere",
		Reason: "E-ER-01: one rule for every field path",
	},
	{
		Name: "501 transforms", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "more than 500 field transforms on one document in one commit, here in two writes",
		Reason: "E-WR-07: the documented limit",
	},
	{
		Name: "foreign database", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a commit to one database that writes a document of another",
		Reason: "E-ER-01: a request stays in its database",
	},
	{
		Name: "descending names", Official: codes.FailedPrecondition, Embedded: codes.OK,
		What:   "ordering by __name__ descending",
		Reason: "the cloud does it with a declared index; E-IX-06 leaves the refusal to the index checker",
	},
	{
		Name: "empty projection", Official: codes.OK, Embedded: codes.OK,
		What:   "a projection without fields: officially the name alone",
		Reason: "the protocol: an empty projection returns every field",
	},
	{
		Name: "disjunctions written twice", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "a filter over 30 disjunctions as written, fewer without repetitions",
		Reason: "E-QY-05 counts after expansion; repeating a disjunction gains nothing",
	},
	{
		Name: "six aggregations", Official: codes.Unknown, Embedded: codes.InvalidArgument,
		What:   "more than five aggregations crash the official emulator's request",
		Reason: "E-QY-07",
	},
	{
		Name: "four underscores as an alias", Official: codes.OK, Embedded: codes.InvalidArgument,
		What:   "an aggregation named ____",
		Reason: "E-ER-01: an alias is a field name",
	},
	{
		Name: "BSON values", Official: codes.InvalidArgument, Embedded: codes.Unimplemented,
		What:   "a map that stands for a BSON value",
		Reason: "E-RPC-03",
	},
	{
		Name: "find_nearest", Official: codes.OK, Embedded: codes.Unimplemented,
		What:   "a vector search",
		Reason: "E-RPC-03",
	},
}
