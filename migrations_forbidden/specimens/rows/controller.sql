-- A managed resource of no project.

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('controller-one', 'controller', 'one', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('controller-one', 0);
INSERT INTO controller_resources (
    controller_resource_id, resource_id, project_id, controller_name, resource_key, uid, generation, spec_hash,
    status_hash, created_at, updated_at)
VALUES (
    'one', 'controller-one', NULL, 'deploys', 'x', 'uid-one', 1,
    (SELECT digest FROM value),
    (SELECT digest FROM value), 1, 1);
