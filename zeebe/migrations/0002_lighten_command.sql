-- PostgreSQL reads the text of each CHECK anew in every statement that writes the table. The values come from constants of this package alone.
ALTER TABLE {{schema}}.zeebe_command
    DROP CONSTRAINT zeebe_command_kind_check,
    DROP CONSTRAINT zeebe_command_state_check;
