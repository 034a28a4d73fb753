package query

import "testing"

func TestScope_ContainsDocuments(t *testing.T) {
	const root = "projects/p/databases/(default)/documents"
	tests := map[string]struct {
		scope Scope
		name  string
		want  bool
	}{
		"own collection":                      {Scope{Parent: root, CollectionID: "a"}, root + "/a/1", true},
		"other collection":                    {Scope{Parent: root, CollectionID: "a"}, root + "/b/1", false},
		"collection's name only starts alike": {Scope{Parent: root, CollectionID: "a"}, root + "/ab/1", false},
		"subcollection of the same id":        {Scope{Parent: root, CollectionID: "a"}, root + "/a/1/a/2", false},
		"group takes any depth":               {Scope{Parent: root, CollectionID: "a", AllDescendants: true}, root + "/b/1/a/2", true},
		"group takes the top too":             {Scope{Parent: root, CollectionID: "a", AllDescendants: true}, root + "/a/2", true},
		"group of another id":                 {Scope{Parent: root, CollectionID: "b", AllDescendants: true}, root + "/b/1/a/2", false},
		"below a document":                    {Scope{Parent: root + "/b/1", CollectionID: "a"}, root + "/b/1/a/2", true},
		"below another document":              {Scope{Parent: root + "/b/1", CollectionID: "a"}, root + "/b/12/a/2", false},
		"the parent itself":                   {Scope{Parent: root + "/b/1", AllDescendants: true}, root + "/b/1", false},
		"every collection":                    {Scope{Parent: root}, root + "/b/1", true},
		"every collection, one level":         {Scope{Parent: root}, root + "/b/1/c/2", false},
		"another database":                    {Scope{Parent: root, AllDescendants: true}, "projects/p/databases/x/documents/a/1", false},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if got := tt.scope.Contains(tt.name); got != tt.want {
				t.Errorf("%+v contains %s: %t, want %t", tt.scope, tt.name, got, tt.want)
			}
		})
	}
}
