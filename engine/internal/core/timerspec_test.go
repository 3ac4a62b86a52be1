package core

import (
	"testing"
	"time"
)

func TestParseInterval(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"PT15M": from.Add(15 * time.Minute), "P1DT2H": from.AddDate(0, 0, 1).Add(2 * time.Hour), "PT0S": from, "PT1.5S": from.Add(1500 * time.Millisecond),
		"P1Y": from.AddDate(1, 0, 0), "P2W": from.AddDate(0, 0, 14), "-PT1H": from.Add(-time.Hour), "PT-5M": from.Add(-5 * time.Minute),
	} {
		iv, err := parseInterval(text)
		if err != nil || !iv.after(from).Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, iv.after(from), err, want)
		}
	}
	for _, text := range []string{"", "P", "PT", "15M", "P1S", "PT1H2", "P1DT", "pt1h", "R/PT1H", "PT99999999999H", "PT1000001M", "PT9999999999999S"} {
		if iv, err := parseInterval(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, iv)
		}
	}
}

func TestParseCycle(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]firing{
		"R3/PT10S":                      {due: now.Add(10 * time.Second), repeats: 3},
		"R/PT1H":                        {due: now.Add(time.Hour), repeats: -1},
		"R-1/PT1H":                      {due: now.Add(time.Hour), repeats: -1},
		"R2/2025-01-01T00:00:00Z/PT1H":  {due: now, repeats: 2},
		"R2/2026-01-02T00:00:00Z/PT10M": {due: now.AddDate(0, 0, 1), repeats: 2},
	} {
		got, err := parseCycle(text, now)
		if err != nil || !got.due.Equal(want.due) || got.repeats != want.repeats {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "R", "R3", "Rx/PT1S", "R3/PT", "R/PT0S", "R3/PT0S", "R/PT-5M", "R/-PT1H", "R/P1M-40D", "R/PT0.0001S", "0 0 9 * *", "x 0 9 * * *", "R1/x/PT1S", "R1/2026-01-01T00:00:00Z/PT1S/x"} {
		if got, err := parseCycle(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestCron(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 23, 59, 30, 0, time.UTC) // a Saturday
	for text, want := range map[string]string{
		"@daily": "2026-02-01T00:00:00Z", "@hourly": "2026-02-01T00:00:00Z", "@weekly": "2026-02-01T00:00:00Z", "@yearly": "2027-01-01T00:00:00Z",
		"0 0 9 * * MON-FRI": "2026-02-02T09:00:00Z", "*/20 * * * * *": "2026-01-31T23:59:40Z", "0 30 8 1,15 * ?": "2026-02-01T08:30:00Z",
		"0 0 0 29 2 *": "2028-02-29T00:00:00Z", "0 0 12 * JUL *": "2026-07-01T12:00:00Z", "15 0 0 * * 7": "2026-02-01T00:00:15Z", "0 10/25 * * * *": "2026-02-01T00:10:00Z",
	} {
		c, err := parseCron(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.next(from).Format(time.RFC3339); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "* * * * *", "60 * * * * *", "0 0 0 31 2 *", "0 0 0 L * *", "*/0 * * * * *", "5-1 * * * * *", "a * * * * *", "@often"} {
		if c, err := parseCron(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, c)
		}
	}
}

func TestParseDate(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for _, text := range []string{"2026-03-01T08:00:00Z", "2026-03-01T09:00:00+01:00", "2026-03-01T09:00+01:00", "2026-03-01T09:00:00+01:00[Europe/Berlin]", "2026-03-01T09:00:00[Europe/Berlin]"} {
		got, err := parseDate(text)
		if err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2026-03-01", "2026-03-01T08:00:00", "2026-03-01T08:00:00[Nowhere/X]"} {
		if got, err := parseDate(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func FuzzTimerTexts(f *testing.F) {
	for _, s := range []string{"PT15M", "R3/PT10S", "2026-03-01T08:00:00Z", "R/2026-01-01T00:00:00Z/P1D"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := parseCycle(s, now); err == nil && c.cron == nil && !c.every.forward() {
			t.Errorf("%q is a cycle that does not go on", s)
		}
		if iv, err := parseInterval(s); err == nil {
			iv.after(now)
		}
		if d, err := parseDate(s); err == nil && d.Location() != time.UTC {
			t.Errorf("%q is not in UTC", s)
		}
	})
}
