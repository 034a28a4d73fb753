package query

import (
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// Scope is the set of collections a query reads.
type Scope struct {
	// Parent is the full name of the database's root (".../documents") or of the
	// document that contains the collections.
	Parent string
	// CollectionID is the id of the collections; empty: all collections.
	CollectionID string
	// AllDescendants includes the collections of all documents below Parent, besides
	// its own.
	AllDescendants bool
}

// Contains reports whether the document with the full name is in the scope.
func (s Scope) Contains(name string) bool {
	below, ok := strings.CutPrefix(name, s.Parent)
	if !ok || below == "" || below[0] != '/' {
		return false
	}
	below = below[1:]
	collection := below[:max(0, strings.LastIndexByte(below, '/'))] // relative path of the document's collection
	slash := strings.LastIndexByte(collection, '/')
	if slash >= 0 && !s.AllDescendants {
		return false
	}
	return s.CollectionID == "" || s.CollectionID == collection[slash+1:]
}

func compileScope(parent string, from []*pb.StructuredQuery_CollectionSelector) (Scope, error) {
	if _, err := value.ParseParent(parent); err != nil {
		return Scope{}, err
	}
	scope := Scope{Parent: parent}
	switch len(from) {
	case 0:
		return scope, nil
	case 1:
		scope.CollectionID = from[0].GetCollectionId()
		scope.AllDescendants = from[0].GetAllDescendants()
	default:
		return Scope{}, invalidf("StructuredQuery.from cannot have more than one collection selector.")
	}
	if scope.CollectionID == "" {
		return scope, nil
	}
	return scope, value.ValidateCollectionID(scope.CollectionID)
}
