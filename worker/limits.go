package worker

import "fmt"

// maxCode is the longest BPMN error code we send.
const maxCode = 200

func checkCode(code string) error {
	if code == "" || len(code) > maxCode {
		return fmt.Errorf("error code of %d bytes: want 1 to %d", len(code), maxCode)
	}
	for _, c := range code {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return fmt.Errorf("error code %q: want printable characters", code)
		}
	}
	return nil
}
