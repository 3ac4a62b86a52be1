package dedup

import (
	"encoding/json"
	"testing"
)

// TestProjection: picking from a tree gives what picking from the text gives, whatever the order of the fields, and brings numbers to
// one spelling in the tree too.
func TestProjection(t *testing.T) {
	t.Parallel()
	fields := []string{"b.y", "a", "list[].n", "b.y", "gone.x"}
	for _, doc := range []string{
		`{"a":1.50,"b":{"y":[1e2,{"z":null,"w":-0.0}],"q":1},"list":[{"n":1.0,"m":2},{"m":3},null],"other":9}`,
		`{"a":"é\u0007\n\"","b":null,"list":[]}`, `{}`, `{"b":{"q":1}}`, `{"a":12345678901234567890123}`,
	} {
		want, sum, err := Project([]byte(doc), fields)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		v, err := parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		got, tree, f, err := NewProjection(fields).Of(v.(map[string]any)) //nolint:forcetypeassert // all are objects
		if err != nil || string(got) != string(want) || f.String() != sum.String() {
			t.Errorf("%s: picked %s, %v; want %s", doc, got, err, want)
		}
		a, _ := json.Marshal(tree) //nolint:errchkjson // a tree of JSON
		if c, _ := Canonical(a); string(c) != string(want) {
			t.Errorf("%s: the tree is %s, want %s but for nulls", doc, a, want)
		}
	}
}
