INSERT INTO installation (system_identifier, epoch_min, epoch_max)
SELECT system_identifier::text, 1, 1 FROM pg_control_system();
