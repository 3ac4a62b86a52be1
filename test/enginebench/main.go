// Command enginebench measures the embedded engine and prints one JSON object:
//
//	go run ./test/enginebench
//
// Client and engine are two processes. CompleteJob is compared with a bare gRPC
// call of the same messages inside the same run, in memory and with the state on
// disk; then the cost of idle long polls and streams, the memory of waiting
// instances, and the time from a created job to a streaming client. Progress
// goes to the standard error. It takes about two minutes and wants the machine
// for itself. Exit code 1: something could not be measured; a target that was
// missed is "met": false.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// figure is one measured value and what was promised.
type figure struct {
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target string  `json:"target,omitempty"`
	Met    *bool   `json:"met,omitempty"`
	Note   string  `json:"note,omitempty"`
}

func least(value, bound float64, unit, note string) figure {
	met := value >= bound
	return figure{value, unit, fmt.Sprintf("at least %g", bound), &met, note}
}

func below(value, bound float64, unit, note string) figure {
	met := value < bound
	return figure{value, unit, fmt.Sprintf("below %g", bound), &met, note}
}

type report struct {
	Go      string            `json:"go"`
	CPUs    int               `json:"cpus"`
	Callers int               `json:"callers"`
	Took    string            `json:"took"`
	Figures map[string]figure `json:"figures"`
}

func main() {
	serve := flag.String("serve", "", "be the other process: engine or bare")
	data := flag.String("data", "", "with -serve engine: the data directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch *serve {
	case "":
		err = measure(ctx, os.Stdout)
	case "engine":
		err = serveEngine(*data)
	case "bare":
		err = serveBare()
	default:
		err = fmt.Errorf("-serve %q: want engine or bare", *serve)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "enginebench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, out io.Writer) error {
	began := time.Now()
	r := report{Go: runtime.Version(), CPUs: runtime.NumCPU(), Callers: callers, Figures: map[string]figure{}}
	var errs []error
	for _, part := range []struct {
		name string
		run  func(context.Context, map[string]figure) error
	}{
		{"CompleteJob beside a bare call", completeJobs},
		{"idle long polls and streams", idle},
		{"waiting instances", waiting},
		{"created job to streaming client", streaming},
	} {
		fmt.Fprintf(os.Stderr, "%s ...\n", part.name)
		if err := part.run(ctx, r.Figures); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	r.Took = time.Since(began).Round(time.Second).String()
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return errors.Join(append(errs, enc.Encode(r))...)
}
