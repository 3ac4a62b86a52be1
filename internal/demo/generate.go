package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// generate makes the bookings beyond the script: mostly plain, some that a supplier refuses. The seed fixes them.
func generate(cfg Config, script []Booking) ([]Booking, error) {
	n := generated
	if cfg.Bookings > 0 {
		n = max(0, cfg.Bookings-len(script))
	}
	if template(script).Name == "" {
		return nil, errors.New("the script has no plain tour booking to generate others from")
	}
	load, err := extra(n, template(script), 0)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(uint64(cfg.Seed), 1)) //nolint:gosec // for variety, not for secrets
	for i := range load {
		switch random.IntN(10) {
		case 0:
			load[i].About = "the transfer is not to be had"
			load[i].Faults = []Fault{{Segment: "transfer", Action: "reserve", Do: "refuse", Code: "SOLD_OUT"}}
			load[i].Expect = Expect{States: []string{"failed"}}
		case 1:
			load[i].About = "the card is declined"
			load[i].Faults = []Fault{{Segment: "payment", Action: "authorize", Do: "refuse", Code: "PAYMENT_DECLINED"}}
			load[i].Expect = Expect{States: []string{"failed"}}
		case 2:
			load[i].About = "the flight supplier fails once"
			load[i].Faults = []Fault{{Segment: "out", Action: "reserve", Do: "fail"}}
		}
	}
	return load, nil
}

// template is the first tour booking of the script that nothing happens to, the zero Booking when there is none.
func template(script []Booking) Booking {
	for _, b := range script {
		if b.Type == "tour-booking" && len(b.Faults) == 0 && b.Repeat < 2 && !b.Alone && b.Expect.States[0] == "completed" {
			return b
		}
	}
	return Booking{}
}

// extra makes n plain bookings, numbered from first + 1.
func extra(n int, template Booking, first int) ([]Booking, error) {
	var body map[string]any
	if err := json.Unmarshal(template.Body, &body); err != nil {
		return nil, err
	}
	out := make([]Booking, n)
	for i := range out {
		number := first + i + 1
		body["booking"] = fmt.Sprintf("G-%05d", number)
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		out[i] = Booking{
			Name: fmt.Sprintf("generated %d", number), About: "a plain booking", Tenant: template.Tenant,
			Key: fmt.Sprintf("generated-%d", number), Type: template.Type, Body: raw, Expect: Expect{States: []string{"completed"}},
		}
	}
	return out, nil
}

// points are the crash points of a kill plan, without what they are pinned to.
func points(plan []string) []string {
	out := make([]string, len(plan))
	for i, p := range plan {
		out[i], _, _ = strings.Cut(p, "@")
	}
	return out
}
