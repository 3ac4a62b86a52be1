package cli

import "fmt"

// actEnd is what came of one of several acts of an operator.
type actEnd struct {
	err      error
	happened string
	auditSeq int64
}

// tellActs tells what came of each act: the refused ones on stderr, with asJSON the results as one object. Its error is the exit code: that of
// the last refusal when none was done, [ExitPartly] when some were.
func tellActs(s Streams, asJSON bool, results any, ends []actEnd) error {
	if asJSON {
		if err := printJSON(s.Out, map[string]any{"results": results}); err != nil {
			return err
		}
	}
	var last error
	done := 0
	for _, e := range ends {
		if e.err != nil {
			last = e.err
			_, _ = fmt.Fprintln(s.Err, "journeyman:", plain(e.err.Error()))
			continue
		}
		done++
		if !asJSON {
			_, _ = fmt.Fprintf(s.Out, "%s; audit row %d\n", plain(e.happened), e.auditSeq)
		}
	}
	switch {
	case last == nil:
		return nil
	case done > 0:
		return exit(ExitPartly, errSilent)
	default:
		return &exitError{code: codeOf(deskExit(last)), err: errSilent}
	}
}
