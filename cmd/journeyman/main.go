// Command journeyman runs workers, the demo, the embedded engine and the
// operator's commands. Everything it does is in internal/cli; see `journeyman
// help exit-codes` for what its exit codes mean.
package main

import (
	"os"

	"github.com/vitrip/journeyman/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.Process())) }
