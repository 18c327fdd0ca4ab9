//! The browser's entry: `hydrate()`, nothing else.

/// Called by the page's one script once the module is compiled. A panic is written to the console; the forms on the
/// page keep working without us.
#[wasm_bindgen::prelude::wasm_bindgen]
pub fn hydrate() {
    console_error_panic_hook::set_once();
    leptos::mount::hydrate_body(cloudhal_app::App);
}
