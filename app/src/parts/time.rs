//! Moments. The server prints them absolute; once hydrated the page makes them relative and keeps them so.

use cloudhal_domain::time::Timestamp;
use leptos::prelude::*;

/// Now, in unix milliseconds; nothing until the page is hydrated, or the two renderings would differ.
#[derive(Clone, Copy)]
pub struct Clock(RwSignal<Option<i64>>);

/// Starts the page's clock, in the browser, after the first paint.
pub fn provide_clock() {
    let clock = Clock(RwSignal::new(None));
    provide_context(clock);
    #[cfg(feature = "hydrate")]
    Effect::new(move |_| {
        let tick = move || clock.0.set(Some(js_sys::Date::now() as i64));
        tick();
        if let Ok(every) = set_interval_with_handle(tick, std::time::Duration::from_secs(10)) {
            on_cleanup(move || every.clear());
        }
    });
}

impl Clock {
    pub fn get() -> Self {
        expect_context()
    }

    pub fn now(self) -> Option<i64> {
        self.0.get()
    }

    /// Whether scripts run on this page: what needs them shows itself only then.
    pub fn is_hydrated(self) -> bool {
        self.0.with(Option::is_some)
    }
}

/// "4 minutes ago".
#[component]
pub fn Ago(at: Timestamp) -> impl IntoView {
    let clock = Clock::get();
    let words = move || match clock.now() {
        Some(now) => ago(now - at.ms()),
        None => absolute(at),
    };
    view! { <time datetime=at.to_string() title=move || exact(clock, at)>{words}</time> }
}

/// How long it still holds: "23 h left", and louder when it is short.
#[component]
pub fn Left(until: Timestamp) -> impl IntoView {
    let clock = Clock::get();
    let words = move || match clock.now() {
        Some(now) => left(until.ms() - now),
        None => format!("until {}", absolute(until)),
    };
    let urgent = move || clock.now().is_some_and(|now| until.ms() - now < HOUR);
    view! {
        <time class="left num" class:urgent=urgent datetime=until.to_string() title=move || exact(clock, until)>
            {words}
        </time>
    }
}

/// A moment that matters as such.
#[component]
pub fn At(at: Timestamp) -> impl IntoView {
    let clock = Clock::get();
    view! { <time class="num" datetime=at.to_string() title=move || exact(clock, at)>{absolute(at)}</time> }
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const SIX_HOURS: i64 = 6 * HOUR;
const DAY: i64 = 24 * HOUR;

/// On the server in UTC, in the browser in the person's own zone and words.
fn exact(clock: Clock, at: Timestamp) -> String {
    #[cfg(feature = "hydrate")]
    if clock.is_hydrated() {
        let date = js_sys::Date::new(&(at.ms() as f64).into());
        return date
            .to_locale_string("default", &wasm_bindgen::JsValue::UNDEFINED)
            .into();
    }
    let _ = clock;
    absolute(at)
}

/// "30 Nov 2026, 10:24 UTC", the same everywhere.
pub fn absolute(at: Timestamp) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let iso = at.to_string();
    let parts = (
        iso.get(0..4),
        iso.get(5..7),
        iso.get(8..10),
        iso.get(11..16),
    );
    match parts {
        (Some(year), Some(month), Some(day), Some(clock)) => {
            let month = month
                .parse::<usize>()
                .ok()
                .and_then(|m| MONTHS.get(m.wrapping_sub(1)))
                .unwrap_or(&month);
            format!(
                "{} {month} {year}, {clock} UTC",
                day.trim_start_matches('0')
            )
        }
        _ => iso,
    }
}

fn ago(ms: i64) -> String {
    match ms {
        ..MINUTE => "just now".into(),
        MINUTE..HOUR => plural(ms / MINUTE, "minute"),
        HOUR..DAY => plural(ms / HOUR, "hour"),
        _ => plural(ms / DAY, "day"),
    }
}

fn plural(n: i64, unit: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {unit}{s} ago")
}

fn left(ms: i64) -> String {
    match ms {
        ..=0 => "expired".into(),
        1..MINUTE => format!("{} s left", (ms / 10_000 + 1) * 10),
        MINUTE..HOUR => format!("{} min left", ms / MINUTE),
        HOUR..SIX_HOURS => format!("{} h {:02} min left", ms / HOUR, ms % HOUR / MINUTE),
        SIX_HOURS..DAY => format!("{} h left", ms / HOUR),
        _ => format!("{} d {} h left", ms / DAY, ms % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_in_words() {
        assert_eq!(
            absolute(Timestamp(1_796_000_000_123)),
            "30 Nov 2026, 00:53 UTC"
        );
        assert_eq!(ago(-5_000), "just now");
        assert_eq!(ago(MINUTE), "1 minute ago");
        assert_eq!(ago(50 * HOUR), "2 days ago");
        assert_eq!(left(0), "expired");
        assert_eq!(left(41 * MINUTE), "41 min left");
        assert_eq!(left(23 * HOUR + 5 * MINUTE), "23 h left");
    }
}
