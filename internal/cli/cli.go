// Package cli is the command line of journeyman: one file per command, all
// built by [Main].
//
// Values come from flags, then from the environment variable that the flag's
// help names, then from the flag's default. Only this package reads the
// environment. Every command that a script may call takes --json and then
// prints exactly one JSON document on standard output; messages for people go
// to standard error.
//
// # Exit codes
//
//	0    done
//	1    it ran and something is wrong: an audit found faults, a model has errors, the act failed
//	2    the command line is wrong: unknown command or flag, missing or bad value
//	3    partly done: some of many items failed
//	4    something needed is missing or does not answer: PostgreSQL, broker, engine
//	130  ended by an interrupt (Ctrl-C)
//	143  ended by SIGTERM before it was done
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

// Exit codes. They are part of the command's contract; see the package comment.
const (
	ExitDone        = 0
	ExitWrong       = 1
	ExitUsage       = 2
	ExitPartly      = 3
	ExitMissing     = 4
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// Streams is everything of the process that a command may touch.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(name string) string
	Terminal bool             // Out is a terminal
	Signals  <-chan os.Signal // interrupts and terminations; nil = none
	Exit     func(code int)   // ends the process at once, for a second signal
}

// Process gives the streams, environment and signals of this process.
func Process() Streams {
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	stat, err := os.Stdout.Stat()
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Terminal: err == nil && stat.Mode()&os.ModeCharDevice != 0,
		Signals:  c, Exit: os.Exit,
	}
}

// exitError carries an exit code with an error.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exit wraps err so that the process ends with code; nil stays nil.
func exit(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// errSilent says that everything was said already.
var errSilent = errors.New("")

// Main runs one command line, without the program's name, and returns the exit
// code. The first signal cancels the command, which then drains or cleans up;
// a second one ends the process at once.
func Main(args []string, s Streams) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go watchSignals(s, cancel, done)

	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var stop *stopped
	if errors.As(context.Cause(ctx), &stop) && (errors.Is(err, context.Canceled) || errors.Is(err, errStopped)) {
		return stop.code()
	}
	if err == nil {
		return ExitDone
	}
	if text := err.Error(); text != "" {
		_, _ = fmt.Fprintln(s.Err, "journeyman:", text)
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return ExitUsage // cobra's own errors are all about the command line
}

// errStopped is returned by a command that a signal ended before its work was done.
var errStopped = errors.New("stopped by a signal")

// stopped is the cause of a cancelled command context.
type stopped struct{ signal os.Signal }

func (s *stopped) Error() string { return "got " + s.signal.String() }

func (s *stopped) code() int {
	if s.signal == os.Interrupt {
		return ExitInterrupted
	}
	return ExitTerminated
}

func watchSignals(s Streams, cancel context.CancelCauseFunc, done <-chan struct{}) {
	var first *stopped
	for {
		select {
		case <-done:
			return
		case sig := <-s.Signals:
			if first != nil {
				s.Exit(first.code())
				return
			}
			first = &stopped{signal: sig}
			cancel(first)
		}
	}
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "journeyman",
		Short: "Zeebe job workers with sagas: one fact in process, database and events",
		Long: `Journeyman runs Go functions as Camunda 8 (Zeebe) job workers. What a worker did,
what it told the process and what it published are one fact, whatever crashes in between.

Start with "journeyman demo".`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd, s.Getenv) },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newDemo(s), newRun(s), newAPI(s), newEngine(s), newMigrate(s), newBPMN(s), newEvents(s), newGenerate(s), newNew(s), newTest(s), newVersion(s), newExitCodes(),
	)
	root.AddCommand(operatorCommands(s)...)
	return root
}

// newLog makes the process's logger: JSON lines on standard error.
func newLog(s Streams, service, level string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil || level == "" {
		return zerolog.Nop(), exit(ExitUsage, fmt.Errorf("log level %q: want trace, debug, info, warn, error or disabled", level))
	}
	return zerolog.New(s.Err).Level(l).With().Timestamp().Str("service_name", service).Logger(), nil
}
