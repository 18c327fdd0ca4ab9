//! From a folder of Markdown to pages, and from pages to HTML.
//!
//! Everything here is pure: no database, no clock, no network. The store hands in strings and gets strings back, so the
//! published site, the before and after of an approval card and a static export all show the same page for the same text.
//!
//! Content is written by agents and by strangers, and is read on our origin. [`markdown::render`] is the one place where
//! it becomes HTML, and nothing leaves it without having passed the sanitiser; [`theme`] escapes whatever else it prints.
//! The modules in the order a page travels:
//!
//! - [`import`] reads a folder and says what it left out and why
//! - [`slug`] is the rule for one segment of a path
//! - [`markdown`] turns a body into safe HTML with working links
//! - [`outline`] knows where a page stands: its parents, siblings and neighbours
//! - [`theme`] makes the whole document around it
//! - [`export`] writes those documents to a folder that any web server can serve

pub mod import;
pub mod slug;

pub mod markdown;
pub mod outline;
pub mod theme;

pub mod export;
