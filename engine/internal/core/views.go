package core

import "iter"

// Instances yields all process instances, ended ones that are not forgotten included, oldest first.
// Like every read it needs the caller's lock.
func (c *Core) Instances() iter.Seq[*Instance] { return c.instOrder.all() }

// Elements yields the element instances of one process instance, or of all
// when of is 0, oldest first; process instances themselves are left out.
func (c *Core) Elements(of int64) iter.Seq[*Element] {
	return func(yield func(*Element) bool) {
		for e := range some(c, of, &c.elemOrder, func(i *Instance) []*Element { return i.elements }) {
			if e.Parent != nil && !yield(e) {
				return
			}
		}
	}
}

// Jobs yields the jobs of one process instance, or all when of is 0, oldest first.
func (c *Core) Jobs(of int64) iter.Seq[*Job] {
	return some(c, of, &c.jobOrder, func(i *Instance) []*Job { return i.jobs })
}

// Incidents yields the incidents of one process instance, or all when of is 0, oldest first.
func (c *Core) Incidents(of int64) iter.Seq[*Incident] {
	return some(c, of, &c.incOrder, func(i *Instance) []*Incident { return i.incs })
}

// Variables yields the variables of one process instance, or all when of is 0, oldest first.
func (c *Core) Variables(of int64) iter.Seq[*Variable] {
	return some(c, of, &c.varOrder, func(i *Instance) []*Variable { return i.vars })
}

// Definitions yields all deployed process versions, oldest first.
func (c *Core) Definitions() iter.Seq[*Process] { return each(c.procOrder) }

// UserTasks yields all native user tasks, oldest first.
func (c *Core) UserTasks() iter.Seq[*UserTask] { return c.taskOrder.all() }

// some narrows a list to one process instance; an unknown one has nothing.
func some[T owned](c *Core, of int64, all *ordered[T], part func(*Instance) []T) iter.Seq[T] {
	if of == 0 {
		return all.all()
	}
	if i := c.instances[of]; i != nil {
		return each(part(i))
	}
	return each[T](nil)
}

func each[T any](list []T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, v := range list {
			if !yield(v) {
				return
			}
		}
	}
}

// Instance finds a process instance; nil when there is none.
func (c *Core) Instance(key int64) *Instance { return c.instances[key] }

// Element finds an element instance; nil when there is none.
func (c *Core) Element(key int64) *Element { return c.elements[key] }

// Incident finds an incident; nil when there is none.
func (c *Core) Incident(key int64) *Incident { return c.incidents[key] }

// VariableByKey finds a variable; nil when there is none.
func (c *Core) VariableByKey(key int64) *Variable { return c.variables[key] }

// Definition finds a process version; nil when there is none.
func (c *Core) Definition(key int64) *Process { return c.byKey[key] }

// UserTask finds a native user task; nil when there is none.
func (c *Core) UserTask(key int64) *UserTask { return c.userTasks[key] }

// IsLatest reports whether p is the newest version of its process id.
func (c *Core) IsLatest(p *Process) bool {
	v := c.processes[p.ID]
	return len(v) > 0 && v[len(v)-1] == p
}

// HasIncident reports an active incident in the instance or in one it called.
func (i *Instance) HasIncident() bool { return i.Root.incidents > 0 }

// Elements yields the element instances of i, oldest first, i itself left out.
func (i *Instance) Elements() iter.Seq[*Element] { return each(i.elements) }

// Jobs yields the jobs of i, oldest first.
func (i *Instance) Jobs() iter.Seq[*Job] { return each(i.jobs) }

// Incidents yields the incidents of i, oldest first.
func (i *Instance) Incidents() iter.Seq[*Incident] { return each(i.incs) }

// FailedWithRetriesLeft reports that the last thing that happened to the job was a failure after which it can be tried again.
func (j *Job) FailedWithRetriesLeft() bool { return j.Recorded == "FAILED" && j.Retries > 0 }

// Tags are what the instance was created with, in that order.
func (i *Instance) Tags() []string { return i.tags }

// HasIncident reports an active incident of the element instance, inside it or in an instance it called.
func (e *Element) HasIncident() bool { return e.incidents > 0 }

// Variable finds a variable of e's own scope.
func (e *Element) Variable(name string) (*Variable, bool) {
	v, ok := e.vars[name]
	return v, ok
}

// Incident is the active incident that stops e or its job; nil when there is none.
func (e *Element) Incident() *Incident {
	if e.incident != nil {
		return e.incident
	}
	if e.job != nil {
		return e.job.incident
	}
	return nil
}

// DisplayName is the process name, or its id when it has none.
func (p *Process) DisplayName() string {
	if p.Name == "" {
		return p.ID
	}
	return p.Name
}

// Headers are the task headers of the model.
func (n *Node) Headers() map[string]string { return n.headerMap }
