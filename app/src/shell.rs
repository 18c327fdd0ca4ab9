//! The document around the application, on the server alone.

use crate::App;
use leptos::{nonce::use_nonce, prelude::*};
use leptos_meta::MetaTags;

/// What the server knows about the page before it renders one. Provided as context and handed to [`shell`].
#[derive(Clone, Debug)]
pub struct PageEnv {
    /// `https://hal.example`, without a slash at its end.
    pub public_url: String,
    /// `/pkg/<hash>/cloudhal.js`
    pub script_href: String,
    /// `/pkg/<hash>/cloudhal.wasm`
    pub wasm_href: String,
    /// The Studio's one style sheet.
    pub style_href: String,
    /// From the person's cookie, so that the first paint is right.
    pub theme: Theme,
    /// Under `cargo xtask watch`: the page listens on [`DEV_EVENTS`] for new styles and for a new build.
    pub dev: bool,
    /// `/api/events?since=…`: hints since this page was made.
    pub sse_url: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        [Self::System, Self::Light, Self::Dark]
            .into_iter()
            .find(|t| t.as_str() == text)
    }
}

/// Where a page under development listens: `style` swaps the style sheet, `reload` loads the page again, and so does a
/// server that comes back after it was gone.
pub const DEV_EVENTS: &str = "/_dev/events";

/// The mark of the product as a drawing that needs no request: the page's icon, and the server's over MCP.
pub const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='%2320578a' stroke-width='2' stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath d='M6.5 18.5a4.5 4.5 0 0 1-.6-8.96 6 6 0 0 1 11.6-.9A4 4 0 0 1 18 16.5'/%3E%3Cpath d='m9.5 15.5 2.5 2.7 5-5.4'/%3E%3C/svg%3E";

/// The whole document. The policy (`Content-Security-Policy`) is a header and the server's business; every script here
/// carries the nonce that the header must name.
pub fn shell(env: PageEnv) -> impl IntoView {
    let nonce = use_nonce();
    let start = format!(
        "import init, {{ hydrate }} from '{}'; init({{ module_or_path: '{}' }}).then(() => hydrate());",
        env.script_href, env.wasm_href
    );
    let dev = env.dev.then(|| {
        let nonce = nonce.clone();
        view! { <script type="module" nonce=nonce>{dev_script()}</script> }
    });
    view! {
        <!DOCTYPE html>
        <html lang="en" data-theme=env.theme.as_str() data-events=env.sse_url>
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover"/>
                <meta name="color-scheme" content="light dark"/>
                <meta name="robots" content="noindex"/>
                <link rel="icon" id="favicon" href=ICON/>
                <link rel="preload" href="/fonts/inter.woff2" r#as="font" type="font/woff2" crossorigin="anonymous"/>
                <link rel="preload" href="/fonts/newsreader.woff2" r#as="font" type="font/woff2" crossorigin="anonymous"/>
                <link rel="stylesheet" id="style" href=env.style_href/>
                <link rel="modulepreload" href=env.script_href nonce=nonce.clone()/>
                <link rel="preload" href=env.wasm_href r#as="fetch" type="application/wasm" crossorigin="anonymous"/>
                <script type="module" nonce=nonce>{start}</script>
                {dev}
                <MetaTags/>
            </head>
            <body>
                <App/>
            </body>
        </html>
    }
}

fn dev_script() -> String {
    format!(
        "let lost = false; const dev = new EventSource('{DEV_EVENTS}');
dev.addEventListener('style', () => {{ const old = document.getElementById('style'), fresh = old.cloneNode(); const url = new URL(old.href); url.searchParams.set('t', Date.now()); fresh.href = url; fresh.onload = () => old.remove(); old.after(fresh); }});
dev.addEventListener('reload', () => location.reload());
dev.onerror = () => {{ lost = true; }}; dev.onopen = () => {{ if (lost) location.reload(); }};"
    )
}
