package index

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// E-IX-01
func TestLoad_ReadsIndexesAndOverrides(t *testing.T) {
	s := mustLoad(t, `{
	  "indexes": [
	    {"collectionGroup": "c", "queryScope": "COLLECTION", "density": "SPARSE_ALL", "fields": [
	      {"fieldPath": "tags", "arrayConfig": "CONTAINS"}, {"fieldPath": "at", "order": "DESCENDING"}]},
	    {"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
	      {"fieldPath": "x", "order": "ASCENDING"}, {"fieldPath": "v", "vectorConfig": {"dimension": 3, "flat": {}}}]}
	  ],
	  "fieldOverrides": [
	    {"collectionGroup": "c", "fieldPath": "expireAt", "ttl": true, "indexes": []},
	    {"collectionGroup": "c", "fieldPath": "*", "indexes": [{"queryScope": "COLLECTION", "order": "ASCENDING"}]}
	  ]
	}`)
	if path, ok := s.TTLField("c"); !ok || path.String() != "expireAt" {
		t.Errorf("TTL field %s, %t", path, ok)
	}
	if _, ok := s.TTLField("d"); ok {
		t.Error("TTL field of a collection without one")
	}
	for filter, served := range map[string]bool{
		where("expireAt", "LESS_THAN"):   false,
		where("other", "EQUAL"):          true,
		where("other", "ARRAY_CONTAINS"): false,
	} {
		plan, _ := testQuery{filter: filter}.compile(t)
		if err := s.Check(plan, nil); (err == nil) != served {
			t.Errorf("%s: %v, want served %t", filter, err, served)
		}
	}
}

// E-IX-01
func TestLoad_RefusesInvalidFile(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"not JSON":          {`nonsense`, "firestore indexes: invalid character"},
		"text after":        {`{} {}`, "firestore indexes: unexpected text after the JSON object"},
		"unknown field":     {`{"index": []}`, `unknown field "index"`},
		"no collection":     {`{"indexes":[{"queryScope":"COLLECTION","fields":[]}]}`, `indexes[0]: collectionGroup "" is not a collection id`},
		"bad scope":         {`{"indexes":[{"collectionGroup":"c","queryScope":"X"}]}`, `indexes[0]: unknown queryScope "X"; use COLLECTION or COLLECTION_GROUP`},
		"no fields":         {`{"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[]}]}`, "indexes[0]: fields is empty"},
		"one field":         {indexes(declare("COLLECTION", "x")), "indexes[0]: fields has only one entry; declare single-field indexes under fieldOverrides"},
		"no order":          {`{"indexes":[{"collectionGroup":"c","fields":[{"fieldPath":"x"},{"fieldPath":"y","order":"ASCENDING"}]}]}`, "indexes[0]: fields[0]: fieldPath x: set either order"},
		"order and array":   {`{"indexes":[{"collectionGroup":"c","fields":[{"fieldPath":"x","order":"ASCENDING","arrayConfig":"CONTAINS"}]}]}`, "indexes[0]: fields[0]: fieldPath x: set either order"},
		"bad path":          {indexes(declare("COLLECTION", "a..b", "x")), `indexes[0]: fields[0]: fieldPath "a..b" is not a field path`},
		"override path":     {`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"a b","indexes":[]}]}`, `fieldOverrides[0]: fieldPath "a b" is not a field path`},
		"override scope":    {`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"a","indexes":[{"queryScope":"Y"}]}]}`, `fieldOverrides[0]: indexes[0]: unknown queryScope "Y"`},
		"override order":    {`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"a","indexes":[{"queryScope":"COLLECTION"}]}]}`, "fieldOverrides[0]: indexes[0]: fieldPath a: set either order"},
		"override twice":    {`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"a"},{"collectionGroup":"c","fieldPath":"a"}]}`, "fieldOverrides[1]: fieldPath a of collectionGroup c is overridden twice"},
		"override nameless": {`{"fieldOverrides":[{"fieldPath":"a"}]}`, `fieldOverrides[0]: collectionGroup "" is not a collection id`},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if _, err := Load([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(indexes(declare("COLLECTION", "x", "-q"))))
	f.Add([]byte(`{"fieldOverrides":[{"collectionGroup":"c","fieldPath":"*","ttl":true,"indexes":[{"queryScope":"COLLECTION_GROUP","arrayConfig":"CONTAINS"}]}]}`))
	plan, sums := testQuery{filter: and(where("x", "EQUAL"), where("y", "LESS_THAN")), sums: []string{"z"}}.compile(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Load(data)
		if err != nil {
			return
		}
		if err := s.Check(plan, sums); err != nil && status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
	})
}
