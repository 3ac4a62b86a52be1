package core

import "slices"

// DeleteResource removes a process version that has no running instance. The
// version before it, if any, is the latest again, its start events included.
func (c *Core) DeleteResource(key int64) error {
	c.record(Record{Op: opDelete, Key: key})
	const intent = "DELETE"
	p := c.byKey[key]
	if p == nil || p.Deleted {
		return reject(intent, NotFound, "Expected to delete resource but no resource found with key `%d`", key)
	}
	if p.running > 0 {
		return reject(intent, InvalidState, "Expected to delete resource with key `%d` but there are still running instances", key)
	}
	versions := c.processes[p.ID]
	latest := versions[len(versions)-1] == p
	p.Deleted = true
	versions = slices.DeleteFunc(slices.Clone(versions), func(v *Process) bool { return v == p })
	c.processes[p.ID] = versions
	if !latest {
		return nil
	}
	if len(versions) > 0 {
		c.openStarts(versions[len(versions)-1])
		return nil
	}
	for _, s := range c.starts[p.ID] {
		c.closeStart(s)
	}
	delete(c.starts, p.ID)
	delete(c.processes, p.ID)
	return nil
}
