//! Proof that a request was made by a page of our own.
//!
//! Stricter than the usual layer: a request that says nothing about where it comes from is refused (guide: C71), because
//! a browser always says so on an unsafe method.

/// Holding one means: this unsafe request is provably same-origin. There is no other way to make it than [`prove`].
#[derive(Clone, Copy, Debug)]
pub struct SameOrigin(());

/// `fetch_site` and `origin` are the request's `Sec-Fetch-Site` and `Origin`; `public_origin` is `scheme://host[:port]`.
///
/// An `Origin`, where there is one, must equal ours. Without one, `Sec-Fetch-Site` must say `same-origin`; CONTRACT §5
/// refuses a missing `Origin` on unsafe methods, and every browser sends it there.
pub fn prove(
    public_origin: &str,
    fetch_site: Option<&str>,
    origin: Option<&str>,
) -> Option<SameOrigin> {
    let same_site = fetch_site.is_none_or(|site| site == "same-origin");
    (same_site && origin? == public_origin).then_some(SameOrigin(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_pass() {
        let ours = "https://hal.example";
        let check = |site, origin, expect| {
            assert_eq!(
                prove(ours, site, origin).is_some(),
                expect,
                "{site:?} {origin:?}"
            )
        };
        check(Some("same-origin"), Some(ours), true);
        check(None, Some(ours), true);
        check(Some("same-origin"), None, false);
        check(None, None, false);
        check(Some("none"), Some(ours), false);
        check(Some("cross-site"), Some(ours), false);
        check(Some("same-site"), Some(ours), false);
        check(Some("same-origin"), Some("https://evil.example"), false);
        check(Some("same-origin"), Some("null"), false);
        check(Some("same-origin"), Some("https://hal.example:8443"), false);
        check(Some("same-origin"), Some("http://hal.example"), false);
        check(
            Some("same-origin"),
            Some("https://hal.example.evil.example"),
            false,
        );
    }
}
