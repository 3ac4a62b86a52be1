// Package promtext counts and measures in a process and renders that in the Prometheus text format, version 0.0.4. Libraries use it
// where a metrics SDK would be too much.
package promtext

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Family is one metric: a histogram with Buckets, a counter without. Labels must not hold ids or keys.
type Family struct {
	Name, Help string
	Labels     []string
	Buckets    []float64
}

// Seconds are buckets for how long handlers take, and for how late they begin.
func Seconds() []float64 { return []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 60, 300, 3600} }

// Meter counts in families. Make one with [New]. Safe for concurrent use.
type Meter struct {
	families []Family

	mu     sync.Mutex
	series map[string]map[string]*series // by name and rendered labels
}

type series struct {
	count  uint64
	sum    float64
	within []uint64 // per bucket, not cumulated
}

// New makes a meter of families, which are described from the beginning, also before anything was counted.
func New(families ...Family) *Meter {
	m := &Meter{families: families, series: map[string]map[string]*series{}}
	for _, f := range families {
		m.series[f.Name] = map[string]*series{}
	}
	return m
}

// Inc counts one under the values of the family's labels. The family must be the meter's.
func (m *Meter) Inc(f Family, values ...string) { m.Observe(f, 0, values...) }

// Observe notes a value.
func (m *Meter) Observe(f Family, v float64, values ...string) {
	labels := make([]string, len(f.Labels))
	for i, name := range f.Labels {
		labels[i] = name + "=" + strconv.Quote(values[i])
	}
	key := strings.Join(labels, ",")
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[f.Name][key]
	if s == nil {
		s = &series{within: make([]uint64, len(f.Buckets))}
		m.series[f.Name][key] = s
	}
	s.count++
	s.sum += v
	if i := slices.IndexFunc(f.Buckets, func(le float64) bool { return v <= le }); i >= 0 {
		s.within[i]++
	}
}

// Write renders all families.
func (m *Meter) Write(w io.Writer) error {
	var b strings.Builder
	m.mu.Lock()
	for _, f := range m.families {
		kind := "counter"
		if f.Buckets != nil {
			kind = "histogram"
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.Name, f.Help, f.Name, kind)
		for _, labels := range slices.Sorted(maps.Keys(m.series[f.Name])) {
			s := m.series[f.Name][labels]
			if f.Buckets == nil {
				fmt.Fprintf(&b, "%s{%s} %d\n", f.Name, labels, s.count)
				continue
			}
			below := uint64(0)
			for i, le := range f.Buckets {
				below += s.within[i]
				fmt.Fprintf(&b, "%s_bucket{%s,le=\"%g\"} %d\n", f.Name, labels, le, below)
			}
			fmt.Fprintf(&b, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %g\n%s_count{%s} %d\n", f.Name, labels, s.count, f.Name, labels, s.sum, f.Name, labels, s.count)
		}
	}
	m.mu.Unlock()
	_, err := io.WriteString(w, b.String())
	return err
}
