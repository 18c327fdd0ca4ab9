//! What other programs of the workspace take from xtask: starting programs, and a PostgreSQL to throw away.

pub mod postgres;
pub mod run;
