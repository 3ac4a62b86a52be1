package core

import "fmt"

// Reason classifies a rejected command, as Zeebe's rejection types do.
type Reason string

// Rejection reasons; the gateway layers map them to gRPC codes and HTTP statuses.
const (
	NotFound        Reason = "NOT_FOUND"
	InvalidState    Reason = "INVALID_STATE"
	InvalidArgument Reason = "INVALID_ARGUMENT"
	AlreadyExists   Reason = "ALREADY_EXISTS"
)

// RejectedError is a command that changed nothing.
type RejectedError struct {
	Intent string // the command's intent, e.g. COMPLETE
	Reason Reason
	Text   string
}

// Error is the message clients see, in Zeebe's wording.
func (r *RejectedError) Error() string {
	return fmt.Sprintf("Command '%s' rejected with code '%s': %s", r.Intent, r.Reason, r.Text)
}

func reject(intent string, reason Reason, format string, args ...any) error {
	return &RejectedError{intent, reason, fmt.Sprintf(format, args...)}
}
