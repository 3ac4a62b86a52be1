package dedup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/internal/rule"
)

// Fingerprint is the hash of an operation's declared input together with the list of fields it covers (path rule 4).
type Fingerprint struct {
	Sum    []byte   // SHA-256
	Fields []string // dotted paths, "[]" for the elements of a list; sorted
}

// String gives the first half of the sum in hex: enough to tell two apart, safe to log.
func (f Fingerprint) String() string { return hex.EncodeToString(f.Sum[:min(len(f.Sum), 16)]) }

// Of makes the fingerprint of a JSON object over the given fields. A field that is absent counts as null.
func Of(doc []byte, fields []string) (Fingerprint, error) {
	_, f, err := Project(doc, fields)
	return f, err
}

// Project gives the canonical document that holds only the given fields of doc, and its fingerprint.
func Project(doc []byte, fields []string) (json.RawMessage, Fingerprint, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, Fingerprint{}, err
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, Fingerprint{}, fmt.Errorf("input is no JSON object")
	}
	out, _, f, err := NewProjection(fields).Of(root)
	return out, f, err
}

// Projection picks a fixed set of fields out of documents. Safe for concurrent use.
type Projection struct {
	root   *node
	fields []string
}

// NewProjection makes a projection on fields, dotted paths as in [Fingerprint].
func NewProjection(fields []string) *Projection {
	fields = slices.Clone(fields)
	slices.Sort(fields)
	p := &Projection{root: &node{}, fields: slices.Compact(fields)}
	for _, f := range p.fields {
		p.root.add(f)
	}
	return p
}

// Of gives the canonical document that holds only the fields, the same as a tree, and its fingerprint. doc is a tree whose numbers are
// [json.Number]; the numbers among the fields are brought to their canonical spelling in place, and the tree shares its parts.
func (p *Projection) Of(doc map[string]any) (json.RawMessage, map[string]any, Fingerprint, error) {
	picked, ok := p.root.pick(doc).(map[string]any)
	if !ok {
		picked = map[string]any{}
	}
	b := make([]byte, 0, 512)
	b, err := appendValue(b, picked, 0)
	if err != nil {
		return nil, nil, Fingerprint{}, err
	}
	sum := sha256.Sum256(b)
	return b, picked, Fingerprint{Sum: sum[:], Fields: p.fields}, nil
}

// Matches reports whether doc has this fingerprint over the fields that were stored with it. ours is the fingerprint of doc
// over the fields that this version of the worker declares; it is what a conflict text shows.
func (f Fingerprint) Matches(doc []byte, ours Fingerprint) (bool, error) {
	if slices.Equal(f.Fields, ours.Fields) || rule.Off(4) {
		return bytes.Equal(f.Sum, ours.Sum), nil
	}
	over, err := Of(doc, f.Fields)
	if err != nil {
		return false, err
	}
	return bytes.Equal(f.Sum, over.Sum), nil
}

// node is one step of the paths. What it picks keeps of a value what the paths name; objects that end up empty go, as absent equals
// null all the way up.
type node struct {
	leaf     bool
	elements *node
	members  map[string]*node
}

func (n *node) add(path string) {
	if path == "" {
		n.leaf = true
		return
	}
	if rest, ok := strings.CutPrefix(path, "[]"); ok {
		if n.elements == nil {
			n.elements = &node{}
		}
		n.elements.add(strings.TrimPrefix(rest, "."))
		return
	}
	end := strings.IndexAny(path, ".[")
	name, rest := path, ""
	if end >= 0 {
		name, rest = path[:end], strings.TrimPrefix(path[end:], ".")
	}
	if n.members == nil {
		n.members = map[string]*node{}
	}
	if n.members[name] == nil {
		n.members[name] = &node{}
	}
	n.members[name].add(rest)
}

func (n *node) pick(v any) any {
	if n.leaf {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		if n.members == nil {
			return nil
		}
		out := map[string]any{}
		for name, m := range n.members {
			if e := m.pick(v[name]); e != nil {
				out[name] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if n.elements == nil {
			return nil
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = n.elements.pick(e)
		}
		return out
	default:
		return v // another shape than declared: the input check speaks about that
	}
}
