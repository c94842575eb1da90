-- When the account was last reopened after a rewind or a copy: nothing due before runs until an operator releases it.
ALTER TABLE account ADD COLUMN reopened_at timestamptz;
UPDATE installation SET epoch_min = 2, epoch_max = 2;
