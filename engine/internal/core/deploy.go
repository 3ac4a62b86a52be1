package core

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

// Resource is one file of a deployment.
type Resource struct {
	Name    string
	Content []byte
}

// Deployment is the answer to a deployment.
type Deployment struct {
	Key       int64
	Processes []*Process
}

// Deploy checks and compiles all resources and deploys them together; one
// mistake refuses them all. A resource equal to its latest version keeps key and version.
func (c *Core) Deploy(resources []Resource, compat85 bool) (Deployment, error) {
	c.record(Record{Op: opDeploy, Resources: resources, Flag: compat85})
	const intent = "CREATE"
	if len(resources) == 0 {
		return Deployment{}, reject(intent, InvalidArgument, "Expected to deploy at least one resource, but none given")
	}
	var (
		compiled []*Process
		problems []string
		ids      = map[string]string{}
	)
	for _, r := range resources {
		procs, errs := compileResource(r, compat85)
		for _, e := range errs {
			problems = append(problems, e.Error())
		}
		for _, p := range procs {
			if other, dup := ids[p.ID]; dup {
				problems = append(problems, fmt.Sprintf("Duplicated process id in resources '%s' and '%s'", other, r.Name))
			}
			ids[p.ID] = r.Name
		}
		compiled = append(compiled, procs...)
	}
	if len(problems) == 0 && len(compiled) == 0 {
		problems = append(problems, fmt.Sprintf("'%s': Expected at least one executable process", resources[0].Name))
	}
	if len(problems) == 0 {
		problems = c.checkStarts(compiled)
	}
	if len(problems) > 0 {
		return Deployment{}, reject(intent, InvalidArgument, "Expected to deploy new resources, but encountered the following errors:\n%s", strings.Join(problems, "\n"))
	}
	d := Deployment{Key: c.key()}
	for _, p := range compiled {
		d.Processes = append(d.Processes, c.install(p, d.Key))
	}
	return d, nil
}

func compileResource(r Resource, compat85 bool) ([]*Process, []error) {
	fail := func(errs []error) ([]*Process, []error) {
		for i, e := range errs {
			errs[i] = fmt.Errorf("'%s': %w", r.Name, e)
		}
		return nil, errs
	}
	lower := strings.ToLower(r.Name)
	if !strings.HasSuffix(lower, ".bpmn") && !strings.HasSuffix(lower, ".bpmn20.xml") && !strings.HasSuffix(lower, ".xml") {
		return fail([]error{fmt.Errorf("unknown resource type: the embedded engine deploys .bpmn files")})
	}
	defs, err := bpmn.Parse(bytes.NewReader(r.Content))
	if err == nil {
		err = defs.Check()
	}
	if err != nil {
		var errs []error
		for _, e := range bpmn.Errors(err) {
			errs = append(errs, e)
		}
		if len(errs) == 0 {
			errs = append(errs, err)
		}
		return fail(errs)
	}
	var (
		out  []*Process
		errs []error
	)
	for _, p := range defs.Processes {
		if !p.Executable {
			continue
		}
		cp, refused := compile(defs, p, compat85)
		for _, e := range refused {
			errs = append(errs, e)
		}
		cp.Resource, cp.XML, cp.checksum = r.Name, r.Content, sha256.Sum256(r.Content)
		out = append(out, cp)
	}
	if len(errs) > 0 {
		return fail(errs)
	}
	return out, nil
}

// checkStarts evaluates what start events need, before anything is deployed.
func (c *Core) checkStarts(procs []*Process) []string {
	var problems []string
	for _, p := range procs {
		for _, s := range p.root.starts {
			if _, err := c.prepareStart(s); err != nil {
				problems = append(problems, fmt.Sprintf("'%s': %q: %v", p.Resource, s.ID, err))
			}
		}
	}
	return problems
}

// install registers p, or returns the deployed version it is a duplicate of.
func (c *Core) install(p *Process, deployment int64) *Process {
	versions := c.processes[p.ID]
	if n := len(versions); n > 0 {
		latest := versions[n-1]
		if latest.checksum == p.checksum && latest.Resource == p.Resource {
			return latest
		}
	}
	c.lastVersion[p.ID]++
	p.Version = c.lastVersion[p.ID]
	p.Key, p.Deployment, p.At = c.key(), deployment, c.now
	c.processes[p.ID] = append(versions, p)
	c.byKey[p.Key] = p
	c.procOrder = append(c.procOrder, p)
	c.openStarts(p)
	return p
}

// openStarts replaces the start event subscriptions of the process id by those of p.
func (c *Core) openStarts(p *Process) {
	for _, s := range c.starts[p.ID] {
		c.closeStart(s)
	}
	var open []*Subscription
	for _, n := range p.root.starts {
		s, err := c.prepareStart(n)
		if err != nil || s == nil {
			continue // checkStarts has refused errors
		}
		open = append(open, s)
		switch n.event {
		case bpmn.EventMessage:
			c.startSubs[s.name] = append(c.startSubs[s.name], s)
		case bpmn.EventSignal:
			c.signals[s.name] = append(c.signals[s.name], s)
		case bpmn.EventTimer:
			c.arm(s)
		}
	}
	c.starts[p.ID] = open
}

func (c *Core) closeStart(s *Subscription) {
	if s.node.event == bpmn.EventMessage {
		s.closed = true
		drop(c.startSubs, s.name, s)
		return
	}
	c.close(s)
}

// prepareStart evaluates a start event without variables; nil for a none start event.
func (c *Core) prepareStart(n *Node) (*Subscription, error) {
	s := &Subscription{node: n}
	var err error
	switch n.event {
	case bpmn.EventMessage:
		s.name, err = n.message.name.text(c, noScope)
	case bpmn.EventSignal:
		s.name, err = n.signal.text(c, noScope)
	case bpmn.EventTimer:
		s.fire, err = c.evaluateTimer(n.timer, nil)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.Key = c.key()
	return s, nil
}
