package json

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// collect lists the innermost faults. Values never appear: they may be personal.
func collect(e *jsonschema.ValidationError, faults *[]string) {
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			collect(c, faults)
		}
		return
	}
	at := "data"
	for _, step := range e.InstanceLocation {
		at += "." + step
	}
	add := func(field, format string, args ...any) {
		*faults = append(*faults, "field "+field+": "+fmt.Sprintf(format, args...))
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			add(at+"."+name, "missing")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add(at+"."+name, "not in the schema")
		}
	case *kind.Type:
		add(at, "is %s, want %s", k.Got, strings.Join(k.Want, " or "))
	case *kind.Enum:
		add(at, "want one of %v", k.Want)
	case *kind.Pattern:
		add(at, "want a match of %s", k.Want)
	case *kind.Format:
		add(at, "want the format %s", k.Want)
	case *kind.Minimum:
		add(at, "want at least %s", k.Want.RatString())
	case *kind.Maximum:
		add(at, "want at most %s", k.Want.RatString())
	case *kind.MinLength:
		add(at, "want at least %d characters", k.Want)
	case *kind.MaxLength:
		add(at, "want at most %d characters", k.Want)
	default:
		add(at, "breaks %s", strings.Join(e.ErrorKind.KeywordPath(), "/"))
	}
}
