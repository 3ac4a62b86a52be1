package isotime_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want isotime.Duration
		text string
	}{
		{"PT10S", isotime.Duration{Time: 10 * time.Second}, "PT10S"},
		{"PT0S", isotime.Duration{}, "PT0S"},
		{"P1DT2H", isotime.Duration{Days: 1, Time: 2 * time.Hour}, "P1DT2H"},
		{"P1Y6M", isotime.Duration{Months: 18}, "P1Y6M"},
		{"P2W", isotime.Duration{Days: 14}, "P14D"},
		{"PT1.5S", isotime.Duration{Time: 1500 * time.Millisecond}, "PT1.5S"},
		{"-PT5M", isotime.Duration{Time: -5 * time.Minute}, "-PT5M"},
		{"PT-0.5S", isotime.Duration{Time: -500 * time.Millisecond}, "-PT0.5S"},
		{"P1Y2M3DT4H5M6S", isotime.Duration{Months: 14, Days: 3, Time: 4*time.Hour + 5*time.Minute + 6*time.Second}, "P1Y2M3DT4H5M6S"},
	} {
		got, err := isotime.ParseDuration(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseDuration(%q) = %+v, %v, want %+v", c.in, got, err, c.want)
		}
		if got.String() != c.text {
			t.Errorf("%q.String() = %q, want %q", c.in, got, c.text)
		}
	}
	for _, in := range []string{"", "P", "PT", "10S", "PT10", "P1S", "PT1D", "PT1S1M", "P1.5D", "PT1.S", "P1Y1Y", "1 hour", "PT9999999999999999H", "PT1.1234567891S", "P--1D"} {
		if d, err := isotime.ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %+v, want an error", in, d)
		}
	}
}

func TestDuration_AddTo(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := isotime.ParseDateTime(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ from, d, want string }{
		{"2026-01-31T10:00:00Z", "P1M", "2026-02-28T10:00:00Z"},
		{"2024-02-29T00:00:00Z", "P1Y", "2025-02-28T00:00:00Z"},
		{"2026-03-31T00:00:00Z", "-P1M", "2026-02-28T00:00:00Z"},
		{"2026-11-30T23:59:30Z", "PT45S", "2026-12-01T00:00:15Z"},
		{"2026-01-15T00:00:00Z", "-P14M", "2024-11-15T00:00:00Z"},
		{"2026-03-28T12:00:00+01:00[Europe/Berlin]", "P1D", "2026-03-29T12:00:00+02:00"},
		{"2026-03-28T12:00:00+01:00[Europe/Berlin]", "PT24H", "2026-03-29T13:00:00+02:00"},
	} {
		d, err := isotime.ParseDuration(c.d)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.AddTo(at(c.from)); !got.Equal(at(c.want)) {
			t.Errorf("%s + %s = %s, want %s", c.from, c.d, got, c.want)
		}
	}
}

func TestParseDateTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"2026-11-30T10:00:00Z", "2026-11-30T10:00:00Z"}, {"2026-11-30T10:00Z", "2026-11-30T10:00:00Z"}, {"2026-11-30T10:00:00.123+01:00", "2026-11-30T09:00:00.123Z"},
		{"2026-11-30T10:00:00+01:00[Europe/Berlin]", "2026-11-30T09:00:00Z"}, {"2026-07-30T10:00:00@Europe/Berlin", "2026-07-30T08:00:00Z"},
	} {
		got, err := isotime.ParseDateTime(c.in)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != c.want {
			t.Errorf("ParseDateTime(%q) = %v, %v, want %s", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"", "2026-11-30", "2026-11-30T10:00:00", "2026-02-30T10:00:00Z", "2026-11-30T25:00:00Z", "2026-11-30T10:00:00+99:00", "2026-11-30T10:00:00[Mars/Base]", "2026-11-30T10:00:00@", "tomorrow"} {
		if got, err := isotime.ParseDateTime(in); err == nil {
			t.Errorf("ParseDateTime(%q) = %v, want an error", in, got)
		}
	}
}

func TestParseCycle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		next string // after 2026-11-30T10:00:00Z
	}{
		{"R3/PT10S", 3, "2026-11-30T10:00:10Z"}, {"R/PT1H", isotime.Forever, "2026-11-30T11:00:00Z"}, {"R0/PT1S", 0, "2026-11-30T10:00:01Z"},
		{"R5/2026-12-01T00:00:00Z/P1M", 5, "2026-12-30T10:00:00Z"}, {"R-1/PT1S", isotime.Forever, "2026-11-30T10:00:01Z"},
		{"0 0 9-17 * * MON-FRI", isotime.Forever, "2026-11-30T11:00:00Z"}, {"@daily", isotime.Forever, "2026-12-01T00:00:00Z"},
		{"0 */15 * * * *", isotime.Forever, "2026-11-30T10:15:00Z"}, {"0 0 0 L * *", isotime.Forever, "2026-12-31T00:00:00Z"},
		{"30 5 4 29 2 ?", isotime.Forever, "2028-02-29T04:05:30Z"}, {"0 0 0 30 2 *", isotime.Forever, "0001-01-01T00:00:00Z"}, {"0 0 12 * * 7", isotime.Forever, "2026-12-06T12:00:00Z"},
	} {
		got, err := isotime.ParseCycle(c.in)
		if err != nil {
			t.Errorf("ParseCycle(%q): %v", c.in, err)
			continue
		}
		if got.Repetitions != c.n {
			t.Errorf("%q: %d repetitions, want %d", c.in, got.Repetitions, c.n)
		}
		if next := got.Next(time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)).Format(time.RFC3339); next != c.next {
			t.Errorf("%q: next %s, want %s", c.in, next, c.next)
		}
	}
	for _, in := range []string{"", "R", "R3", "R3/", "Rx/PT1S", "R-2/PT1S", "R3/2026/PT1S", "R1/a/b/c", "* * * * *", "60 * * * * *", "0 0 0 * * FOO", "0 0 0 5-1 * *", "0 0/0 * * * *", "@often"} {
		if got, err := isotime.ParseCycle(in); err == nil {
			t.Errorf("ParseCycle(%q) = %+v, want an error", in, got)
		}
	}
	c, err := isotime.ParseCycle("R5/2026-12-01T00:00:00Z/PT1H")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("R5/2026-12-01T00:00:00Z/PT1H", c.String()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"R3/PT10S", "PT1.5S", "-P1Y2M3DT4H5M6S", "2026-11-30T10:00:00+01:00[Europe/Berlin]", "0 0 9-17 * * MON-FRI", "P-1DT-1H", "R/2026-12-01T00:00:00Z/P1M"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := isotime.ParseDuration(s); err == nil {
			if again, err := isotime.ParseDuration(d.String()); err != nil || again != d {
				t.Errorf("%q reads %+v, which is written %q and read back %+v, %v", s, d, d, again, err)
			}
		}
		if c, err := isotime.ParseCycle(s); err == nil {
			from := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
			if next := c.Next(from); c.Cron != nil && !next.IsZero() && !next.After(from) {
				t.Errorf("%q fires at %s, not after %s", s, next, from)
			}
		}
		_, _, _ = isotime.ParseLocalOrZoned(s)
	})
}
