package generate

import (
	"fmt"
	"go/token"
	"strings"
	"unicode"
)

// initialisms are written in capitals, as golint asks.
var initialisms = map[string]string{ //nolint:gochecknoglobals // a table
	"id": "ID", "url": "URL", "uri": "URI", "http": "HTTP", "json": "JSON", "xml": "XML", "api": "API", "sla": "SLA", "uuid": "UUID", "sql": "SQL", "ip": "IP",
}

// goName makes an exported Go name from any text: words are split at what is
// no letter or digit and where a lower-case letter is followed by a capital.
func goName(text string) string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = nil
		}
	}
	shouting := strings.ToUpper(text) == text
	lower := false
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			flush()
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		if shouting {
			r = unicode.ToLower(r)
		}
		word = append(word, r)
	}
	flush()
	var b strings.Builder
	for _, w := range words {
		if known := initialisms[strings.ToLower(w)]; known != "" {
			b.WriteString(known)
			continue
		}
		r := []rune(w)
		r[0] = unicode.ToUpper(r[0])
		b.WriteString(string(r))
	}
	name := b.String()
	if name == "" || !unicode.IsUpper([]rune(name)[0]) {
		return "X" + name
	}
	return name
}

func isPackageName(s string) bool {
	return token.IsIdentifier(s) && s != "_" && s == strings.ToLower(s)
}

// names keeps the Go names of a package apart.
type names struct {
	used map[string]string // Go name → what it stands for
	errs []error
}

// take gives the Go name of what, and reports two things that would share one.
func (n *names) take(name, what string) string {
	if n.used == nil {
		n.used = map[string]string{}
	}
	if other, ok := n.used[name]; ok && other != what {
		n.errs = append(n.errs, fmt.Errorf("%s and %s would both be %s in Go: rename one", other, what, name))
	}
	n.used[name] = what
	return name
}

// Name gives the Go name that generated code has for a job type, an error code
// or a model: "flight.follow-up" is FlightFollowUp.
func Name(text string) string { return goName(text) }
