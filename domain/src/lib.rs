//! The words and rules of Cloudhal. No IO, no features: the same in the browser and on the server.
//!
//! A **person** signs in and decides. An **agent** holds an API key and never decides. A **site** owns **nodes**;
//! a **version** is an immutable published state and the **live** pointer names one. A **tool** is a capability;
//! a **call** is a tool, its validated arguments, a caller and a **surface**. An **approval** is the persisted record of
//! one call that waits; a **decision** approves or denies it; to **redeem** spends it; a **receipt** says what came of
//! it; the **card** is what the person was shown; the **journal** is the account of it all.
//!
//! The modules stand in the order of the story: a call arrives, waits, is seen, is decided, is redeemed, is answered.

pub mod id;
pub mod time;

pub mod canonical;
pub mod digest;

pub mod tool;

pub mod card;

pub mod approval;

pub mod policy;
pub mod policy_form;
pub mod role;
pub mod seen;

pub mod answer;
pub mod code;

pub mod limits;
pub mod link;
pub mod odd;
pub mod origin;
pub mod view;
pub mod webhook;
