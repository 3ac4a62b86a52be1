package feel

import "strings"

// builtins holds the overloads of each built-in function by name. It is read only.
var builtins = table()

// kindLetters abbreviate parameter kinds in the tables; * takes anything.
var kindLetters = map[rune]Kind{
	'b': Boolean, 'n': Number, 's': String, 'l': List, 'c': Context, 'd': Date, 't': Time, 'z': DateTime,
	'p': Duration, 'y': Period, 'r': Range, 'f': Function, '0': Null,
}

type tableRow struct {
	// sig is "name(param: kinds, param?: kinds, param...: kinds)": ? marks an
	// optional parameter, ... one that repeats.
	sig string
	fn  func(m *machine, a []Value) Value
}

func table() map[string][]*builtin {
	out := map[string][]*builtin{}
	for _, rows := range [][]tableRow{logicTable, contextTable, convertTable, listTable, numberTable, stringTable, temporalTable, rangeTable} {
		for _, row := range rows {
			b := signature(row.sig)
			b.fn = row.fn
			out[b.name] = append(out[b.name], b)
		}
	}
	return out
}

func signature(sig string) *builtin {
	name, rest, _ := strings.Cut(sig, "(")
	b := &builtin{name: name}
	rest = strings.TrimSuffix(rest, ")")
	if rest == "" {
		return b
	}
	for item := range strings.SplitSeq(rest, ", ") {
		pname, kinds, _ := strings.Cut(item, ": ")
		optional := false
		if pname, optional = strings.CutSuffix(pname, "?"); !optional {
			b.min++
		}
		pname, b.variadic = strings.CutSuffix(pname, "...")
		p := param{name: pname}
		if kinds != "*" {
			for _, k := range kinds {
				p.kinds = append(p.kinds, kindLetters[k])
			}
		}
		b.params = append(b.params, p)
	}
	return b
}

// Functions returns the names of all built-in functions, unsorted.
func Functions() []string {
	out := make([]string, 0, len(builtins))
	for name := range builtins {
		out = append(out, name)
	}
	return out
}
