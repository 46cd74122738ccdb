-- A guard of a managed resource is missing before the others.

-- with: controller
INSERT INTO controller_finalizers (controller_resource_id, finalizer, position) VALUES ('one', 'last', 1);
