-- One index for what is due and for what is parked or gone: every statement that writes the table opens all of them.
DROP INDEX {{schema}}.zeebe_command_due, {{schema}}.zeebe_command_odd;
CREATE INDEX zeebe_command_state ON {{schema}}.zeebe_command (state, next_at);
