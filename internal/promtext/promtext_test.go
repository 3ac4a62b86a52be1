package promtext_test

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/promtext"
)

func TestMeter(t *testing.T) {
	t.Parallel()
	took := promtext.Family{Name: "took_seconds", Help: "How long.", Labels: []string{"queue"}, Buckets: []float64{.1, 1}}
	done, none := promtext.Family{Name: "done_total", Help: "Done.", Labels: []string{"queue", "result"}}, promtext.Family{Name: "none_total", Help: "None."}
	m := promtext.New(took, done, none)
	for _, v := range []float64{.1, .5, 7} {
		m.Observe(took, v, "q")
	}
	m.Inc(done, "q", `a "b"`)
	m.Inc(done, "q", `a "b"`)
	var b strings.Builder
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{queue="q",le="0.1"} 1
took_seconds_bucket{queue="q",le="1"} 2
took_seconds_bucket{queue="q",le="+Inf"} 3
took_seconds_sum{queue="q"} 7.6
took_seconds_count{queue="q"} 3
# HELP done_total Done.
# TYPE done_total counter
done_total{queue="q",result="a \"b\""} 2
# HELP none_total None.
# TYPE none_total counter
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
