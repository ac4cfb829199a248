//! Closed form.
