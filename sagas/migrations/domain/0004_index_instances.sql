-- Which saga stands behind an incident, by its process instance.
CREATE INDEX saga_instance ON {{schema}}.saga (process_instance_key) WHERE closed_at IS NULL;
