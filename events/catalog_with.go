package events

import (
	"maps"
	"slices"
)

// Override gives the catalog with the entries of others in place of its own of
// the same type and version, or beside them, and so with queue families: an environment's formats, for
// example. Later ones win. Everything else is joined as by [Merge]. The catalogs stay as they are.
func (c *Catalog) Override(with ...*Catalog) (*Catalog, error) {
	out := c
	for _, w := range with {
		base := *out
		base.entries = maps.Clone(out.entries)
		maps.DeleteFunc(base.entries, func(k typeVersion, _ Entry) bool { _, replaced := w.entries[k]; return replaced })
		base.queues = maps.Clone(out.queues)
		maps.DeleteFunc(base.queues, func(name string, _ QueueFamily) bool { _, replaced := w.queues[name]; return replaced })
		merged, err := Merge(&base, w)
		if err != nil {
			return nil, err
		}
		out = merged
	}
	return out, nil
}

// Encrypted gives the catalog with bodies of more classes encrypted. A class
// that the catalog encrypts in another way already is refused, so are unknown
// classes and ways, all at once. The catalog stays as it is.
func (c *Catalog) Encrypted(more map[Class]Encryption) (*Catalog, error) {
	p := &problems{}
	for _, class := range slices.Sorted(maps.Keys(more)) {
		how := more[class]
		p.check(class.Valid(), "encryption: class %q, want one of %v", class, Classes())
		p.check(how == EncryptAtRest || how == EncryptEndToEnd, "encryption: %q for class %s, want %s or %s", how, class, EncryptAtRest, EncryptEndToEnd)
		if was := c.encryption[class]; was != EncryptNone && was != how {
			p.add("encryption: %s for class %s, but the catalog says %s", how, class, was)
		}
	}
	if len(p.list) > 0 {
		return nil, &CatalogError{Problems: p.list}
	}
	out := &Catalog{}
	*out = *c
	out.entries, out.encryption = maps.Clone(c.entries), maps.Clone(c.encryption)
	if out.encryption == nil {
		out.encryption = map[Class]Encryption{}
	}
	maps.Copy(out.encryption, more)
	out.applyEncryption()
	return out, nil
}
