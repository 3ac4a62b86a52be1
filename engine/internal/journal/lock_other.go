//go:build !unix

package journal

import (
	"errors"
	"os"
)

// lockDir refuses: without a lock two processes could write one directory.
func lockDir(string) (*os.File, error) {
	return nil, errors.New("data directory: not supported on this operating system: no file locks")
}
