package events

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	domainName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`) //nolint:gochecknoglobals // compiled once
	wordName   = regexp.MustCompile(`^[a-z0-9_]+$`)                  //nolint:gochecknoglobals // compiled once
)

// PlatformDomain is always one of the domains (spec Z8).
const PlatformDomain = "platform"

const commandSuffix = "requested"

// irregular past participles that the ending does not show.
var irregular = []string{ //nolint:gochecknoglobals // constant list
	"sent", "paid", "held", "lost", "found", "begun", "undone", "done", "made", "kept", "set", "put", "met", "built", "bought", "sold",
	"read", "won", "told", "taken", "given", "withdrawn", "written", "broken", "chosen", "driven", "known", "grown", "shown", "drawn",
	"split", "cut", "reset", "left", "caught", "brought", "sought", "thrown", "frozen", "overdue", "gone", "seen", "spent", "stuck",
}

// CheckName refuses a message type that breaks the naming rules (spec E2):
//
//   - event: "<domain>.<entity>.<action>"; action in the past tense, not ending
//     in "_requested" or "_pending" nor being one of these words;
//   - command: "<target-domain>.<entity>.<imperative>.requested".
//
// domain is kebab-case and one of domains ([PlatformDomain] always is); the
// other words are of [a-z0-9_].
//
// "Past tense" is a heuristic: the last word of the action (after "_") ends in
// "ed" or is one of a short list of irregular participles such as "sent" or
// "paid". It catches "create" and "cancel", not every bad name; a participle
// that is missing in the list is refused, so that the list grows on purpose.
func CheckName(kind Kind, name string, domains []string) error {
	parts := strings.Split(name, ".")
	switch kind {
	case KindEvent:
		if len(parts) == 4 && parts[3] == commandSuffix {
			return fmt.Errorf("message type %q: is a command's name, but staged as an event", name)
		}
		if len(parts) != 3 {
			return fmt.Errorf("message type %q: has %d parts, want an event as <domain>.<entity>.<action>", name, len(parts))
		}
	case KindCommand:
		if len(parts) == 3 {
			return fmt.Errorf("message type %q: is an event's name, but staged as a command", name)
		}
		if len(parts) != 4 || parts[3] != commandSuffix {
			return fmt.Errorf("message type %q: want a command as <target-domain>.<entity>.<imperative>.%s", name, commandSuffix)
		}
	default:
		return fmt.Errorf("message type %q: kind %q, want %q or %q", name, kind, KindEvent, KindCommand)
	}
	if !domainName.MatchString(parts[0]) {
		return fmt.Errorf("message type %q: domain %q is not kebab-case", name, parts[0])
	}
	if parts[0] != PlatformDomain && !slices.Contains(domains, parts[0]) {
		return fmt.Errorf("message type %q: domain %q is not one of %s", name, parts[0], strings.Join(domains, ", "))
	}
	for _, word := range parts[1:] {
		if !wordName.MatchString(word) {
			return fmt.Errorf("message type %q: part %q, want only a-z, 0-9 and _", name, word)
		}
	}
	action := parts[2]
	last := action[strings.LastIndexByte(action, '_')+1:]
	if kind == KindCommand {
		if past(last) {
			return fmt.Errorf("message type %q: %q is in the past tense, want an imperative", name, action)
		}
		return nil
	}
	if last == "requested" || last == "pending" {
		return fmt.Errorf("message type %q: action %q must not be or end in %q: an event states what happened", name, action, last)
	}
	if !past(last) {
		return fmt.Errorf("message type %q: action %q is not in the past tense", name, action)
	}
	return nil
}

func past(word string) bool {
	return len(word) > 3 && strings.HasSuffix(word, "ed") || slices.Contains(irregular, word)
}

// Topic is the transport's topic of a message type and version: type + ".v" + version (spec E2).
func Topic(messageType string, version int) string {
	return messageType + ".v" + strconv.Itoa(version)
}

// Domain is the first part of a message type.
func Domain(messageType string) string {
	d, _, _ := strings.Cut(messageType, ".")
	return d
}

// Match reports whether a message type fits a pattern in which "*" stands for
// exactly one part, or, as the last part, for one or more (spec E6):
// "tour.*.confirmed", "tour.*".
func Match(pattern, messageType string) bool {
	p, m := strings.Split(pattern, "."), strings.Split(messageType, ".")
	for i, part := range p {
		if i >= len(m) {
			return false
		}
		if part == "*" && i == len(p)-1 {
			return true
		}
		if part != "*" && part != m[i] {
			return false
		}
	}
	return len(p) == len(m)
}
