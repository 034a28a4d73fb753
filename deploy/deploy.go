package deploy

import (
	_ "embed"
	"regexp"
	"strings"
)

// FirestoreIndexes is firestore.indexes.json: the composite indexes, the
// fields exempted from indexing, and the TTL policies.
//
//go:embed firestore.indexes.json
var FirestoreIndexes []byte

// ShardedFirestoreIndexes is firestore.indexes.sharded.json, for fleets whose
// State Managers run with --sharded-indexes: it exempts the times of events and
// orders and indexes them behind the field shard.
//
//go:embed firestore.indexes.sharded.json
var ShardedFirestoreIndexes []byte

//go:embed terraform/firestore.tf
var firestoreModule string

var enterpriseIndex = regexp.MustCompile(`(?m)^    \[("\w+"(?:, "\w+")+)\],`)

// EnterpriseIndexes are the indexes that the Terraform module makes only in Enterprise edition, beside the
// composite ones of FirestoreIndexes: of each the collection, and then its fields.
func EnterpriseIndexes() [][]string {
	var indexes [][]string
	for _, m := range enterpriseIndex.FindAllStringSubmatch(firestoreModule, -1) {
		indexes = append(indexes, strings.Split(strings.ReplaceAll(m[1], `"`, ""), ", "))
	}
	return indexes
}
