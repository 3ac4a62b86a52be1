package core

import "time"

// ttlCheck is how often expired messages are removed, as Zeebe's checker does:
// a message id is taken until then.
const ttlCheck = time.Minute

// Message is a published message that is buffered.
type Message struct {
	Key      int64
	Name     string
	CorrKey  string
	ID       string
	Vars     Doc
	Deadline time.Time

	taken map[string]bool // process ids it was correlated to
	timer *timer          // removes it
}

// Publication is a message to publish.
type Publication struct {
	Name, CorrelationKey, ID string
	TTL                      time.Duration
	Vars                     Doc
}

func messageKey(name, corr string) string { return name + "\x00" + corr }

func messageIDKey(name, corr, id string) string { return name + "\x00" + corr + "\x00" + id }

// Correlated tells where a message went.
type Correlated struct {
	Key      int64 // message key
	Instance int64 // first process instance it was correlated to, 0 when none
}

// Publish correlates a message to open subscriptions, at most one per process
// id, then to message start events; with a TTL it stays buffered.
func (c *Core) Publish(p Publication) (Correlated, error) {
	c.record(Record{Op: opPublish, Message: &p})
	const intent = "PUBLISH"
	if blank(p.Name) {
		return Correlated{}, reject(intent, InvalidArgument, "Expected to publish a message with a name, but the name was blank")
	}
	idKey := messageIDKey(p.Name, p.CorrelationKey, p.ID)
	if p.ID != "" && c.messageIDs[idKey] != nil {
		return Correlated{}, reject(intent, AlreadyExists, "Expected to publish a new message with id '%s', but a message with that id was already published", p.ID)
	}
	m := &Message{Key: c.key(), Name: p.Name, CorrKey: p.CorrelationKey, ID: p.ID, Vars: p.Vars, taken: map[string]bool{}}
	result := Correlated{Key: m.Key}
	if p.TTL > 0 {
		m.Deadline = c.now.Add(p.TTL)
		c.buffer(m)
	}
	for _, s := range append([]*Subscription(nil), c.subs[messageKey(m.Name, m.CorrKey)]...) {
		pid := s.el.Inst.Process.ID
		if m.taken[pid] || s.closed {
			continue
		}
		inst := s.el.Inst.Key
		if c.trigger(s, m.Vars) {
			m.taken[pid] = true
			if result.Instance == 0 {
				result.Instance = inst
			}
		}
	}
	for _, s := range append([]*Subscription(nil), c.startSubs[m.Name]...) {
		if inst := c.startByMessage(s, m); inst != nil && result.Instance == 0 {
			result.Instance = inst.Key
		}
	}
	return result, nil
}

// buffer stores m until the checker's first run after its deadline.
func (c *Core) buffer(m *Message) {
	c.index(m)
	check := m.Deadline
	if rest := check.Sub(c.started) % ttlCheck; rest > 0 {
		check = check.Add(ttlCheck - rest)
	}
	m.timer = c.at(check, c.expired(m))
}

func (c *Core) index(m *Message) {
	k := messageKey(m.Name, m.CorrKey)
	c.messages[k] = append(c.messages[k], m)
	if m.CorrKey != "" {
		c.byLockKey[m.CorrKey] = append(c.byLockKey[m.CorrKey], m)
	}
	if m.ID != "" {
		c.messageIDs[messageIDKey(m.Name, m.CorrKey, m.ID)] = m
	}
}

func (c *Core) expired(m *Message) func() {
	return func() {
		drop(c.messages, messageKey(m.Name, m.CorrKey), m)
		if m.CorrKey != "" {
			drop(c.byLockKey, m.CorrKey, m)
		}
		if m.ID != "" {
			delete(c.messageIDs, messageIDKey(m.Name, m.CorrKey, m.ID))
		}
	}
}

// correlateBuffered gives a new subscription the first buffered message that
// has not expired and was not yet correlated to its process id.
func (c *Core) correlateBuffered(s *Subscription) {
	pid := s.el.Inst.Process.ID
	for _, m := range c.messages[messageKey(s.name, s.corrKey)] {
		if m.taken[pid] || !m.Deadline.After(c.now) {
			continue
		}
		m.taken[pid] = true
		c.later(func() {
			if !c.trigger(s, m.Vars) {
				delete(m.taken, pid)
			}
		})
		return
	}
}

func lockKey(processID, corr string) string { return processID + "\x00" + corr }

// startByMessage starts an instance at message start event s, unless the
// message was already correlated to the process or its correlation key is locked.
func (c *Core) startByMessage(s *Subscription, m *Message) *Instance {
	pid := s.node.Proc.ID
	if m.taken[pid] || s.closed {
		return nil
	}
	if m.CorrKey != "" && c.locks[lockKey(pid, m.CorrKey)] != nil {
		return nil
	}
	m.taken[pid] = true
	inst := c.startInstance(s.node.Proc, s.node, m.Vars)
	if m.CorrKey != "" {
		inst.lock = lockKey(pid, m.CorrKey)
		inst.corrKey = m.CorrKey
		c.locks[inst.lock] = inst
	}
	return inst
}

// releaseLock lets the next buffered message with the same correlation key start an instance.
func (c *Core) releaseLock(inst *Instance) {
	if inst.lock == "" {
		return
	}
	delete(c.locks, inst.lock)
	inst.lock = ""
	for _, m := range c.byLockKey[inst.corrKey] {
		if !m.Deadline.After(c.now) {
			continue
		}
		for _, s := range c.startSubs[m.Name] {
			if s.node.Proc.ID == inst.Process.ID && c.startByMessage(s, m) != nil {
				return
			}
		}
	}
}

// Broadcast triggers all signal subscriptions and signal start events of a name.
func (c *Core) Broadcast(name string, vars Doc) int64 {
	c.record(Record{Op: opSignal, Text: name, Vars: vars})
	key := c.key()
	c.broadcast(name, vars)
	return key
}

func (c *Core) broadcast(name string, vars Doc) {
	for _, s := range append([]*Subscription(nil), c.signals[name]...) {
		c.trigger(s, vars)
	}
}
