//! Every limit of the product, with its unit in its name. A setting may lower or raise some of them; these are the defaults.

use std::time::Duration;

pub const BODY_BYTES_MAX: usize = 256 * 1024;
pub const JSON_DEPTH_MAX: usize = 32;
pub const JSON_KEYS_MAX: usize = 64;

pub const PENDING_PER_AGENT_MAX: i64 = 10;
pub const PENDING_PER_SITE_MAX: i64 = 50;
pub const APPROVAL_TTL: Duration = Duration::from_secs(24 * 3600);

pub const WAIT_SECONDS_MAX: u64 = 45;
pub const POLL_AFTER_MS: u64 = 2_000;

pub const REASON_CHARS_MAX: usize = 500;
pub const TITLE_CHARS_MAX: usize = 200;
pub const SLUG_BYTES_MAX: usize = 120;
pub const NODE_DEPTH_MAX: usize = 16;

/// Changed nodes listed inside a stored card; the rest is named by count and digest and read from the revisions.
pub const CARD_NODES_MAX: usize = 200;
pub const PAGE_ITEMS_DEFAULT: i64 = 50;
pub const PAGE_ITEMS_MAX: i64 = 200;
pub const SEARCH_HITS_DEFAULT: usize = 20;
pub const SEARCH_HITS_MAX: usize = 50;
pub const SEARCH_WORDS_MAX: usize = 32;

pub const WEBHOOKS_PER_SITE_MAX: usize = 10;
pub const WEBHOOK_URL_BYTES_MAX: usize = 2048;
/// One try, from the look-up of the name to the end of the answer.
pub const WEBHOOK_TRY: Duration = Duration::from_secs(5);
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 64 * 1024;
pub const WEBHOOK_TRIES_MAX: i64 = 10;
/// How long the secret before the last signs as well.
pub const WEBHOOK_OLD_SECRET: Duration = Duration::from_secs(24 * 3600);

pub const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
pub const SESSION_ABSOLUTE: Duration = Duration::from_secs(12 * 3600);
pub const SIGN_IN_LINK_TTL: Duration = Duration::from_secs(24 * 3600);
pub const PASSWORD_CHARS_MIN: usize = 10;
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// How long the button must have been visible before it takes a click (a framed page or a swapped window).
pub const ARMING: Duration = Duration::from_millis(800);
