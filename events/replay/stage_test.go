package replay_test

import (
	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
)

// stageOne commits one transaction with one message.
func (f *fixture) stageOne(m events.Message) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	if err := f.stage.Queue(b, events.Origin{BusinessKey: m.BusinessKey}, []events.Message{m}); err != nil {
		return err
	}
	b.Queue("COMMIT")
	if err := f.pool.SendBatch(f.ctx, b).Close(); err != nil {
		return err
	}
	f.stage.Wake()
	return nil
}
