-- PostgreSQL reads the text of each CHECK anew in every statement that writes the table. The stager refuses keys that are empty or
-- too long and makes the shard itself.
ALTER TABLE {{schema}}.outbox DROP CONSTRAINT outbox_shard_check;
ALTER TABLE {{schema}}.outbox_key DROP CONSTRAINT outbox_key_business_key_check;
