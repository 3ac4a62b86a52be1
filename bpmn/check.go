package bpmn

import "errors"

// Check validates the model as Zeebe does at deployment and returns every
// mistake as a joined [*Error]; nil means that the model may be deployed.
func (d *Definitions) Check() error {
	errs := make([]error, 0, len(d.problems))
	for _, p := range d.problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
