package firestoretx

import (
	"hash/fnv"
	"slices"

	"cloud.google.com/go/firestore"
)

// Shards is how many values the field shard has: as many as one query takes, so that the query is the
// same for every fleet. Each takes 500 writes a second.
const Shards = maxIn

// shardOf spreads ids evenly; an entity's documents stay in one shard.
func shardOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return int(h.Sum32() % Shards)
}

// ofShards is a query of events or orders by their times; where those are sharded, one of all shards.
func (s *Store) ofShards(q firestore.Query) firestore.Query {
	if s.sharded {
		return inShards(q, Shards)[0]
	}
	return q
}

// ofSome is ofShards for a query that has other alternatives. Firestore takes maxIn of them in all.
func (s *Store) ofSome(q firestore.Query, alternatives int) []firestore.Query {
	if s.sharded {
		return inShards(q, maxIn/alternatives)
	}
	return []firestore.Query{q}
}

// inShards is a query for each group of shards.
func inShards(q firestore.Query, group int) (queries []firestore.Query) {
	all := make([]int, Shards)
	for i := range all {
		all[i] = i
	}
	for some := range slices.Chunk(all, group) {
		queries = append(queries, q.Where(shard, "in", some))
	}
	return queries
}
