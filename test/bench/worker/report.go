package main

import (
	"context"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/test/bench/rig"
)

// entrant is a contestant in the alternating runs.
type entrant struct {
	name    string
	c       contestant
	jobType string // "" = without Zeebe
	again   string // runs the operations of that entrant's last run once more
}

// compare is the alternating runs.
func compare(ctx context.Context, b *bench, s settings, r rig.Report) error {
	single, err := b.newOurs(ctx, "journeyman", 1)
	if err != nil {
		return err
	}
	grouped, batch := *single, *single
	grouped.group, batch.group, batch.batch = 0, 0, 50
	var all []entrant
	add := func(e entrant) {
		if s.wants(e.name) {
			all = append(all, e)
		}
	}
	add(entrant{name: "hand", c: handwritten{b}, jobType: "hand"})
	add(entrant{name: "single", c: single, jobType: "single"})
	add(entrant{name: "replay", c: single, jobType: "single", again: "single"})
	add(entrant{name: "grouped", c: &grouped, jobType: "grouped"})
	add(entrant{name: "batch", c: &batch, jobType: "batch"})
	add(entrant{name: "bare", c: bare{b}})
	if s.wants("river") {
		if err := (riverRun{b}).migrate(ctx); err != nil {
			return err
		}
		add(entrant{name: "river", c: riverRun{b}})
	}
	if s.wants("dbos") {
		d, err := b.newDBOS(ctx)
		if err != nil {
			return err
		}
		defer d.close() //nolint:errcheck // what it ran is measured
		add(entrant{name: "dbos", c: d})
	}
	runs := map[string][]measured{}
	for _, e := range all {
		if e.jobType != "" && e.again == "" {
			if _, err := b.engine.do(order{Op: "deploy", Type: e.jobType}); err != nil {
				return err
			}
		}
	}
	for i := range s.rounds + 1 {
		for _, e := range all {
			n, prefix := s.jobs, fmt.Sprint(e.name, i)
			if e.again != "" {
				prefix = fmt.Sprint(e.again, i)
			}
			if i == 0 { // warm: connections, statements, the handler's pace
				n = max(n/8, 200)
			}
			m, err := b.measure(ctx, e.c, e.jobType, prefix, n)
			if err != nil {
				return err
			}
			if i > 0 {
				runs[e.name] = append(runs[e.name], m)
			}
		}
	}
	rate, cpu := measured.rate, measured.cpuPerJob
	for _, e := range all {
		key := map[string]string{"hand": "_handwritten", "single": ""}
		suffix, ok := key[e.name]
		if !ok {
			suffix = "_" + e.name
		}
		r["jobs_per_s"+suffix] = rig.Round(each(runs[e.name], rate))
		r["cpu_us_per_job"+suffix] = rig.Round(each(runs[e.name], cpu))
		r["cpu_us_per_job_backends"+suffix] = rig.Round(each(runs[e.name], func(m measured) float64 { return m.cpu.backends.Seconds() * 1e6 / float64(m.n) }))
	}
	for _, c := range []struct {
		field, over, under string
		f                  func(measured) float64
	}{
		{"cpu_ratio_per_job", "hand", "single", cpu},
		{"cpu_ratio_grouped", "hand", "grouped", cpu},
		{"cpu_ratio_batch", "hand", "batch", cpu},
		{"ratio_vs_handwritten", "single", "hand", rate},
		{"ratio_vs_bare", "single", "bare", rate},
		{"ratio_vs_bare_grouped", "grouped", "bare", rate},
		{"ratio_vs_river", "grouped", "river", rate},
		{"ratio_vs_dbos", "grouped", "dbos", rate},
		{"replay_ratio", "replay", "single", rate},
		{"replay_cpu_ratio", "single", "replay", cpu},
	} {
		if len(runs[c.over]) > 0 && len(runs[c.under]) > 0 {
			r[c.field] = rig.Round(ratio(runs[c.over], runs[c.under], c.f))
		}
	}
	if s.wants("single") {
		r["allocs_per_job"] = rig.Round(each(runs["single"], func(m measured) float64 { return float64(m.allocs) / float64(m.n) }))
	}
	if s.wants("grouped") {
		r["allocs_per_job_grouped"] = rig.Round(each(runs["grouped"], func(m measured) float64 { return float64(m.allocs) / float64(m.n) }))
	}
	return nil
}

// aged compares a schema full of old operations with an empty one.
func aged(ctx context.Context, b *bench, s settings, r rig.Report) error {
	if !s.wants("old") {
		return nil
	}
	var two [2]*ours
	for i, schema := range []string{"empty", "aged"} {
		var err error
		if two[i], err = b.newOurs(ctx, schema, 1); err != nil {
			return err
		}
		if _, err := b.engine.do(order{Op: "deploy", Type: schema}); err != nil {
			return err
		}
	}
	if err := two[1].age(ctx, s.old); err != nil {
		return err
	}
	var runs [2][]measured
	for i := range s.rounds + 1 {
		for at, o := range two {
			m, err := b.measure(ctx, o, o.schema, fmt.Sprint(o.schema, i), s.jobs)
			if err != nil {
				return err
			}
			if i > 0 {
				runs[at] = append(runs[at], m)
			}
		}
	}
	r["old_rows_ratio"] = rig.Round(ratio(runs[1], runs[0], measured.rate))
	r["old_rows_cpu_ratio"] = rig.Round(ratio(runs[0], runs[1], measured.cpuPerJob))
	return nil
}

// latency is an open loop at a rate far from saturation, with the worker's defaults.
func latency(ctx context.Context, b *bench, s settings, r rig.Report) error {
	if !s.wants("latency") {
		return nil
	}
	o, err := b.newOurs(ctx, "journeyman", 0)
	if err != nil {
		return err
	}
	if _, err := b.engine.do(order{Op: "deploy", Type: "latency"}); err != nil {
		return err
	}
	const rate = 200
	n := 10 * rate
	if s.quick {
		n = 3 * rate
	}
	return o.run(ctx, "latency", n, func() error {
		if _, err := b.engine.do(order{Op: "offer", Type: "latency", Prefix: "warm", N: rate, Rate: rate}); err != nil {
			return err
		}
		a, err := b.engine.do(order{Op: "offer", Type: "latency", Prefix: "latency", N: n, Rate: rate})
		r["created_to_completed_p50_ms"], r["created_to_completed_p99_ms"], r["created_per_s"] = rig.Round(a.P50), rig.Round(a.P99), rate
		return err
	})
}

func idleTypes(_ context.Context, b *bench, s settings, r rig.Report) error {
	if !s.wants("idle") {
		return nil
	}
	// Polls beside the streams of 200 types slow down to one in twenty to forty seconds a type, a minute after the start.
	settle, during := 45*time.Second, 12*time.Second
	if s.quick {
		settle, during = 13*time.Second, 6*time.Second
	}
	percent, bytes, err := b.idle(200, settle, during)
	r["idle_types"], r["idle_types_core_percent"], r["idle_types_bytes"] = 200, rig.Round(percent), bytes
	return err
}
