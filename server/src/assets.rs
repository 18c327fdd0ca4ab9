//! Scripts, styles and fonts: embedded in a release build, read from disk in a debug build so that a designer sees a change
//! at once. Their addresses carry a digest, so a browser keeps them for good.

use axum::{
    extract::Path,
    http::{HeaderMap, StatusCode, header},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::Stream;
use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest as _, Sha256};
use std::{borrow::Cow, convert::Infallible, sync::LazyLock, time::Duration};

/// The front end, as `cargo xtask` builds it.
#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../target/site"]
#[allow_missing = true]
struct Site;

#[derive(RustEmbed)]
#[folder = "$CARGO_MANIFEST_DIR/../style"]
struct Style;

const STUDIO_STYLES: &str = "studio/";
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

#[derive(Clone)]
pub struct Hrefs {
    pub script: String,
    pub wasm: String,
    pub style: String,
    pub live_style: String,
}

/// The addresses of this build's files.
pub fn hrefs() -> Hrefs {
    static FIXED: LazyLock<Hrefs> = LazyLock::new(compute_hrefs);
    if cfg!(debug_assertions) {
        compute_hrefs()
    } else {
        FIXED.clone()
    }
}

fn compute_hrefs() -> Hrefs {
    let front = front_version();
    Hrefs {
        script: format!("/pkg/{front}/cloudhal.js"),
        wasm: format!("/pkg/{front}/cloudhal.wasm"),
        style: format!("/assets/{}/studio.css", short(studio_css().as_bytes())),
        live_style: format!(
            "/assets/{}/live.css",
            short(
                &Style::get("live.css")
                    .map(|f| f.data.into_owned())
                    .unwrap_or_default()
            )
        ),
    }
}

/// Content in a release; modification times in a debug build, whose megabytes are not worth hashing on every page.
fn front_version() -> String {
    let part = |file: &str| {
        let Some(found) = Site::get(file) else {
            return String::new();
        };
        if cfg!(debug_assertions) {
            format!("{:?}", found.metadata.last_modified())
        } else {
            data_encoding::HEXLOWER.encode(&found.metadata.sha256_hash())
        }
    };
    short(format!("{}{}", part("cloudhal.js"), part("cloudhal.wasm")).as_bytes())
}

fn short(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)[..6])
}

/// The Studio's layers in the order of their names, as one sheet.
fn studio_css() -> String {
    let mut names: Vec<Cow<'static, str>> = Style::iter()
        .filter(|name| name.starts_with(STUDIO_STYLES) && name.ends_with(".css"))
        .collect();
    names.sort();
    names
        .iter()
        .filter_map(|name| Style::get(name))
        .map(|file| String::from_utf8_lossy(&file.data).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// `GET /pkg/{version}/{*file}`; the version only makes the address new.
pub async fn front(Path((_, file)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let accepts_brotli = headers
        .get(header::ACCEPT_ENCODING)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|v| v.split(',').any(|e| e.trim().starts_with("br")));
    if accepts_brotli && let Some(packed) = Site::get(&format!("{file}.br")) {
        let mut response = served(&file, packed, FOR_GOOD);
        response.headers_mut().insert(
            header::CONTENT_ENCODING,
            header::HeaderValue::from_static("br"),
        );
        response.headers_mut().insert(
            header::VARY,
            header::HeaderValue::from_static("accept-encoding"),
        );
        return response;
    }
    match Site::get(&file) {
        Some(found) => served(&file, found, FOR_GOOD),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// `GET /assets/{version}/{file}`: the two style sheets.
pub async fn style(Path((_, file)): Path<(String, String)>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, FOR_GOOD),
    ];
    match file.as_str() {
        "studio.css" => (headers, studio_css()).into_response(),
        "live.css" => match Style::get("live.css") {
            Some(found) => (headers, found.data.into_owned()).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// `GET /fonts/{file}`
pub async fn font(Path(file): Path<String>) -> Response {
    match Style::get(&format!("fonts/{file}")).filter(|_| file.ends_with(".woff2")) {
        Some(found) => served(&file, found, "public, max-age=604800"),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn served(name: &str, file: EmbeddedFile, cache: &'static str) -> Response {
    let kind = if name.ends_with(".wasm") {
        "application/wasm".to_owned()
    } else {
        mime_guess::from_path(name)
            .first_or_octet_stream()
            .to_string()
    };
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, cache.to_owned()),
        ],
        file.data.into_owned(),
    )
        .into_response()
}

/// Whether pages should watch for changes; only a debug build under `cargo xtask watch` says yes.
pub fn is_dev() -> bool {
    cfg!(debug_assertions) && std::env::var_os("CLOUDHAL_DEV").is_some()
}

/// `GET /_dev/events`: `style` when a style sheet changed, `reload` when the front end was built anew.
pub async fn dev_events() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stream = futures::stream::unfold(hrefs(), |before| async move {
        loop {
            tokio::time::sleep(Duration::from_millis(250)).await;
            let now = hrefs();
            let event = if now.script != before.script {
                "reload"
            } else if now.style != before.style || now.live_style != before.live_style {
                "style"
            } else {
                continue;
            };
            return Some((Ok(Event::default().event(event).data("")), now));
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::default())
}
