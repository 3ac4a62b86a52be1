package sagas

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limits are the times of an operation type that configuration may change (spec I5). Zero fields leave what the type says.
type Limits struct {
	Timeout   time.Duration // of the saga
	Retention time.Duration // of the final answer, from the end
	SLA       time.Duration // when an operation is late
	Estimate  time.Duration // shown to partners
	StepSLA   map[string]time.Duration
}

// ReadLimits reads limits by operation type from YAML. Durations are Go's, or days:
//
//	tour-booking: {timeout: 30m, retention: 30d, sla: 10m, step_sla: {hotel.reserve: 5m}}
//	refund:       {timeout: 1h, retention: 90d}
func ReadLimits(r io.Reader) (map[string]Limits, error) {
	var doc map[string]struct {
		Timeout, Retention, SLA, Estimate span
		StepSLA                           map[string]span `yaml:"step_sla"`
	}
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("operation limits: %w", err)
	}
	out := map[string]Limits{}
	for name, l := range doc {
		limits := Limits{Timeout: time.Duration(l.Timeout), Retention: time.Duration(l.Retention), SLA: time.Duration(l.SLA), Estimate: time.Duration(l.Estimate)}
		for job, sla := range l.StepSLA {
			if limits.StepSLA == nil {
				limits.StepSLA = map[string]time.Duration{}
			}
			limits.StepSLA[job] = time.Duration(sla)
		}
		out[name] = limits
	}
	return out, nil
}

// span is a duration in YAML, more than zero.
type span time.Duration

// UnmarshalYAML reads "30d" or what time.ParseDuration reads.
func (s *span) UnmarshalYAML(n *yaml.Node) error {
	var days int
	if k, err := fmt.Sscanf(n.Value, "%dd", &days); err == nil && k == 1 && fmt.Sprintf("%dd", days) == n.Value && days > 0 && days <= 36500 {
		*s = span(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil || d <= 0 {
		return fmt.Errorf("line %d: %q is no duration such as 30m or 90d", n.Line, n.Value)
	}
	*s = span(d)
	return nil
}

// limited gives the type with what configuration says.
func (t Type) limited(l Limits) Type {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&t.Timeout, l.Timeout}, {&t.Retention, l.Retention}, {&t.SLA, l.SLA}, {&t.Estimate, l.Estimate}} {
		if f.value != 0 {
			*f.field = f.value
		}
	}
	if l.StepSLA != nil {
		t.StepSLA = maps.Clone(t.StepSLA)
		if t.StepSLA == nil {
			t.StepSLA = map[string]time.Duration{}
		}
		maps.Copy(t.StepSLA, l.StepSLA)
	}
	return t
}

// unknownLimits names limits of types that are not declared: a slip of the pen must not go unseen.
func unknownLimits(limits map[string]Limits, types []Type) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if !slices.ContainsFunc(types, func(t Type) bool { return t.Name == name }) {
			errs = append(errs, fmt.Errorf("sagas: Limits name operation type %q, which is not declared", name))
		}
	}
	return errors.Join(errs...)
}
