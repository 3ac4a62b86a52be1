package engine

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
)

// Compat is the Zeebe version whose deployment rules apply.
type Compat string

// The versions. Behaviour is that of 8.8; Compat85 refuses newer model features at deploy.
const (
	Compat88 Compat = "8.8"
	Compat85 Compat = "8.5"
)

// Config configures [Start]. The zero value listens on free ports of 127.0.0.1.
type Config struct {
	Addr     string       // gRPC address; default "127.0.0.1:0"; not with Listener
	RESTAddr string       // REST address; default "127.0.0.1:0"
	Listener net.Listener // gRPC listener instead of Addr, for example bufconn; the engine closes it

	// RESTListener replaces RESTAddr. With Listener set and neither of the REST
	// fields, no REST server is started.
	RESTListener net.Listener

	// DataDir keeps the state in this directory: a log of commands and a snapshot.
	// Every answer waits until what it tells is on disk; one fsync serves all
	// callers that wait. One process may have it open. Empty: memory only.
	DataDir string

	// HistoryLimit is how many ended process instances are kept, with everything
	// in them, for searches; the one that ended first is forgotten first, called
	// instances count as their own. 0: DefaultHistoryLimit. Negative: all, and memory grows with
	// what was run. Running instances are always kept, however long. A search and a GET do not find
	// what is forgotten; commands answer as they do for what has ended.
	HistoryLimit int
	// HistoryAge is how long ended process instances are kept at most, by the
	// engine's clock. 0: for ever, within HistoryLimit.
	HistoryAge time.Duration

	Compat Compat         // default Compat88
	Log    zerolog.Logger // default: silent
}

func (c Config) validate() error {
	var errs []error
	if c.Addr != "" && c.Listener != nil {
		errs = append(errs, errors.New("engine: Addr and Listener are both set, want one"))
	}
	if c.RESTAddr != "" && c.RESTListener != nil {
		errs = append(errs, errors.New("engine: RESTAddr and RESTListener are both set, want one"))
	}
	if c.Compat != "" && c.Compat != Compat85 && c.Compat != Compat88 {
		errs = append(errs, fmt.Errorf("engine: Compat is %q, want %q or %q", c.Compat, Compat85, Compat88))
	}
	if c.HistoryAge < 0 {
		errs = append(errs, fmt.Errorf("engine: HistoryAge is %s, want 0 or more", c.HistoryAge))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.RESTAddr == "" && c.RESTListener == nil && c.Listener == nil {
		c.RESTAddr = "127.0.0.1:0"
	}
	if c.Addr == "" && c.Listener == nil {
		c.Addr = "127.0.0.1:0"
	}
	if c.Compat == "" {
		c.Compat = Compat88
	}
	if c.HistoryLimit == 0 {
		c.HistoryLimit = DefaultHistoryLimit
	}
	return c
}

// DefaultHistoryLimit is how many ended process instances are kept, unless Config.HistoryLimit says otherwise.
const DefaultHistoryLimit = 100_000

// Banner says what the engine is for; Start logs it, and commands that start an
// engine print it.
const Banner = "embedded engine: for development, tests and demonstrations only"
