package audit

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/events/seal"
)

// Head is the end of a chain. Keep it where whoever can write to the database cannot.
type Head struct {
	Chain string `json:"chain"`
	Link  int64  `json:"link"`
	Hash  string `json:"hash"`
}

// String gives "chain:link:hash", which [ParseHead] reads.
func (h Head) String() string { return fmt.Sprintf("%s:%d:%s", h.Chain, h.Link, h.Hash) }

// ParseHead reads "chain:link:hash".
func ParseHead(text string) (Head, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return Head{}, fmt.Errorf("head %q, want chain:link:hash", text)
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if raw, bad := hex.DecodeString(parts[2]); err != nil || bad != nil || n < 1 || len(raw) != 32 || parts[0] == "" {
		return Head{}, fmt.Errorf("head %q, want chain:link:hash with a link from 1 and 64 hexadecimal digits", text)
	}
	return Head{Chain: parts[0], Link: n, Hash: parts[2]}, nil
}

// Fault is the first link of a chain that is not as it should be.
type Fault struct {
	Chain   string `json:"chain"` // "" for class compliance
	Link    int64  `json:"link"`
	EventID string `json:"event_id"` // "" when the link is missing
	What    string `json:"what"`
}

// String says it in one line.
func (f Fault) String() string {
	where := "compliance"
	if f.Chain != "" {
		where = fmt.Sprintf("chain %s, link %d", f.Chain, f.Link)
	}
	if f.EventID != "" {
		where += ", message " + f.EventID
	}
	return where + ": " + f.What
}

// Report is what a verification found.
type Report struct {
	Rows      int64   `json:"rows"`
	Unchecked int64   `json:"unchecked"` // bodies that were not compared, because the key of their encryption is missing
	Heads     []Head  `json:"heads"`     // of every chain, by name
	Faults    []Fault `json:"faults"`    // the first of each chain, by name
}

// OK reports whether everything is as it should be.
func (r Report) OK() bool { return len(r.Faults) == 0 }

// verifier takes the rows of each chain in the order of their links.
type verifier struct {
	keys   seal.Keys
	known  []Head
	anyway bool // a chain may begin after link 1: what was before is elsewhere
	rows   int64
	blind  int64
	chains map[string]*chain
	faults map[string]Fault
}

type chain struct {
	Head
	first int64
	at    time.Time
	met   map[int]bool // known heads that were passed
}

func newVerifier(keys seal.Keys, known []Head) *verifier {
	return &verifier{keys: keys, known: known, chains: map[string]*chain{}, faults: map[string]Fault{}}
}

// fault notes what is wrong, the smallest link of each chain.
func (v *verifier) fault(name string, link int64, id, format string, args ...any) {
	if old, has := v.faults[name]; !has || link < old.Link {
		v.faults[name] = Fault{Chain: name, Link: link, EventID: id, What: fmt.Sprintf(format, args...)}
	}
}

// add takes a row with all of its content.
func (v *verifier) add(r Row) {
	switch known, err := r.body(v.keys); {
	case !known:
		v.blind++
	case err != nil:
		v.fault(r.Chain, r.Link, r.EventID, "%v", err)
	}
	if r.Chain != "" && r.Hash != r.Sum() {
		v.fault(r.Chain, r.Link, r.EventID, "its content does not match its hash")
	}
	v.follow(r)
}

// follow takes a row whose content was compared with its hash.
func (v *verifier) follow(r Row) {
	v.rows++
	if r.Chain == "" {
		return
	}
	c := v.chains[r.Chain]
	if c == nil {
		c = &chain{Head: Head{Chain: r.Chain, Hash: Genesis}, first: r.Link, met: map[int]bool{}}
		v.chains[r.Chain] = c
		if v.anyway {
			c.Link, c.Hash = r.Link-1, r.Previous
		}
	}
	switch want := c.Link + 1; {
	case r.Link > want:
		v.fault(r.Chain, want, "", "is missing, the next there is %d", r.Link)
	case r.Link < want:
		v.fault(r.Chain, r.Link, r.EventID, "comes after link %d", c.Link)
	case r.Previous != c.Hash:
		v.fault(r.Chain, r.Link, r.EventID, "does not follow link %d: previous hash %s, want %s", c.Link, r.Previous, c.Hash)
	case r.RecordedAt.Before(c.at):
		v.fault(r.Chain, r.Link, r.EventID, "is older than link %d", c.Link)
	}
	for i, k := range v.known {
		if k.Chain == r.Chain && k.Link == r.Link {
			c.met[i] = true
			if k.Hash != r.Hash {
				v.fault(r.Chain, r.Link, r.EventID, "has hash %s, the known head says %s", r.Hash, k.Hash)
			}
		}
	}
	c.Link, c.Hash, c.at = r.Link, r.Hash, r.RecordedAt
}

// ends compares the chains' ends with what is known of them from elsewhere.
func (v *verifier) ends(heads []Head) {
	seen := map[string]bool{}
	for _, h := range heads {
		seen[h.Chain] = true
		c := v.chains[h.Chain]
		switch {
		case c == nil && h.Link > 0:
			v.fault(h.Chain, 1, "", "is missing, and all links up to %d", h.Link)
		case c != nil && c.Link < h.Link:
			v.fault(h.Chain, c.Link+1, "", "is missing: the chain is cut off before its head, link %d", h.Link)
		case c != nil && (c.Link != h.Link || c.Hash != h.Hash):
			v.fault(h.Chain, c.Link, "", "is not the chain's head, link %d with hash %s", h.Link, h.Hash)
		}
	}
	for name, c := range v.chains {
		if !seen[name] {
			v.fault(name, c.Link, "", "the chain has no head")
		}
	}
}

func (v *verifier) report() Report {
	for i, k := range v.known {
		c := v.chains[k.Chain]
		switch {
		case c == nil:
			v.fault(k.Chain, k.Link, "", "is missing with all of its chain, the known head says it was there")
		case !c.met[i] && k.Link > c.Link:
			v.fault(k.Chain, c.Link+1, "", "is missing: the known head says that there were %d", k.Link)
		case !c.met[i] && (k.Link >= c.first || !v.anyway):
			v.fault(k.Chain, k.Link, "", "is missing, the known head says it was there")
		}
	}
	out := Report{Rows: v.rows, Unchecked: v.blind, Heads: []Head{}, Faults: []Fault{}}
	for _, c := range v.chains {
		out.Heads = append(out.Heads, c.Head)
	}
	slices.SortFunc(out.Heads, func(a, b Head) int { return cmp.Compare(a.Chain, b.Chain) })
	for _, name := range slices.Sorted(maps.Keys(v.faults)) {
		out.Faults = append(out.Faults, v.faults[name])
	}
	return out
}
