//! What screens are made of.

pub mod badge;
pub mod card;
pub mod copy;
pub mod decide;
pub mod diff;
pub mod fold;
pub mod form;
pub mod frame;
pub mod icon;
pub mod journal;
pub mod loaded;
pub mod notice;
pub mod own_client;
pub mod page;
pub mod policy;
pub mod query;
pub mod shown;
pub mod text;
pub mod time;
pub mod topbar;
pub mod webhooks;
