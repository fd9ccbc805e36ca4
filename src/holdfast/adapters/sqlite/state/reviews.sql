-- Every statement on reviews, by name. A review is a plan of kind 'review'; its status is the plan's alone.

-- name: insert_review_plan
INSERT INTO plans (id, kind, root_dir, status, created_at) VALUES (:id, 'review', :root_dir, 'CREATED', :created_at);

-- name: insert_review_item
INSERT INTO plan_items (plan_id, position, op, src_path, node, before_hash, after_hash, size_bytes, mode, uid, gid,
                        mtime_ns, status)
VALUES (:plan_id, 0, 'replace', :src_path, 'file', :before_hash, :after_hash, :size_bytes, 0, -1, -1, 0, 'PENDING');

-- name: insert_review
INSERT INTO reviews (plan_id, session, version, round, request, twin, base, proposed, expires_at)
VALUES (:id, :session, :version, :round, :request, :twin, :base, :proposed, :expires_at);

-- name: find_review
SELECT p.seq, p.id, p.root_dir, p.status, p.created_at, i.src_path, r.session, r.version, r.round, r.request, r.base,
       r.proposed, r.answered, r.decided_by, r.decided_at, r.reason, r.closed_as, r.expires_at
FROM reviews r JOIN plans p ON p.id = r.plan_id JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE r.plan_id = :id;

-- name: review_of_session
SELECT plan_id FROM reviews WHERE session = :session;

-- name: review_twin
SELECT r.plan_id FROM reviews r JOIN plans p ON p.id = r.plan_id
WHERE r.twin = :twin
  AND ((r.closed_as IS NULL AND p.status IN ('CREATED', 'APPROVED', 'RUNNING', 'FAILED'))
       OR (r.closed_as = 'REJECT' AND r.decided_at >= :rejected_since))
ORDER BY p.seq DESC LIMIT 1;

-- name: list_reviews
SELECT p.seq, p.id, p.root_dir, p.status, p.created_at, i.src_path, r.session, r.round, r.decided_by, r.expires_at,
       r.answered IS NOT NULL AS has_answer
FROM reviews r JOIN plans p ON p.id = r.plan_id JOIN plan_items i ON i.plan_id = p.id AND i.position = 0
WHERE r.closed_as IS NULL AND p.status IN ('CREATED', 'APPROVED', 'RUNNING', 'FAILED') AND p.seq < :before_seq
  AND (:roots IS NULL OR is_beneath(p.root_dir, :roots))
ORDER BY p.seq DESC LIMIT :limit;

-- name: save_review
UPDATE reviews
SET version = version + 1, round = :round, request = :request,
    twin = CASE WHEN :closed_as IS NULL THEN :twin ELSE twin END, base = :base, proposed = :proposed,
    answered = :answered, decided_by = :decided_by, decided_at = :decided_at, reason = :reason, closed_as = :closed_as,
    expires_at = :expires_at
WHERE plan_id = :id AND version = :version AND closed_as IS NULL;

-- name: save_review_plan
-- A review that is being applied is left to the change that applies it.
UPDATE plans SET status = :status
WHERE id = :id AND kind = 'review' AND status = :was AND status <> 'RUNNING';

-- name: save_review_item
UPDATE plan_items SET after_hash = :after_hash WHERE plan_id = :id AND position = 0 AND status = 'PENDING';

-- name: forget_texts
UPDATE reviews SET base = NULL, proposed = NULL, answered = NULL, version = version + 1 WHERE plan_id = :id;

-- name: ended_reviews
SELECT r.plan_id FROM reviews r JOIN plans p ON p.id = r.plan_id
WHERE (r.closed_as IS NOT NULL OR p.status IN ('EXECUTED', 'CANCELLED', 'UNDONE')) AND r.proposed IS NOT NULL;

-- name: open_sessions
SELECT r.session FROM reviews r JOIN plans p ON p.id = r.plan_id
WHERE r.closed_as IS NULL AND p.status IN ('CREATED', 'APPROVED', 'RUNNING', 'FAILED');
