// Package bookings holds the script of the demo: one JSON file per booking.
// README.md beside the files says what their fields mean.
package bookings

import (
	"embed"
	"io/fs"
)

//go:embed *.json
var files embed.FS

// FS gives the files, at its root.
func FS() fs.FS { return files }
