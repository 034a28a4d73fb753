-- The schema of postgreslock. Running it again changes nothing, and locks that are held
-- stay held. A program runs it with Migrate; it can as well be a file among your own
-- migrations. With other table names replace both names throughout.
--
-- The columns are those of SyncGuard 2.5.2, whose own setup may run before or after.
-- PostgreSQL 14 or newer.

-- Concurrent runs wait for each other.
SELECT pg_advisory_xact_lock(hashtext('syncguard_locks schema'));

-- Rows of locks that nobody holds may be deleted. Rows come and go all the time, so
-- vacuum by number, not by share.
CREATE TABLE IF NOT EXISTS syncguard_locks (
  key            TEXT COLLATE "C" PRIMARY KEY,
  lock_id        TEXT COLLATE "C" NOT NULL,
  expires_at_ms  BIGINT NOT NULL,
  acquired_at_ms BIGINT NOT NULL,
  fence          TEXT COLLATE "C" NOT NULL,
  user_key       TEXT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- For calls by lock id. SyncGuard's setup makes a unique index of this name, and no
-- second one if this is there.
CREATE INDEX IF NOT EXISTS idx_syncguard_locks_lock_id ON syncguard_locks (lock_id);

-- Never delete or reset a row: its fences would start again.
-- Room on each page keeps the update of a counter on it.
CREATE TABLE IF NOT EXISTS syncguard_fence_counters (
  fence_key TEXT COLLATE "C" PRIMARY KEY,
  fence     BIGINT NOT NULL DEFAULT 0,
  key_debug TEXT
) WITH (fillfactor = 50);

-- Each function is one verb. It returns a status (the constants in verbs.go), then what
-- the status needs. Acquire and extend take SyncGuard's advisory lock of the key first:
-- between SyncGuard's read of a lock and its write nothing may change, because its write
-- checks nothing. The time is read after that wait, not at the start of the transaction.
CREATE OR REPLACE FUNCTION syncguard_locks_acquire(p_key TEXT, p_lock_id TEXT, p_ttl_ms BIGINT)
RETURNS BIGINT[] LANGUAGE plpgsql AS $$
DECLARE
  ignored TEXT := pg_advisory_xact_lock(hashtext(p_key))::TEXT;
  now_us  BIGINT := (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT;
  now_ms  BIGINT := now_us / 1000;
  granted BIGINT;
  held    syncguard_locks%ROWTYPE;
BEGIN
  -- A fence that a crash of the server could take back would be issued twice. "on" waits
  -- for the standbys of synchronous_standby_names, too.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  LOOP
    INSERT INTO syncguard_fence_counters AS c (fence_key, fence, key_debug)
      VALUES ('fence:' || p_key, 1, p_key)
      ON CONFLICT (fence_key) DO UPDATE SET fence = c.fence + 1
        WHERE c.fence >= 0 AND c.fence < 900000000000000
          AND NOT EXISTS (SELECT FROM syncguard_locks WHERE key = p_key AND expires_at_ms > now_ms - 1000)
      RETURNING fence INTO granted;
    EXIT WHEN granted > 1;
    SELECT * INTO held FROM syncguard_locks WHERE key = p_key;
    IF granted = 1 AND held.fence IS NOT NULL THEN -- the counter was lost
      UPDATE syncguard_fence_counters SET fence = held.fence::BIGINT +
          CASE WHEN held.expires_at_ms > now_ms - 1000 THEN 0 ELSE 1 END
        WHERE fence_key = 'fence:' || p_key RETURNING fence INTO granted;
    END IF;
    IF held.expires_at_ms > now_ms - 1000 THEN
      RETURN ARRAY[CASE WHEN held.lock_id = p_lock_id THEN 1 ELSE 2 END,
        held.fence::BIGINT, held.expires_at_ms, held.expires_at_ms * 1000 - now_us];
    END IF;
    EXIT WHEN granted IS NOT NULL;
    SELECT fence INTO granted FROM syncguard_fence_counters WHERE fence_key = 'fence:' || p_key;
    IF granted < 0 OR granted >= 900000000000000 THEN
      RETURN ARRAY[5, granted];
    END IF; -- else it was released just now
  END LOOP;
  INSERT INTO syncguard_locks AS l (key, lock_id, expires_at_ms, acquired_at_ms, fence, user_key)
    VALUES (p_key, p_lock_id, now_ms + p_ttl_ms, now_ms, lpad(granted::TEXT, 15, '0'), p_key)
    ON CONFLICT (key) DO UPDATE SET lock_id = EXCLUDED.lock_id, expires_at_ms = EXCLUDED.expires_at_ms,
      acquired_at_ms = EXCLUDED.acquired_at_ms, fence = EXCLUDED.fence, user_key = EXCLUDED.user_key
    WHERE l.expires_at_ms <= now_ms - 1000;
  -- SyncGuard extends without the advisory lock, and by the time at which its transaction
  -- began: a lock that was over may live again. Nothing is kept of this try.
  IF NOT FOUND THEN
    RAISE serialization_failure USING MESSAGE = 'the lock was extended meanwhile';
  END IF;
  RETURN ARRAY[1, granted, now_ms + p_ttl_ms, (now_ms + p_ttl_ms) * 1000 - now_us];
END $$;

-- Deletes a live lock: by its key and id, or (p_key null) by its id alone. The lock of
-- its row is enough: whatever SyncGuard read before, the lock of a deleted row is free.
CREATE OR REPLACE FUNCTION syncguard_locks_release(p_key TEXT, p_lock_id TEXT)
RETURNS BIGINT[] LANGUAGE plpgsql AS $$
DECLARE
  live TEXT[];
BEGIN
  IF p_key IS NULL THEN
    live := ARRAY(SELECT key FROM syncguard_locks WHERE lock_id = p_lock_id
      AND expires_at_ms > floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - 1000);
    IF cardinality(live) > 1 THEN
      RETURN ARRAY[4];
    END IF;
    p_key := live[1];
  END IF;
  DELETE FROM syncguard_locks WHERE key = p_key AND lock_id = p_lock_id
    AND expires_at_ms > floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - 1000;
  IF FOUND THEN
    RETURN ARRAY[1];
  END IF;
  IF EXISTS (SELECT FROM syncguard_locks WHERE lock_id = p_lock_id AND (p_key IS NULL OR key = p_key)) THEN
    RETURN ARRAY[3];
  END IF;
  RETURN ARRAY[4];
END $$;

-- Makes a live lock end p_ttl_ms from now.
CREATE OR REPLACE FUNCTION syncguard_locks_extend(p_key TEXT, p_lock_id TEXT, p_ttl_ms BIGINT)
RETURNS BIGINT[] LANGUAGE plpgsql AS $$
DECLARE
  live    TEXT[];
  ignored TEXT;
  now_us  BIGINT;
  now_ms  BIGINT;
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  IF p_key IS NULL THEN
    live := ARRAY(SELECT key FROM syncguard_locks WHERE lock_id = p_lock_id
      AND expires_at_ms > floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - 1000);
    IF cardinality(live) > 1 THEN
      RETURN ARRAY[4];
    END IF;
    p_key := live[1];
  END IF;
  ignored := pg_advisory_xact_lock(hashtext(p_key))::TEXT;
  now_us := (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT;
  now_ms := now_us / 1000;
  UPDATE syncguard_locks SET expires_at_ms = now_ms + p_ttl_ms
    WHERE key = p_key AND lock_id = p_lock_id AND expires_at_ms > now_ms - 1000;
  IF FOUND THEN
    RETURN ARRAY[1, 0, now_ms + p_ttl_ms, (now_ms + p_ttl_ms) * 1000 - now_us];
  END IF;
  IF EXISTS (SELECT FROM syncguard_locks WHERE lock_id = p_lock_id AND (p_key IS NULL OR key = p_key)) THEN
    RETURN ARRAY[3];
  END IF;
  RETURN ARRAY[4];
END $$;

-- Tells whoever waits that a lock was deleted, by whomever. A process that waits for a
-- key holds this advisory lock of it, shared: without waiters nobody is notified.
CREATE OR REPLACE FUNCTION syncguard_locks_freed() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('syncguard_locks', md5(OLD.key) || ' ' || OLD.fence);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER syncguard_locks_freed AFTER DELETE ON syncguard_locks FOR EACH ROW
  WHEN (NOT pg_try_advisory_xact_lock(1819239275, hashtext(OLD.key)))
  EXECUTE FUNCTION syncguard_locks_freed();
