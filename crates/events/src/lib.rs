//! Sealog's event vocabulary: types, bodies, JSON text and folds.
