package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// QueueFamily is what the catalog says about one family of durable work (spec E3, E14): the queue of that name in package
// events/work. What fails for good goes to its quarantine; there is no other route.
type QueueFamily struct {
	Name           string
	Class          Class
	Owner          string   // domain
	Producers      []string // service names that put items, or "*"
	Consumers      []string // service names that do the work, or "*"
	Retry          []time.Duration
	PoisonedAfter  int // attempts after which an item goes to the quarantine
	OperatorAction string
	PII            string // "none" or who agreed to what
}

type queueFile struct {
	Name           string    `yaml:"name"`
	Class          Class     `yaml:"class"`
	Owner          string    `yaml:"owner"`
	Producers      []string  `yaml:"producers"`
	Consumers      []string  `yaml:"consumers"`
	Retry          *[]string `yaml:"retry"`
	PoisonedAfter  *int      `yaml:"poisoned_after"`
	OperatorAction string    `yaml:"operator_action"`
	PII            string    `yaml:"pii"`
}

// family fills in defaults and checks one queue family.
func (f queueFile) family(p *problems, i int, c *Catalog) QueueFamily {
	q := QueueFamily{
		Name: f.Name, Class: f.Class, Owner: f.Owner, Producers: f.Producers, Consumers: f.Consumers, Retry: DefaultRetry(), OperatorAction: f.OperatorAction, PII: f.PII,
	}
	who := fmt.Sprintf("queues[%d]", i)
	if q.Name != "" {
		who = "queue " + q.Name
	}
	wrong := func(ok bool, format string, args ...any) { p.check(ok, who+": "+format, args...) }
	setDefault(&q.Class, ClassOperational)
	wrong(topicName.MatchString(q.Name) && len(q.Name) <= maxName, "name %q, want up to %d of a-z, 0-9, '.', '_', '-'", q.Name, maxName)
	wrong(q.Class.Valid(), "class %q, want one of %v", q.Class, Classes())
	wrong(slices.Contains(c.domains, q.Owner), "owner %q, want a domain", q.Owner)
	wrong(len(q.Producers) > 0, "producers: none")
	wrong(len(q.Consumers) > 0, "consumers: none")
	if f.Retry != nil {
		q.Retry = schedule(*f.Retry, wrong)
	}
	q.PoisonedAfter = or(f.PoisonedAfter, len(q.Retry)+1)
	wrong(q.PoisonedAfter >= 1 && q.PoisonedAfter <= len(q.Retry)+1, "poisoned_after %d, want 1 to %d, one more than the delays of retry", q.PoisonedAfter, len(q.Retry)+1)
	return q
}

// Queue gives the family of that name, and whether there is one.
func (c *Catalog) Queue(name string) (QueueFamily, bool) {
	q, ok := c.queues[name]
	return q, ok
}

// Queues lists the queue families by name.
func (c *Catalog) Queues() []QueueFamily {
	return slices.SortedFunc(maps.Values(c.queues), func(a, b QueueFamily) int { return cmp.Compare(a.Name, b.Name) })
}
