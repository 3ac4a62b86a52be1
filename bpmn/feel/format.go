package feel

import (
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

// String renders v as FEEL text, as it stands in warnings: strings in quotes.
// Long lists and contexts are cut. It never fails.
func (v Value) String() string {
	var b strings.Builder
	writeFeel(&b, v, 0)
	return b.String()
}

const maxText = 1_000 // bytes of a value in a message

func writeFeel(b *strings.Builder, v Value, depth int) {
	if b.Len() > maxText || depth > 20 {
		b.WriteString("...")
		return
	}
	switch x := v.v.(type) {
	case string:
		if len(x) > maxText {
			x = x[:maxText]
		}
		b.WriteString(strconv.Quote(x))
	case []Value:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteString(", ")
			}
			if b.Len() > maxText {
				b.WriteString("...")
				break
			}
			writeFeel(b, item, depth+1)
		}
		b.WriteByte(']')
	case *contextValue:
		b.WriteByte('{')
		for i, k := range x.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if b.Len() > maxText {
				b.WriteString("...")
				break
			}
			b.WriteString(k)
			b.WriteString(": ")
			writeFeel(b, x.values[i], depth+1)
		}
		b.WriteByte('}')
	case *rangeValue:
		open, end := "(", ")"
		if x.fromClosed {
			open = "["
		}
		if x.toClosed {
			end = "]"
		}
		b.WriteString(open)
		writeFeel(b, x.from, depth+1)
		b.WriteString("..")
		writeFeel(b, x.to, depth+1)
		b.WriteString(end)
	default:
		b.WriteString(v.text())
	}
}

// text renders a value that is no list or context without quotes.
func (v Value) text() string {
	switch x := v.v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case *apd.Decimal:
		return numberText(x)
	case string:
		return x
	case date:
		return x.t.Format("2006-01-02")
	case clockTime:
		return timeText(x)
	case dateTime:
		nanos := time.Duration(x.t.Hour())*time.Hour + time.Duration(x.t.Minute())*time.Minute + time.Duration(x.t.Second())*time.Second + time.Duration(x.t.Nanosecond())
		text := x.t.Format("2006-01-02") + "T" + clockText(nanos)
		if x.local {
			return text
		}
		if name := zoneName(x.t.Location()); name != "" {
			return text + "@" + name
		}
		return text + x.t.Format("Z07:00")
	case time.Duration:
		return isotime.Duration{Days: int64(x / (24 * time.Hour)), Time: x % (24 * time.Hour)}.String()
	case months:
		if x == 0 {
			return "P0M"
		}
		return isotime.Duration{Months: int64(x)}.String()
	case *function:
		return "function(" + strings.Join(x.params, ", ") + ")"
	}
	return v.String()
}

func timeText(c clockTime) string {
	text := clockText(c.nanos)
	switch name := zoneName(c.loc); {
	case c.loc == nil:
		return text
	case name != "":
		return text + "@" + name
	}
	return text + time.Date(1970, 1, 1, 0, 0, 0, 0, c.loc).Format("Z07:00")
}

func clockText(nanos time.Duration) string {
	return time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).Add(nanos).Format("15:04:05.999999999")
}

// numberText writes plain digits; an exponent only where plain digits would be
// absurdly long.
func numberText(d *apd.Decimal) string {
	if d.IsZero() {
		return "0"
	}
	if d.Exponent > 40 || d.Exponent < -80 {
		return d.Text('E')
	}
	return d.Text('f')
}
