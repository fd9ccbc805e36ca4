-- Every statement on reviews, by name. A review is a plan, which becomes the change when it is committed: of kind 'review' for
-- an edit, else of the kind of the change ('move', 'delete', 'mkdir', 'undo'). Where it stands is the column `state` alone.
-- `path_change` is what it is about when it is no text, as JSON; its items are those of the change once that was begun.

-- name: insert_review_plan
INSERT INTO plans (id, kind, root_dir, other_root, undoes, status, created_at)
VALUES (:id, :kind, :root_dir, :other_root, :undoes, 'CREATED', :created_at);

-- name: insert_review_item
INSERT INTO plan_items (plan_id, position, op, src_path, dest_path, node, before_hash, after_hash, size_bytes, mode, uid,
                        gid, mtime_ns, status, source_directory)
VALUES (:plan_id, 0, :op, :src_path, :dest_path, 'file', :before_hash, :after_hash, :size_bytes, 0, -1, -1, 0, 'PENDING',
        :source_directory);

-- name: insert_review
INSERT INTO reviews (plan_id, session, state, version, round, request, proposal_hash, base, proposed, is_packed, expires_at,
                     path_change, note, client_name, client_version, diff_size)
VALUES (:id, :session, :state, :version, :round, :request, :proposal_hash, :base, :proposed, true, :expires_at,
        :path_change, :note, :client_name, :client_version, :diff_size);

-- name: find_review
SELECT p.seq, p.id, p.root_dir, p.created_at, i.src_path, r.session, r.state, r.version, r.round, r.request, r.base,
       r.proposed, r.answered, r.decided_by, r.decided_at, r.reason, r.expires_at, i.source_directory, r.is_packed,
       r.path_change, r.note, r.client_name, r.client_version
FROM reviews r JOIN plans p ON p.id = r.plan_id JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE r.plan_id = :id;

-- name: review_of_session
SELECT plan_id FROM reviews WHERE session = :session;

-- name: find_equal_proposal
SELECT r.plan_id FROM reviews r JOIN plans p ON p.id = r.plan_id
WHERE r.proposal_hash = :proposal_hash
  AND (r.state IN ('PENDING', 'CHANGES_REQUESTED', 'APPROVED')
       OR (r.state = 'REJECTED' AND r.decided_at >= :rejected_since))
ORDER BY p.seq DESC LIMIT 1;

-- name: list_open_reviews
SELECT p.seq, p.id, p.root_dir, p.created_at, i.src_path, r.session, r.state, r.round, r.decided_by, r.expires_at,
       r.path_change, r.decided_at, r.reason, r.note, r.client_name, r.client_version, r.diff_size, p.status AS plan_status
FROM reviews r JOIN plans p ON p.id = r.plan_id JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE r.state IN ('PENDING', 'CHANGES_REQUESTED', 'APPROVED') AND p.seq < :before_seq
  AND (:roots IS NULL
       OR (is_beneath(p.root_dir, :roots) AND (p.other_root IS NULL OR is_beneath(p.other_root, :roots))))
ORDER BY p.seq DESC LIMIT :limit;

-- name: list_closed_reviews
SELECT p.seq, p.id, p.root_dir, p.created_at, i.src_path, r.session, r.state, r.round, r.decided_by, r.expires_at,
       r.path_change, r.decided_at, r.reason, r.note, r.client_name, r.client_version, r.diff_size, p.status AS plan_status
FROM reviews r JOIN plans p ON p.id = r.plan_id JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE r.state IN ('COMMITTED', 'REJECTED', 'EXPIRED') AND p.seq < :before_seq
ORDER BY p.seq DESC LIMIT :limit;

-- name: save_review
-- The hash of the proposal is that of its texts, which a review that ends has no more: it keeps the one it had.
UPDATE reviews
SET version = version + 1, state = :state, round = :round, request = :request,
    proposal_hash = CASE WHEN :proposed IS NULL THEN proposal_hash ELSE :proposal_hash END,
    base = :base, proposed = :proposed, answered = :answered, is_packed = true, decided_by = :decided_by, decided_at = :decided_at,
    reason = :reason, expires_at = :expires_at, note = :note, diff_size = coalesce(:diff_size, diff_size)
WHERE plan_id = :id AND version = :version;

-- name: save_review_plan
-- A review that is being committed is left to its change; one whose commit failed keeps that status for the list of changes.
UPDATE plans SET status = CASE status WHEN 'FAILED' THEN status ELSE :status END
WHERE id = :id AND status IN ('CREATED', 'APPROVED', 'FAILED');

-- name: save_review_item
UPDATE plan_items SET after_hash = :after_hash WHERE plan_id = :id AND position = 0 AND status = 'PENDING' AND op = 'replace';

-- name: commit_review
-- Part of the transaction that records a change as executed; nothing where it is no review's.
UPDATE reviews SET state = 'COMMITTED', version = version + 1, base = NULL, proposed = NULL, answered = NULL
WHERE plan_id = :id;
