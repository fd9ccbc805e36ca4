-- Every statement on listed keys, by name. A key is its SHA-256; the key itself is nowhere.

-- name: insert_key
INSERT INTO api_keys (id, apikey_hash, label, per_minute, created_at, tenant)
VALUES (:id, :apikey_hash, :label, :per_minute, :created_at, :tenant);

-- name: find_key
SELECT id, apikey_hash, label, per_minute, created_at, revoked_at, tenant FROM api_keys WHERE apikey_hash = :apikey_hash;

-- name: list_keys
SELECT id, apikey_hash, label, per_minute, created_at, revoked_at, tenant FROM api_keys ORDER BY seq;

-- name: revoke_key
UPDATE api_keys SET revoked_at = :revoked_at WHERE id = :id AND revoked_at IS NULL;

-- name: erase_keys
DELETE FROM api_keys WHERE coalesce(tenant, apikey_hash) = :tenant;
