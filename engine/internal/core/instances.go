package core

import "time"

// Creation is a request to start a process instance.
type Creation struct {
	ProcessKey int64
	ProcessID  string
	Version    int32 // -1 = latest
	Vars       Doc
	Start      []string // start instructions: element ids; empty = none start event
	StopAfter  []string // runtime instructions: the instance is terminated when one of these elements ends
	Tags       []string
}

// newInstance creates the instance and queues its activation.
func (c *Core) newInstance(p *Process, caller *Element) *Instance {
	inst := &Instance{Process: p, Caller: caller}
	if caller != nil {
		inst.Depth = caller.Inst.Depth + 1
	}
	root := c.newElement(p.root, nil)
	root.Inst, inst.Root, inst.Key = inst, root, root.Key
	c.instances[inst.Key] = inst
	c.instOrder.add(inst)
	p.running++
	c.push(opActivate, root)
	return inst
}

func (c *Core) startInstance(p *Process, start *Node, vars Doc) *Instance {
	inst := c.newInstance(p, nil)
	inst.start, inst.startDoc = start, vars
	return inst
}

// CreateInstance starts an instance at its none start event, or at the given elements.
func (c *Core) CreateInstance(r Creation) (*Instance, error) {
	c.record(Record{Op: opCreate, Create: &r})
	const intent = "CREATE"
	p, err := c.resolveProcess(intent, r)
	if err != nil {
		return nil, err
	}
	var starts []*Node
	for _, id := range r.Start {
		n, err := startable(p, id)
		if err != nil {
			return nil, err
		}
		starts = append(starts, n)
	}
	if len(starts) == 0 && p.root.start == nil {
		return nil, reject(intent, InvalidState, "Expected to create instance of process with none start event, but there is no such event")
	}
	for _, id := range r.StopAfter {
		if n := p.nodes[id]; n == nil || n.Parent == nil {
			return nil, reject(intent, InvalidArgument, "Expected to create instance of process with runtime instructions but no element found with id '%s'.", id)
		}
	}
	inst := c.newInstance(p, nil)
	inst.start, inst.starts, inst.stopAfter, inst.tags = p.root.start, starts, r.StopAfter, r.Tags
	c.mergeLocal(inst.Root, r.Vars)
	return inst, nil
}

func (c *Core) resolveProcess(intent string, r Creation) (*Process, error) {
	switch {
	case r.ProcessID != "":
		versions := c.processes[r.ProcessID]
		if r.Version < 0 {
			if len(versions) == 0 {
				return nil, reject(intent, NotFound, "Expected to find process definition with process ID '%s', but none found", r.ProcessID)
			}
			return versions[len(versions)-1], nil
		}
		for _, p := range versions {
			if p.Version == r.Version {
				return p, nil
			}
		}
		return nil, reject(intent, NotFound, "Expected to find process definition with process ID '%s' and version '%d', but none found", r.ProcessID, r.Version)
	case r.ProcessKey > 0:
		if p := c.byKey[r.ProcessKey]; p != nil && !p.Deleted {
			return p, nil
		}
		return nil, reject(intent, NotFound, "Expected to find process definition with key '%d', but none found", r.ProcessKey)
	}
	return nil, reject(intent, InvalidArgument, "Expected at least a bpmnProcessId or a key greater than -1, but none given")
}

// CancelInstance terminates a root instance with everything inside it.
func (c *Core) CancelInstance(key int64) error {
	c.record(Record{Op: opCancel, Key: key})
	const intent = "CANCEL"
	inst := c.instances[key]
	if inst == nil || inst.Root.ended() {
		return reject(intent, NotFound, "Expected to cancel a process instance with key '%d', but no such process was found", key)
	}
	if inst.Caller != nil {
		root := inst
		for root.Caller != nil {
			root = root.Caller.Inst
		}
		return reject(intent, InvalidState, "Expected to cancel a process instance with key '%d', but it is created by a parent process instance. Cancel the root process instance '%d' instead.", key, root.Key)
	}
	c.terminate(inst.Root)
	return nil
}

// instanceEnded runs after the root element of inst ended.
func (c *Core) instanceEnded(inst *Instance) {
	inst.Process.running--
	c.releaseLock(inst)
	call := inst.Caller
	if inst.Root.State == Completed {
		c.finished = append(c.finished, inst)
		if call != nil && !call.ended() {
			c.callDone(call, inst)
		}
	}
	if call != nil && call.child == inst {
		call.child = nil
	}
	c.history.ended = append(c.history.ended, inst)
	c.trimHistory()
}

// SetVariables writes variables into a scope, or propagates them from it outward.
func (c *Core) SetVariables(scope int64, vars Doc, local bool) (int64, error) {
	c.record(Record{Op: opSetVars, Key: scope, Vars: vars, Flag: local})
	e := c.elements[scope]
	if e == nil || e.ended() {
		return 0, reject("UPDATE", NotFound, "Expected to update variables for element with key '%d', but no such element was found", scope)
	}
	key := c.key()
	if local {
		c.mergeLocal(e, vars)
	} else {
		c.propagate(e, vars)
	}
	return key, nil
}

// ResultVariables are the root variables of an instance; with names only those.
func (c *Core) ResultVariables(inst *Instance, names []string) Doc { return inst.Root.visible(names) }

// Date renders a time as REST v2 does.
func Date(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Forever is the longest time a command can name; more milliseconds mean the same.
const Forever = 100 * 365 * 24 * time.Hour

// Milliseconds reads a time on the wire. What is beyond Forever, in either direction, is Forever.
func Milliseconds(n int64) time.Duration {
	const most = int64(Forever / time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}
