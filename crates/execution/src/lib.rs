//! Host-neutral execution primitives: provider traits, registry, emitter, lease.
