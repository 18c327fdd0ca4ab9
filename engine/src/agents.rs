//! Agents: who keeps them, their sites and tools, and their keys.

mod keeping;
mod lost;
mod used;

pub use keeping::{
    Change, NewAgent, NewKey, add, add_by, add_key, change, everyone, new_key, revoke_by_prefix,
    revoke_key, take_off,
};
pub use lost::void_unreachable;
pub(crate) use lost::{void_soon, void_unreachable_now};
pub(crate) use used::Used;
