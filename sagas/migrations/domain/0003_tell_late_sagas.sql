-- Which breaches of an SLA were told (spec S5, W14): "operation", "deadline", "manual", "step:<operation id>", each once.
ALTER TABLE {{schema}}.saga ADD COLUMN sla_told text[] NOT NULL DEFAULT '{}';
