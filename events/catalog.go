package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Catalog names every message type of a platform. Make one with [ParseCatalog]
// or [Merge]. It is not changed afterwards and safe for concurrent use.
type Catalog struct {
	domains  []string
	services map[string]string // service name → domain
	entries  map[typeVersion]Entry
	queues   map[string]QueueFamily
	signed   []SignOff

	encryption map[Class]Encryption
}

type typeVersion struct {
	name    string
	version int
}

// Entry is what the catalog says about one message type and major version.
type Entry struct {
	Type           string
	Version        int
	Kind           Kind
	Class          Class
	Owner          string   // domain; for a command the domain that is asked
	Producers      []string // service names, or "*"
	Consumers      []string
	Exceptions     []Exception
	PartitionKey   string // always "businessKey" for now
	OrderScope     string // messages of a key in one scope are strictly ordered across its topics; "" = no such promise
	IdempotencyKey string // DedupMessageID, DedupOperationID or DedupData
	RetentionDays  int
	Financial      bool
	Format         Format // language of Schema
	Wire           Wire   // what the body is
	Schema         any    // as written, nil for none: JSON Schema, an Avro schema, or the text of a .proto file; checked by [Schemas]
	Message        string // full name of the Protobuf message; "" means the only one of the text
	Retry          []time.Duration
	PoisonedAfter  int // attempts after which a message goes to the DLQ
	DLQ            string
	OperatorAction string
	PII            string // "none" or who agreed to what
	Topic          string
	Partitions     int
	Encryption     Encryption // of the class, EncryptNone or how its bodies are kept

	Compatibility      Compatibility
	JSONSchemaApproved Approval  // who agreed to JSON Schema in place of Avro or Protobuf (spec Z11); zero for other formats
	ServedUntil        time.Time // the version is staged and consumed at least until then (spec E5), midnight UTC; zero = no end is declared
}

// Approval records who agreed to something, and why.
type Approval struct {
	Who string `yaml:"who"`
	Why string `yaml:"why"`
}

// Compatibility is what the readers and writers of one version may count on while its schema changes.
type Compatibility string

// CompatibilityFull is the one policy: old readers read what new writers write and the other way round. What does not fit needs a
// new version (spec E5). Package events/compat checks it.
const CompatibilityFull Compatibility = "full"

// Exception records that a service of another domain may stage a type.
type Exception struct {
	Producer   string `yaml:"producer"`
	Reason     string `yaml:"reason"`
	ApprovedBy string `yaml:"approved_by"`
}

// SignOff records that somebody answers for a change of an entry that would
// otherwise be refused (package events/compat).
type SignOff struct {
	Type       string `yaml:"type"`
	Version    int    `yaml:"version"` // 0 means 1
	Change     string `yaml:"change"`  // "removed", or the field that changed, as written in the catalog: "partitions"
	To         string `yaml:"to"`      // the new value; "" for a removal
	Reason     string `yaml:"reason"`
	ApprovedBy string `yaml:"approved_by"`
}

// What identifies a repeat of a message (spec D2).
const (
	DedupMessageID   = "messageId"           // the same publication again
	DedupOperationID = "operationId"         // the same business operation again
	DedupData        = "data.idempotencyKey" // commands
)

// DefaultPartitions is the partition count of a topic whose entries name none.
const DefaultPartitions = 4

// DefaultDLQ is where messages go whose entry names no DLQ.
const DefaultDLQ = "platform.dlq.v1"

// DefaultRetry is the schedule of entries that name none (spec E7).
func DefaultRetry() []time.Duration {
	return []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}
}

// Domains lists the domains, sorted, [PlatformDomain] among them.
func (c *Catalog) Domains() []string { return slices.Clone(c.domains) }

// CheckName refuses a message type that breaks the naming rules or is of no domain of the catalog. See [CheckName].
func (c *Catalog) CheckName(kind Kind, name string) error { return CheckName(kind, name, c.domains) }

// SignOffs lists the changes that are signed off, in the order of the files.
func (c *Catalog) SignOffs() []SignOff { return slices.Clone(c.signed) }

// Entry gives the entry of a type and version (0 means 1), and whether there is one.
func (c *Catalog) Entry(messageType string, version int) (Entry, bool) {
	e, ok := c.entries[typeVersion{messageType, max(version, 1)}]
	return e, ok
}

// Entries lists all entries by type and version.
func (c *Catalog) Entries() []Entry {
	return slices.SortedFunc(maps.Values(c.entries), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Version, b.Version))
	})
}

// Match lists the entries whose type fits any of the patterns (see [Match]), by type and version.
func (c *Catalog) Match(patterns ...string) []Entry {
	return slices.DeleteFunc(c.Entries(), func(e Entry) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { return Match(p, e.Type) })
	})
}

// Topics lists the topics of all entries, sorted by name, with the longest retention asked for.
func (c *Catalog) Topics() []TopicSpec {
	byName := map[string]TopicSpec{}
	for _, e := range c.entries {
		keep := time.Duration(e.RetentionDays) * 24 * time.Hour
		t, ok := byName[e.Topic]
		if !ok || t.Retention < keep {
			byName[e.Topic] = TopicSpec{Name: e.Topic, Partitions: e.Partitions, Retention: keep}
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b TopicSpec) int { return cmp.Compare(a.Name, b.Name) })
}

// MayStage says whether a service may stage the entry's type: it is listed as
// a producer and its domain, where the catalog's services name one, owns the
// type or has a recorded exception (spec E3). Anyone may ask with a command
// that lists it.
func (c *Catalog) MayStage(e Entry, producer string) error {
	if !slices.Contains(e.Producers, producer) && !slices.Contains(e.Producers, "*") {
		return fmt.Errorf("message type %s v%d: producer %q is not one of %s in the catalog", e.Type, e.Version, producer, strings.Join(e.Producers, ", "))
	}
	domain, known := c.services[producer]
	if !known || e.Kind == KindCommand || domain == e.Owner || e.Owner == PlatformDomain {
		return nil
	}
	if slices.ContainsFunc(e.Exceptions, func(x Exception) bool { return x.Producer == producer }) {
		return nil
	}
	return fmt.Errorf("message type %s v%d: owned by domain %q, staged by %q of domain %q without a recorded exception", e.Type, e.Version, e.Owner, producer, domain)
}

// Encryption gives how the bodies of a class are kept, [EncryptNone] when the catalog says nothing of it.
func (c *Catalog) Encryption(class Class) Encryption { return c.encryption[class] }

// Encrypts reports whether bodies of any class are encrypted, so that keys are needed.
func (c *Catalog) Encrypts() bool { return len(c.encryption) > 0 }

// Scope lists the entries whose messages share a strict order, by type and version; none for "".
func (c *Catalog) Scope(scope string) []Entry {
	return slices.DeleteFunc(c.Entries(), func(e Entry) bool { return scope == "" || e.OrderScope != scope })
}

// Complete refuses entries that leave something to guess which [ParseCatalog]
// has no default for (spec E3): consumers, a schema, what the operator does,
// whether personal data is agreed ("none", or who agreed to what), who agreed to
// JSON Schema (spec Z11), and until when a version is served beside the next one (spec E5). All are named
// at once. A service calls it at start-up, `journeyman events check` in CI.
func (c *Catalog) Complete() error {
	p := &problems{}
	for _, e := range c.Entries() {
		for _, field := range []struct {
			name string
			ok   bool
			want string
		}{
			{"consumers", len(e.Consumers) > 0, "at least one"},
			{"schema", e.Schema != nil, "a schema of the data"},
			{"operator_action", strings.TrimSpace(e.OperatorAction) != "", "what the operator does with a dead letter"},
			{"pii", strings.TrimSpace(e.PII) != "", `"none", or who agreed to what`},
		} {
			p.check(field.ok, "message type %s v%d: %s: missing, want %s", e.Type, e.Version, field.name, field.want)
		}
		_, newer := c.Entry(e.Type, e.Version+1)
		p.check(!newer || !e.ServedUntil.IsZero(), "message type %s v%d: served_until: missing, want the day until which it is served beside version %d", e.Type, e.Version, e.Version+1)
		p.check(e.Format != FormatJSON || e.JSONSchemaApproved != (Approval{}),
			"message type %s v%d: json_schema_approved: missing, want who agreed to JSON Schema in place of %s or %s, and why", e.Type, e.Version, FormatAvro, FormatProtobuf)
	}
	for _, q := range c.Queues() {
		p.check(strings.TrimSpace(q.OperatorAction) != "", "queue %s: operator_action: missing, want what the operator does with an item in quarantine", q.Name)
		p.check(strings.TrimSpace(q.PII) != "", `queue %s: pii: missing, want "none", or who agreed to what`, q.Name)
	}
	if len(p.list) > 0 {
		return &CatalogError{Problems: p.list}
	}
	return nil
}

// Merge joins catalogs. A type and version in two of them, a service in two
// domains, one topic with two partition counts and a class with two ways of
// encryption are refused, all at once.
func Merge(catalogs ...*Catalog) (*Catalog, error) {
	out := &Catalog{services: map[string]string{}, entries: map[typeVersion]Entry{}, queues: map[string]QueueFamily{}, encryption: map[Class]Encryption{}}
	var problems []string
	for _, c := range catalogs {
		out.domains = append(out.domains, c.domains...)
		out.signed = append(out.signed, c.signed...)
		for service, domain := range c.services {
			if old, ok := out.services[service]; ok && old != domain {
				problems = append(problems, fmt.Sprintf("service %q: in domain %q and %q", service, old, domain))
			}
			out.services[service] = domain
		}
		for class, how := range c.encryption {
			if old, ok := out.encryption[class]; ok && old != how {
				problems = append(problems, fmt.Sprintf("encryption of class %s: %s in one catalog, %s in another", class, old, how))
			}
			out.encryption[class] = how
		}
		for name, q := range c.queues {
			if _, ok := out.queues[name]; ok {
				problems = append(problems, fmt.Sprintf("queue %s: in two catalogs, want a single owner", name))
			}
			out.queues[name] = q
		}
		for k, e := range c.entries {
			if _, ok := out.entries[k]; ok {
				problems = append(problems, fmt.Sprintf("message type %s v%d: in two catalogs, want a single owner", k.name, k.version))
			}
			out.entries[k] = e
		}
	}
	slices.Sort(out.domains)
	out.domains = slices.Compact(out.domains)
	out.applyEncryption()
	problems = append(problems, topicProblems(out.Entries())...)
	if len(problems) > 0 {
		slices.Sort(problems)
		return nil, &CatalogError{Problems: problems}
	}
	return out, nil
}

func (c *Catalog) applyEncryption() {
	for k, e := range c.entries {
		e.Encryption = c.encryption[e.Class]
		c.entries[k] = e
	}
}

// CatalogError lists everything that is wrong with a catalog.
type CatalogError struct{ Problems []string }

// Error joins the problems, one a line.
func (e *CatalogError) Error() string {
	return "catalog: " + strings.Join(e.Problems, "\ncatalog: ")
}

// topicProblems finds topics shared by entries that disagree.
func topicProblems(entries []Entry) []string {
	var problems []string
	first := map[string]Entry{}
	for _, e := range entries {
		f, ok := first[e.Topic]
		if !ok {
			first[e.Topic] = e
			continue
		}
		if f.Partitions != e.Partitions {
			problems = append(problems, fmt.Sprintf("topic %s: %d partitions for %s v%d, %d for %s v%d",
				e.Topic, f.Partitions, f.Type, f.Version, e.Partitions, e.Type, e.Version))
		}
		if f.Class != e.Class {
			problems = append(problems, fmt.Sprintf("topic %s: class %s for %s v%d, %s for %s v%d",
				e.Topic, f.Class, f.Type, f.Version, e.Class, e.Type, e.Version))
		}
		if f.OrderScope != e.OrderScope {
			problems = append(problems, fmt.Sprintf("topic %s: order_scope %q for %s v%d, %q for %s v%d",
				e.Topic, f.OrderScope, f.Type, f.Version, e.OrderScope, e.Type, e.Version))
		}
	}
	return problems
}
