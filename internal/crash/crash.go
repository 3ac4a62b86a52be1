// Package crash holds the named points where a test or the demo may stop or
// kill a process.
//
// Points are compiled in always and cost one atomic load when nothing is
// armed. A point is armed in one of two ways: [Arm] makes the process kill
// itself with SIGKILL at the n-th matching hit, as a power cut would; [Hook]
// calls a function of the test, which may block to hold an interleaving open.
//
// Libraries only call [Point]. Only cmd and TestMain arm.
package crash

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// active is nil while nothing is armed.
var active atomic.Pointer[state] //nolint:gochecknoglobals // the one switch of the process

type state struct {
	mu    sync.Mutex
	kills []*kill
	hooks []*hook
	log   string
}

type kill struct {
	name, detail string
	left         int
}

type hook struct {
	name string
	fn   func(detail string)
}

// Point marks a place by name. detail says which piece of work is there (an
// operation id, a topic); it may be empty.
func Point(name, detail string) {
	if s := active.Load(); s != nil {
		s.hit(name, detail)
	}
}

func (s *state) hit(name, detail string) {
	s.mu.Lock()
	for _, k := range s.kills {
		if k.name != name || !strings.Contains(detail, k.detail) || k.left == 0 {
			continue
		}
		if k.left--; k.left == 0 {
			record(s.log, name, detail)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way; do not run on
		}
	}
	var call []func(string)
	for _, h := range s.hooks {
		if h.name == name {
			call = append(call, h.fn)
		}
	}
	s.mu.Unlock()
	for _, fn := range call {
		fn(detail)
	}
}

// record appends one line to the log file before the kill, so that the parent can count points that were hit.
func record(path, name, detail string) {
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%s\t%s\n", name, detail)
	_ = f.Close()
}

// Arm arms kills from a comma-separated list of "name[@detail][:n]": kill at
// the n-th hit (default 1) of the point whose detail contains the given text.
// Each kill appends "name<TAB>detail" to logPath first, when it is not empty.
func Arm(spec, logPath string) error {
	var kills []*kill
	for _, part := range strings.Split(spec, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		k := &kill{name: part, left: 1}
		if i := strings.LastIndex(part, ":"); i >= 0 {
			n, err := strconv.Atoi(part[i+1:])
			if err != nil || n < 1 {
				return fmt.Errorf("crash point %q: want name[@detail][:n] with n of 1 or more", part)
			}
			k.name, k.left = part[:i], n
		}
		if name, detail, ok := strings.Cut(k.name, "@"); ok {
			k.name, k.detail = name, detail
		}
		kills = append(kills, k)
	}
	change(func(s *state) { s.kills = append(s.kills, kills...); s.log = logPath })
	return nil
}

// Hook calls fn at every hit of the point until remove is called. fn runs on
// the goroutine that hit the point and may block.
func Hook(name string, fn func(detail string)) (remove func()) {
	h := &hook{name: name, fn: fn}
	change(func(s *state) { s.hooks = append(s.hooks, h) })
	return func() {
		change(func(s *state) {
			s.hooks = slices.DeleteFunc(s.hooks, func(o *hook) bool { return o == h })
		})
	}
}

// changing serialises writers; readers only load the pointer.
var changing sync.Mutex //nolint:gochecknoglobals // guards active

func change(edit func(*state)) {
	changing.Lock()
	defer changing.Unlock()
	s := active.Load()
	if s == nil {
		s = &state{}
	}
	s.mu.Lock()
	edit(s)
	s.mu.Unlock()
	active.Store(s)
}
