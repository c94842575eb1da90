-- The rows of the executor. Names of constraints are part of the interface: refusals are reported by them.

CREATE DOMAIN uint256 AS numeric
  CONSTRAINT uint256_range CHECK (VALUE >= 0 AND VALUE < 115792089237316195423570985008687907853269984665640564039457584007913129639936)
  CONSTRAINT uint256_whole CHECK (VALUE = trunc(VALUE) AND scale(VALUE) = 0);
CREATE DOMAIN hash32 AS bytea CONSTRAINT hash32_length CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN address20 AS bytea CONSTRAINT address20_length CHECK (octet_length(VALUE) = 20);

-- One row: whose database this is. Another system identifier or timeline means copied, restored or promoted (P13).
CREATE TABLE installation (
  singleton boolean PRIMARY KEY DEFAULT true CONSTRAINT installation_singleton CHECK (singleton),
  service text,
  system_identifier text NOT NULL,
  epoch_min integer NOT NULL,
  epoch_max integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT installation_epochs CHECK (epoch_min <= epoch_max)
);

CREATE TABLE account (
  account_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL CONSTRAINT account_name UNIQUE,
  chain_id bigint NOT NULL CONSTRAINT account_chain_id CHECK (chain_id >= 1),
  address address20 NOT NULL,
  cancel_digest hash32 NOT NULL,
  genesis_hash hash32,
  first_nonce bigint CONSTRAINT account_first_nonce CHECK (first_nonce >= 0),
  fence bigint NOT NULL DEFAULT 0 CONSTRAINT account_fence CHECK (fence >= 0),
  hold_xid xid8,
  timeline integer NOT NULL,
  state text NOT NULL DEFAULT 'open' CONSTRAINT account_state CHECK (state IN ('open', 'draining', 'halted')),
  reason text,
  attention text,
  max_in_flight integer NOT NULL CONSTRAINT account_max_in_flight CHECK (max_in_flight >= 1),
  reconciled_at timestamptz,
  CONSTRAINT account_identity UNIQUE (chain_id, address),
  CONSTRAINT account_cancel UNIQUE (account_id, cancel_digest),
  CONSTRAINT account_reason CHECK (state = 'open' OR reason IS NOT NULL)
) WITH (fillfactor = 50);

-- Who may work for an account now. Never deleted, the token only grows; expires_at is left without an index on purpose.
CREATE TABLE lease (
  account_id integer PRIMARY KEY REFERENCES account,
  token bigint NOT NULL DEFAULT 0,
  lease_id uuid NOT NULL,
  holder text,
  acquired_at timestamptz NOT NULL DEFAULT '-infinity',
  renewed_at timestamptz NOT NULL DEFAULT '-infinity',
  expires_at timestamptz NOT NULL DEFAULT '-infinity',
  CONSTRAINT lease_token UNIQUE (account_id, token)
) WITH (fillfactor = 50);

-- Every holder there ever was; every guarded row points to one, so that G6 can be proved from the rows.
CREATE TABLE lease_generation (
  account_id integer NOT NULL REFERENCES account,
  token bigint NOT NULL CONSTRAINT lease_generation_token CHECK (token > 0),
  lease_id uuid NOT NULL,
  holder text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (account_id, token)
);

CREATE TABLE strategy (
  name text PRIMARY KEY,
  account_id integer NOT NULL REFERENCES account,
  plan text NOT NULL,
  schedule text,
  every_seconds double precision,
  timezone text NOT NULL,
  misfire text NOT NULL CONSTRAINT strategy_misfire CHECK (misfire IN ('latest', 'skip', 'all')),
  overlap text NOT NULL CONSTRAINT strategy_overlap CHECK (overlap IN ('skip', 'allow')),
  start_deadline_seconds double precision,
  inclusion_deadline_seconds double precision,
  params jsonb NOT NULL,
  input jsonb,
  revision text NOT NULL,
  high_water_mark timestamptz NOT NULL,
  next_due_at timestamptz,
  pruned_through timestamptz NOT NULL DEFAULT '-infinity',
  tzdata_version text,
  paused_at timestamptz,
  paused_why text,
  retired_at timestamptz,
  registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT strategy_one_schedule CHECK (schedule IS NULL OR every_seconds IS NULL)
);
CREATE INDEX strategy_due ON strategy (next_due_at) WHERE paused_at IS NULL AND retired_at IS NULL;

CREATE TABLE execution (
  execution_id text PRIMARY KEY,
  strategy text NOT NULL REFERENCES strategy,
  slot timestamptz,
  trigger_key text,
  reissue_no integer NOT NULL DEFAULT 0 CONSTRAINT execution_reissue_no CHECK (reissue_no >= 0),
  account_id integer NOT NULL REFERENCES account,
  revision text NOT NULL,
  input jsonb,
  payload_digest hash32 NOT NULL,
  state text NOT NULL,
  reason text,
  evidence jsonb,
  due_at timestamptz NOT NULL,
  expires_at timestamptz,
  planning_attempts integer NOT NULL DEFAULT 0,
  retry_at timestamptz,
  plan_order text CONSTRAINT execution_plan_order CHECK (plan_order IN ('together', 'final', 'mined')),
  plan_block_number bigint,
  plan_block_hash hash32,
  steps integer CONSTRAINT execution_steps CHECK (steps >= 0),
  steps_effective integer,
  token bigint,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  planned_at timestamptz,
  ended_at timestamptz,
  CONSTRAINT execution_account UNIQUE (execution_id, account_id),
  CONSTRAINT execution_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation,
  CONSTRAINT execution_origin CHECK ((slot IS NULL) <> (trigger_key IS NULL)),
  CONSTRAINT execution_state CHECK (state IN ('PENDING', 'PLANNED', 'RUNNING', 'SUCCEEDED', 'PARTIAL', 'REVERTED',
                                              'CANCELLED', 'PARKED', 'SKIPPED', 'FAILED')),
  CONSTRAINT execution_ended CHECK ((ended_at IS NOT NULL) = (state IN ('SUCCEEDED', 'PARTIAL', 'REVERTED', 'CANCELLED', 'SKIPPED', 'FAILED'))),
  CONSTRAINT execution_planned CHECK (state NOT IN ('PLANNED', 'RUNNING', 'SUCCEEDED', 'PARTIAL', 'REVERTED')
                                      OR (steps >= 1 AND plan_order IS NOT NULL AND planned_at IS NOT NULL AND token IS NOT NULL)),
  CONSTRAINT execution_counted CHECK (state NOT IN ('SUCCEEDED', 'PARTIAL', 'REVERTED') OR steps_effective IS NOT NULL),
  CONSTRAINT execution_parked_evidence CHECK (state <> 'PARKED' OR (evidence IS NOT NULL AND reason IS NOT NULL)),
  CONSTRAINT execution_told CHECK (state NOT IN ('SKIPPED', 'FAILED') OR reason IS NOT NULL)
) WITH (fillfactor = 70);
-- Partial, so that each row stands in one of the two.
CREATE UNIQUE INDEX execution_slot ON execution (strategy, slot, reissue_no) WHERE slot IS NOT NULL;
CREATE UNIQUE INDEX execution_trigger_key ON execution (strategy, trigger_key, reissue_no) WHERE trigger_key IS NOT NULL;
CREATE INDEX execution_pending ON execution (account_id, due_at) WHERE state = 'PENDING';
CREATE INDEX execution_live ON execution (account_id, state) WHERE state IN ('PLANNED', 'RUNNING', 'PARKED');
CREATE INDEX execution_strategy_created ON execution (strategy, created_at);
CREATE INDEX execution_live_strategy ON execution (strategy) WHERE state IN ('PENDING', 'PLANNED', 'RUNNING', 'PARKED');

CREATE TABLE intent (
  execution_id text NOT NULL,
  step integer NOT NULL CONSTRAINT intent_step CHECK (step >= 0),
  account_id integer NOT NULL,
  once text CONSTRAINT intent_once CHECK (once <> ''),
  recipient address20,
  creates boolean NOT NULL DEFAULT false,
  value uint256 NOT NULL,
  data bytea NOT NULL,
  access_list jsonb NOT NULL,
  gas bigint,
  label text,
  digest hash32 NOT NULL,
  token bigint NOT NULL,
  PRIMARY KEY (execution_id, step),
  CONSTRAINT intent_digest UNIQUE (execution_id, step, digest),
  CONSTRAINT intent_execution FOREIGN KEY (execution_id, account_id) REFERENCES execution (execution_id, account_id),
  CONSTRAINT intent_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation,
  CONSTRAINT intent_recipient CHECK ((recipient IS NULL) = creates)
);

-- The fence stands here: one step owns one nonce for ever, one nonce carries one intent for ever (G2, G3).
CREATE TABLE nonce_reservation (
  account_id integer NOT NULL,
  nonce bigint NOT NULL CONSTRAINT nonce_reservation_range CHECK (nonce >= 0 AND nonce < 9223372036854775807),
  execution_id text NOT NULL,
  step integer NOT NULL,
  intent_digest hash32 NOT NULL,
  once text,
  transaction_type smallint NOT NULL CONSTRAINT nonce_reservation_type CHECK (transaction_type IN (0, 1, 2)),
  token bigint NOT NULL,
  state text NOT NULL DEFAULT 'OPEN' CONSTRAINT nonce_reservation_state CHECK (state IN ('OPEN', 'CLOSED')),
  closed_as text CONSTRAINT nonce_reservation_closed_as CHECK (closed_as IN ('attempt', 'foreign')),
  closed_seq smallint,
  foreign_hash hash32,
  effect boolean,
  witness_number bigint,
  witness_hash hash32,
  witness_rule text,
  witness_endpoints text[],
  reserved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  closed_at timestamptz,
  PRIMARY KEY (account_id, nonce),
  CONSTRAINT nonce_reservation_step UNIQUE (execution_id, step),
  CONSTRAINT nonce_reservation_digest UNIQUE (account_id, nonce, intent_digest),
  CONSTRAINT nonce_reservation_intent FOREIGN KEY (execution_id, step, intent_digest) REFERENCES intent (execution_id, step, digest),
  CONSTRAINT nonce_reservation_execution FOREIGN KEY (execution_id, account_id) REFERENCES execution (execution_id, account_id),
  CONSTRAINT nonce_reservation_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation,
  CONSTRAINT nonce_reservation_closing CHECK (
    (state = 'OPEN' AND closed_as IS NULL AND closed_seq IS NULL AND foreign_hash IS NULL AND effect IS NULL AND closed_at IS NULL AND witness_number IS NULL)
    OR (state = 'CLOSED' AND closed_as IS NOT NULL AND closed_at IS NOT NULL
        AND (closed_as = 'attempt') = (closed_seq IS NOT NULL) AND (closed_as = 'attempt') = (effect IS NOT NULL)
        AND witness_number IS NOT NULL AND witness_hash IS NOT NULL AND witness_rule IS NOT NULL
        AND cardinality(witness_endpoints) >= 1))
) WITH (fillfactor = 70);
CREATE INDEX nonce_reservation_open ON nonce_reservation (account_id, nonce) WHERE state = 'OPEN';
CREATE INDEX nonce_reservation_witness ON nonce_reservation (account_id, witness_number) WHERE state = 'CLOSED';
-- G2b: the user's name for the thing paid is spent by at most one living or effective step of the installation.
CREATE UNIQUE INDEX nonce_reservation_once ON nonce_reservation (once) WHERE once IS NOT NULL AND effect IS NOT FALSE;

CREATE TABLE attempt (
  account_id integer NOT NULL,
  nonce bigint NOT NULL,
  seq smallint NOT NULL CONSTRAINT attempt_seq CHECK (seq >= 0),
  kind text NOT NULL CONSTRAINT attempt_kind CHECK (kind IN ('SEND', 'BUMP', 'CANCEL')),
  status text NOT NULL DEFAULT 'DRAFT'
    CONSTRAINT attempt_status CHECK (status IN ('DRAFT', 'SIGNED', 'SENT', 'MINED', 'FINAL', 'SUPERSEDED', 'REFUSED')),
  intent_digest hash32,
  cancel_digest hash32,
  gas bigint NOT NULL CONSTRAINT attempt_gas CHECK (gas >= 21000),
  max_fee uint256 NOT NULL,
  tip uint256 NOT NULL,
  raw bytea,
  hash hash32 CONSTRAINT attempt_hash UNIQUE,
  reason text,
  token bigint NOT NULL,
  drafted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  signed_at timestamptz,
  signed_token bigint,
  sent_at timestamptz,
  sent_token bigint,
  resend_at timestamptz,
  PRIMARY KEY (account_id, nonce, seq),
  CONSTRAINT attempt_reservation FOREIGN KEY (account_id, nonce) REFERENCES nonce_reservation (account_id, nonce),
  CONSTRAINT attempt_intent FOREIGN KEY (account_id, nonce, intent_digest) REFERENCES nonce_reservation (account_id, nonce, intent_digest),
  CONSTRAINT attempt_cancel FOREIGN KEY (account_id, cancel_digest) REFERENCES account (account_id, cancel_digest),
  CONSTRAINT attempt_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation,
  CONSTRAINT attempt_signed_generation FOREIGN KEY (account_id, signed_token) REFERENCES lease_generation,
  CONSTRAINT attempt_sent_generation FOREIGN KEY (account_id, sent_token) REFERENCES lease_generation,
  CONSTRAINT attempt_payload CHECK ((kind = 'CANCEL' AND intent_digest IS NULL AND cancel_digest IS NOT NULL)
                                    OR (kind <> 'CANCEL' AND intent_digest IS NOT NULL AND cancel_digest IS NULL)),
  CONSTRAINT attempt_first CHECK (kind <> 'SEND' OR seq = 0),
  CONSTRAINT attempt_fees CHECK (tip <= max_fee),
  CONSTRAINT attempt_bytes CHECK ((raw IS NULL) = (hash IS NULL) AND (raw IS NULL) = (signed_token IS NULL)
                                  AND (status NOT IN ('SIGNED', 'SENT', 'MINED', 'FINAL') OR raw IS NOT NULL)
                                  AND (status NOT IN ('DRAFT', 'REFUSED') OR raw IS NULL)),
  CONSTRAINT attempt_refused CHECK (status <> 'REFUSED' OR reason IS NOT NULL)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX attempt_one_mined ON attempt (account_id, nonce) WHERE status IN ('MINED', 'FINAL');
CREATE UNIQUE INDEX attempt_one_draft ON attempt (account_id, nonce) WHERE status = 'DRAFT';
CREATE INDEX attempt_sendable ON attempt (account_id, nonce) WHERE status IN ('SIGNED', 'SENT');
ALTER TABLE nonce_reservation ADD CONSTRAINT nonce_reservation_closed_by
  FOREIGN KEY (account_id, nonce, closed_seq) REFERENCES attempt (account_id, nonce, seq);

CREATE TABLE broadcast (
  account_id integer NOT NULL,
  nonce bigint NOT NULL,
  seq smallint NOT NULL,
  endpoint text NOT NULL,
  verdict text NOT NULL,
  detail text,
  count integer NOT NULL DEFAULT 1,
  first_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  token bigint NOT NULL,
  PRIMARY KEY (account_id, nonce, seq, endpoint, verdict),
  CONSTRAINT broadcast_attempt FOREIGN KEY (account_id, nonce, seq) REFERENCES attempt (account_id, nonce, seq),
  CONSTRAINT broadcast_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation
) WITH (fillfactor = 70);

-- One row is one interval of belief that an attempt stands in a block (P23).
CREATE TABLE receipt (
  receipt_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id integer NOT NULL,
  nonce bigint NOT NULL,
  seq smallint NOT NULL,
  block_number bigint NOT NULL,
  block_hash hash32 NOT NULL,
  status smallint NOT NULL CONSTRAINT receipt_status CHECK (status IN (0, 1)),
  gas_used uint256 NOT NULL,
  effective_gas_price uint256 NOT NULL,
  l1_fee uint256,
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  orphaned_at timestamptz,
  token bigint NOT NULL,
  CONSTRAINT receipt_attempt FOREIGN KEY (account_id, nonce, seq) REFERENCES attempt (account_id, nonce, seq),
  CONSTRAINT receipt_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX receipt_believed ON receipt (account_id, nonce, seq) WHERE orphaned_at IS NULL;

-- A step whose `once` was spent by another step: recorded instead of sent (G2b).
CREATE TABLE already_paid (
  execution_id text NOT NULL,
  step integer NOT NULL,
  account_id integer NOT NULL,
  once text NOT NULL,
  paid_execution_id text NOT NULL,
  paid_step integer NOT NULL,
  paid_hash hash32 NOT NULL,
  token bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (execution_id, step),
  CONSTRAINT already_paid_intent FOREIGN KEY (execution_id, step) REFERENCES intent (execution_id, step),
  CONSTRAINT already_paid_by FOREIGN KEY (paid_execution_id, paid_step) REFERENCES nonce_reservation (execution_id, step),
  CONSTRAINT already_paid_generation FOREIGN KEY (account_id, token) REFERENCES lease_generation
);

CREATE TABLE request (
  request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL CONSTRAINT request_kind CHECK (kind IN ('reopen', 'resume')),
  account_id integer REFERENCES account,
  strategy text REFERENCES strategy,
  why text NOT NULL CONSTRAINT request_why CHECK (why <> ''),
  who text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  answered_at timestamptz,
  granted boolean,
  answer text,
  CONSTRAINT request_answered CHECK ((answered_at IS NULL) = (granted IS NULL) AND (answered_at IS NULL) = (answer IS NULL))
);
CREATE INDEX request_waiting ON request (account_id) WHERE answered_at IS NULL;

CREATE TABLE history (
  history_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL,
  subject text NOT NULL,
  account_id integer,
  from_state text,
  to_state text NOT NULL,
  why text,
  token bigint,
  actor text NOT NULL DEFAULT current_setting('application_name'),
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX history_subject ON history (kind, subject);

-- Worker processes that are alive, for fair shares of the accounts and for people; it decides nothing about safety.
CREATE TABLE worker (
  worker_id uuid PRIMARY KEY,
  name text NOT NULL,
  release text NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  stopped_at timestamptz
) WITH (fillfactor = 50);

-- Stale writes the database refused, reported by the worker that was refused (evidence, not a fence).
CREATE TABLE refused_write (
  refused_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id integer REFERENCES account,
  constraint_name text NOT NULL,
  stage text NOT NULL,
  token bigint,
  worker text NOT NULL,
  detail text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
