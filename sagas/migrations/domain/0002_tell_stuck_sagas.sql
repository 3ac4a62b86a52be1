-- Why a saga was last told to be stuck (spec S5): each reason is told once.
ALTER TABLE {{schema}}.saga ADD COLUMN stuck_told text NOT NULL DEFAULT '';
