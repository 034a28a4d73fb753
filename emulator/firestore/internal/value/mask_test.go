package value

import (
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// E-WR-02
func TestApplyMask_SetsAndDeletes(t *testing.T) {
	stored := fields{"a": integer(1), "m": mapValue(fields{"x": integer(1), "y": integer(2)})}
	update := fields{"a": integer(9), "m": mapValue(fields{"x": integer(9)}), "b": integer(9)}
	tests := map[string]struct {
		stored fields
		paths  []FieldPath
		want   fields
	}{
		"no mask replaces":                       {stored, nil, update},
		"empty mask changes nothing":             {stored, []FieldPath{}, stored},
		"empty mask on a missing document":       {nil, []FieldPath{}, nil},
		"present path is set":                    {stored, []FieldPath{{"a"}}, fields{"a": integer(9), "m": stored["m"]}},
		"absent path is deleted":                 {stored, []FieldPath{{"a"}, {"m", "y"}}, fields{"a": integer(9), "m": mapValue(fields{"x": integer(1)})}},
		"whole map is replaced":                  {stored, []FieldPath{{"m"}}, fields{"a": integer(1), "m": mapValue(fields{"x": integer(9)})}},
		"path inside a map leaves its neighbour": {stored, []FieldPath{{"m", "x"}}, fields{"a": integer(1), "m": mapValue(fields{"x": integer(9), "y": integer(2)})}},
		"absent in both":                         {stored, []FieldPath{{"z"}, {"z", "z"}}, stored},
		"fields outside the mask are ignored":    {nil, []FieldPath{{"b"}}, fields{"b": integer(9)}},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if got := ApplyMask(tt.stored, update, tt.paths); !EqualFields(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestParseMask_DistinguishesEmptyFromNil(t *testing.T) {
	if paths, err := ParseMask(nil); paths != nil || err != nil {
		t.Errorf("no mask: %v, %v", paths, err)
	}
	if paths, err := ParseMask(&pb.DocumentMask{}); paths == nil || len(paths) != 0 || err != nil {
		t.Errorf("empty mask: %v, %v", paths, err)
	}
	for _, path := range []string{"a..b", NameField, "__x__"} {
		if _, err := ParseMask(&pb.DocumentMask{FieldPaths: []string{path}}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", path, err)
		}
	}
	if paths, err := ParseReadMask(&pb.DocumentMask{FieldPaths: []string{NameField}}); err != nil || !paths[0].IsName() {
		t.Errorf("name in a read mask: %v, %v", paths, err)
	}
}

// E-QY-06
func TestProject_KeepsOnlyPaths(t *testing.T) {
	doc := fields{"a": integer(1), "m": mapValue(fields{"x": integer(1), "y": integer(2)})}
	tests := map[string]struct {
		paths []FieldPath
		want  fields
	}{
		"nil is everything":          {nil, doc},
		"empty is nothing":           {[]FieldPath{}, nil},
		"name is not a field":        {[]FieldPath{{NameField}}, nil},
		"absent paths are left out":  {[]FieldPath{{"z"}, {"a", "z"}, {"a"}}, fields{"a": integer(1)}},
		"inside a map":               {[]FieldPath{{"m", "y"}}, fields{"m": mapValue(fields{"y": integer(2)})}},
		"two fields inside one map":  {[]FieldPath{{"m", "y"}, {"m", "x"}}, fields{"m": doc["m"]}},
		"a map and a field inside":   {[]FieldPath{{"m"}, {"m", "x"}}, fields{"m": doc["m"]}},
		"the same path named twice":  {[]FieldPath{{"a"}, {"a"}}, fields{"a": integer(1)}},
		"nothing inside a bare map":  {[]FieldPath{{"m", "z"}}, nil},
		"a field inside, then a map": {[]FieldPath{{"m", "x"}, {"m"}}, fields{"m": doc["m"]}},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			if got := Project(doc, tt.paths); !EqualFields(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
