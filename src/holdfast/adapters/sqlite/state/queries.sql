-- Every statement that the journal runs, by name. Order is always by seq, never by time.
-- is_beneath(path, roots) is a function of ours: a path is TEXT, or BLOB when it is not UTF-8, and roots are JSON.

-- name: insert_plan
INSERT INTO plans (id, kind, root_dir, other_root, temp_name, undoes, status, created_at, stepwise, folder,
                   client_name, client_version, by_command)
VALUES (:id, :kind, :root_dir, :other_root, :temp_name, :undoes, :status, :created_at, :stepwise, :folder,
        :client_name, :client_version, :by_command);

-- name: resume_plan
UPDATE plans
SET status = 'RUNNING', temp_name = :temp_name, other_root = :other_root, executed_at = NULL, error_msg = NULL,
    client_name = :client_name, client_version = :client_version, by_command = :by_command,
    seq = (SELECT max(seq) + 1 FROM plans)
WHERE id = :id AND status IN ('APPROVED', 'FAILED')
  AND EXISTS (SELECT 1 FROM reviews r WHERE r.plan_id = plans.id AND r.state = 'APPROVED');

-- name: delete_items
DELETE FROM plan_items WHERE plan_id = :plan_id;

-- name: insert_item
INSERT INTO plan_items (plan_id, position, op, src_path, dest_path, node, before_hash, after_hash, size_bytes,
                        mode, uid, gid, mtime_ns, identity, status, error_msg, reasoning, confidence, ctime_ns,
                        composite_hash, xattrs, temp_name, quarantine_path, intended_at, reverses, dest_identity, unit,
                        source_directory, dest_directory)
VALUES (:plan_id, :position, :op, :src_path, :dest_path, :node, :before_hash, :after_hash, :size_bytes,
        :mode, :uid, :gid, :mtime_ns, :identity, :status, :error_msg, :reasoning, :confidence, :ctime_ns,
        :composite_hash, :xattrs, :temp_name, :quarantine_path, :intended_at, :reverses, :dest_identity, :unit,
        :source_directory, :dest_directory);

-- name: last_seq
SELECT coalesce(max(seq), 0) FROM plans;

-- name: finish_plan
UPDATE plans SET status = :status, executed_at = :executed_at, error_msg = :error_msg
WHERE id = :id AND status = 'RUNNING';

-- name: finish_items
-- `identity` is that of a file that was made or moved, `dest_identity` that of a copy on another device.
UPDATE plan_items SET status = :status, error_msg = :error_msg, identity = coalesce(:identity, identity),
                      dest_identity = :dest_identity,
                      quarantine_path = CASE :status WHEN 'DONE' THEN quarantine_path END
WHERE plan_id = :plan_id AND status = 'PENDING' AND position BETWEEN :first AND :last
  AND EXISTS (SELECT 1 FROM plans p WHERE p.id = :plan_id AND p.status = 'RUNNING');

-- name: next_position
SELECT coalesce(max(position), -1) + 1 FROM plan_items WHERE plan_id = :plan_id;

-- name: plan_state
SELECT kind, status, executed_at, undoes FROM plans WHERE id = :id;

-- name: set_plan_status
UPDATE plans SET status = :status, executed_at = :executed_at WHERE id = :id AND status = :present;

-- name: approve_plan
UPDATE plans SET status = 'APPROVED', approved_hash = :approved_hash, approved_by = :approved_by, approved_at = :at
WHERE id = :id AND status = 'CREATED';

-- name: cancel_plan
UPDATE plans SET status = 'CANCELLED'
WHERE id = :id AND (status IN ('CREATED', 'APPROVED') OR (
        status = 'RUNNING'
        AND NOT EXISTS (SELECT 1 FROM plan_intents n WHERE n.plan_id = plans.id)
        AND NOT EXISTS (SELECT 1 FROM plan_items i
                        WHERE i.plan_id = plans.id AND (i.intended_at IS NOT NULL OR i.status IN ('DONE', 'UNDONE')))));

-- name: start_plan
-- A plan that is executed later than it was made becomes the newest change.
UPDATE plans
SET status = 'RUNNING', executed_at = NULL, client_name = :client_name, client_version = :client_version,
    by_command = :by_command, seq = (SELECT max(seq) + 1 FROM plans)
WHERE id = :id AND stepwise = 1 AND status IN ('APPROVED', 'RUNNING', 'FAILED');

-- name: retry_items
UPDATE plan_items SET status = 'PENDING', error_msg = NULL
WHERE plan_id = :plan_id AND status = 'ERROR';

-- name: skip_items
UPDATE plan_items SET status = 'SKIPPED', error_msg = :error_msg, quarantine_path = NULL
WHERE plan_id = :plan_id AND status = 'PENDING'
  AND EXISTS (SELECT 1 FROM plans p WHERE p.id = :plan_id AND p.status = 'RUNNING');

-- name: waiting_items
SELECT count(*) AS items FROM plan_items
WHERE plan_id = :plan_id AND status = 'PENDING' AND position BETWEEN :first AND :last;

-- name: intend_batch
INSERT INTO plan_intents (plan_id, intended_at, positions)
SELECT id, :intended_at, :positions FROM plans WHERE id = :plan_id AND status = 'RUNNING';

-- name: intend_item
UPDATE plan_items SET temp_name = :temp_name, quarantine_path = :quarantine_path
WHERE plan_id = :plan_id AND position = :position AND status = 'PENDING';

-- name: begun_batch
SELECT intended_at, positions FROM plan_intents WHERE plan_id = :plan_id;

-- name: leave_batch
DELETE FROM plan_intents WHERE plan_id = :plan_id;

-- name: keep_intents
-- What a batch began and did not do is known by its own row from then on; an item that is done needs no intent.
UPDATE plan_items SET intended_at = :intended_at
WHERE plan_id = :plan_id AND status <> 'DONE' AND position IN (SELECT value FROM json_each(:positions));

-- name: set_item_statuses
UPDATE plan_items SET status = :status
WHERE plan_id = :plan_id AND status = :present AND position BETWEEN :first AND :last;

-- name: any_move_done
SELECT 1 FROM plan_items WHERE plan_id = :plan_id AND op = 'move' AND status = 'DONE' LIMIT 1;

-- name: reversed_positions
SELECT reverses FROM plan_items
WHERE plan_id = :plan_id AND reverses IS NOT NULL AND position IN (SELECT value FROM json_each(:positions));

-- name: count_items
SELECT op, status, count(*) AS items FROM plan_items WHERE plan_id = :plan_id GROUP BY op, status;

-- name: interrupted_plans
SELECT id FROM plans p
WHERE stepwise = 1 AND status = 'RUNNING' AND (
        kind = 'undo'
        OR EXISTS (SELECT 1 FROM plan_intents n WHERE n.plan_id = p.id)
        OR EXISTS (SELECT 1 FROM plan_items i
                   WHERE i.plan_id = p.id AND i.status = 'PENDING' AND i.intended_at IS NOT NULL))
ORDER BY seq;

-- name: expired_quarantine
SELECT i.plan_id, i.position, i.quarantine_path, p.root_dir, p.other_root
FROM plan_items i JOIN plans p ON p.id = i.plan_id
WHERE i.quarantine_path IS NOT NULL AND i.status IN ('DONE', 'UNDONE') AND p.executed_at < :kept_since
ORDER BY p.seq, i.position LIMIT :limit;

-- name: forget_quarantine
UPDATE plan_items SET quarantine_path = NULL WHERE plan_id = :plan_id AND position = :position;

-- name: list_plans
SELECT p.seq, p.id, p.status, p.folder, p.created_at, p.executed_at, p.root_dir, p.other_root
FROM plans p
WHERE p.seq < :before_seq AND p.kind = 'organise'
  AND is_beneath(p.root_dir, :roots) AND (p.other_root IS NULL OR is_beneath(p.other_root, :roots))
ORDER BY p.seq DESC LIMIT :limit;

-- name: find_plan
SELECT seq, id, kind, root_dir, other_root, temp_name, undoes, status, created_at, executed_at, stepwise, folder,
       approved_hash, approved_by, approved_at, client_name, client_version, by_command
FROM plans WHERE id = :id;

-- name: find_items
SELECT op, src_path, dest_path, node, before_hash, after_hash, size_bytes, mode, uid, gid, mtime_ns, identity,
       status, error_msg, position, reasoning, confidence, ctime_ns, composite_hash, xattrs, temp_name,
       quarantine_path, intended_at, reverses, dest_identity, unit, source_directory, dest_directory
FROM plan_items WHERE plan_id = :plan_id ORDER BY position;

-- name: unfinished_plans
SELECT id, seq FROM plans
WHERE status = 'RUNNING' AND stepwise = 0
ORDER BY seq;

-- name: list_changes
SELECT p.seq, p.id, p.kind, p.status, coalesce(p.folder, i.src_path, p.root_dir) AS src_path,
       CASE p.stepwise WHEN 0 THEN i.dest_path END AS dest_path,
       (SELECT count(*) FROM plan_items n WHERE n.plan_id = p.id AND n.op <> 'kept') AS items,
       p.created_at, p.executed_at, p.undoes, p.client_name, p.client_version, p.by_command,
       (SELECT coalesce(sum(n.size_bytes), 0) FROM plan_items n
        WHERE n.plan_id = p.id AND n.op <> 'kept' AND n.node = 'file') AS size_bytes,
       (SELECT count(*) FROM plan_items n
        WHERE n.plan_id = p.id AND n.status = 'DONE' AND n.op IN ('replace', 'remove', 'kept')
          AND n.before_hash IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM images m WHERE m.hash = n.before_hash)) AS images_missing,
       (SELECT count(*) FROM plan_items n
        WHERE n.plan_id = p.id AND n.status = 'DONE' AND n.op <> 'kept') AS done,
       (SELECT count(*) FROM plan_items n WHERE n.plan_id = p.id AND n.op = 'kept') AS kept
FROM plans p LEFT JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE p.seq < :before_seq
  AND (p.status IN ('EXECUTED', 'FAILED', 'UNDONE')
       OR (p.stepwise = 1 AND p.status = 'RUNNING'
           AND EXISTS (SELECT 1 FROM plan_items n WHERE n.plan_id = p.id AND n.status = 'DONE')))
  AND p.kind IN ('write', 'edit', 'append', 'move', 'delete', 'mkdir', 'undo', 'review', 'organise')
  AND (:roots IS NULL
       OR (is_beneath(p.root_dir, :roots) AND (p.other_root IS NULL OR is_beneath(p.other_root, :roots))))
  AND (:by_command IS NULL OR p.by_command = :by_command)
  AND (:client_name IS NULL OR p.client_name = :client_name)
  AND (:client_version IS NULL OR p.client_version = :client_version)
  AND (:since IS NULL OR coalesce(p.executed_at, p.created_at) >= :since)
  AND (:until IS NULL OR coalesce(p.executed_at, p.created_at) <= :until)
  AND (:kinds IS NULL OR p.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:directory IS NULL
       OR EXISTS (SELECT 1 FROM plan_items n
                  WHERE n.plan_id = p.id AND (is_beneath(n.src_path, :directory)
                                              OR (n.dest_path IS NOT NULL
                                                  AND (is_beneath(n.dest_path, :directory)
                                                       OR n.dest_path IN (SELECT value FROM json_each(:or_moved_to)))))))
ORDER BY p.seq DESC LIMIT :limit;

-- name: list_clients
SELECT client_name, client_version, by_command FROM plans
WHERE client_name <> '' AND by_command = 0 AND status <> 'CREATED'
GROUP BY client_name, client_version ORDER BY max(seq) DESC;

-- name: recent_roots
SELECT root_dir, other_root FROM plans ORDER BY seq DESC LIMIT :limit;

-- name: find_ids
SELECT id FROM plans
WHERE substr(id, 1, length(:prefix)) = :prefix AND status IN ('RUNNING', 'EXECUTED', 'FAILED', 'UNDONE')
ORDER BY seq DESC LIMIT 20;

-- name: undo_of
SELECT id FROM plans WHERE undoes = :plan_id AND kind = 'undo' AND status = 'EXECUTED' ORDER BY seq DESC LIMIT 1;

-- name: latest_on_path
SELECT p.id FROM plan_items i JOIN plans p ON p.id = i.plan_id
WHERE (i.src_path = :path OR i.dest_path = :path) AND i.status = 'DONE' AND p.status = 'EXECUTED' AND p.seq > :after_seq
ORDER BY p.seq DESC LIMIT 1;

-- name: changes_that_need
SELECT DISTINCT p.id, p.seq FROM plan_items i JOIN plans p ON p.id = i.plan_id
WHERE i.before_hash IN (SELECT value FROM json_each(:hashes)) AND i.status = 'DONE'
  AND i.op IN ('replace', 'remove', 'kept') AND p.status IN ('EXECUTED', 'FAILED')
ORDER BY p.seq DESC;
