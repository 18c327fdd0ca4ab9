//! Agents: who keeps them, their sites and tools, and their keys.

mod keeping;
mod lost;
mod placing;
mod used;

pub(crate) use keeping::take_along_everywhere;
pub use keeping::{
    Added, Change, NewAgent, NewKey, add, add_by, add_key, change, everyone, new_key,
    revoke_by_prefix, revoke_key,
};
pub use lost::void_unreachable;
pub(crate) use lost::{void_soon, void_unreachable_now};
pub(crate) use placing::leave;
pub use placing::{put_back, take_off};
pub(crate) use used::Used;
