package core

import "time"

// history is what is kept of process instances that have ended. Which are
// forgotten follows from the commands and the clock alone: a restored state has
// the same history. No command can tell a forgotten instance from an ended one.
type history struct {
	limit int           // instances, 0 = any number
	age   time.Duration // since their end, 0 = for ever
	ended []*Instance   // in the order of their ends, from first on
	first int
	timer *timer // the next one is too old; nil without age
}

// KeepHistory bounds what is kept of ended instances: at most limit of them, no
// longer than age after their end. Below 1 means without that bound. What is
// too much already is forgotten at once, oldest first.
func (c *Core) KeepHistory(limit int, age time.Duration) {
	limit, age = max(limit, 0), max(age, 0)
	if limit == c.history.limit && age == c.history.age {
		return
	}
	c.record(Record{Op: opHistory, N: int64(limit), D: age})
	c.history.limit, c.history.age = limit, age
	c.stop(c.history.timer)
	c.history.timer = nil
	c.trimHistory()
}

func (h *history) len() int { return len(h.ended) - h.first }

func (h *history) pop() *Instance {
	i := h.ended[h.first]
	h.ended[h.first] = nil
	h.first++
	if h.first >= slack && h.first*2 > len(h.ended) {
		h.ended = append(h.ended[:0:0], h.ended[h.first:]...)
		h.first = 0
	}
	return i
}

// trimHistory forgets what is too much or too old and sets the clock for the next one.
func (c *Core) trimHistory() {
	h := &c.history
	for h.limit > 0 && h.len() > h.limit {
		c.forget(h.pop())
	}
	if h.age <= 0 {
		return
	}
	for h.len() > 0 && !h.ended[h.first].Root.End.Add(h.age).After(c.now) {
		c.forget(h.pop())
	}
	if h.timer == nil && h.len() > 0 {
		h.timer = c.at(h.ended[h.first].Root.End.Add(h.age), c.historyDue)
	}
}

func (c *Core) historyDue() {
	c.history.timer = nil
	c.trimHistory()
}

// forget takes all records of an ended instance out of the state.
func (c *Core) forget(i *Instance) {
	i.forgotten = true
	delete(c.instances, i.Key)
	c.instOrder.forget(1)
	delete(c.elements, i.Root.Key)
	for _, e := range i.elements {
		delete(c.elements, e.Key)
	}
	c.elemOrder.forget(len(i.elements) + 1)
	for _, j := range i.jobs {
		delete(c.jobs, j.Key)
	}
	c.jobOrder.forget(len(i.jobs))
	for _, inc := range i.incs {
		delete(c.incidents, inc.Key)
	}
	c.incOrder.forget(len(i.incs))
	for _, v := range i.vars {
		delete(c.variables, v.Key)
	}
	c.varOrder.forget(len(i.vars))
	for _, t := range i.tasks {
		delete(c.userTasks, t.Key)
	}
	c.taskOrder.forget(len(i.tasks))
}
