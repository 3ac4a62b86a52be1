package operator

import "context"

func (d *Desk) searchIncidents(ctx context.Context, f IncidentFilter) (IncidentList, error) {
	return IncidentList{}, ErrNoEngine
}
func (d *Desk) readIncident(ctx context.Context, key Key) (Incident, error) {
	return Incident{}, ErrNoEngine
}
func (d *Desk) jobTypes(ctx context.Context, all []Incident) error { return ErrNoEngine }
func (d *Desk) variableNames(ctx context.Context, i Incident) ([]string, error) {
	return nil, ErrNoEngine
}
func (d *Desk) searchElements(ctx context.Context, k Key) ([]Element, error) { return nil, ErrNoEngine }
