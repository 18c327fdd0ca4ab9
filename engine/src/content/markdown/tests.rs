use std::cell::RefCell;

use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

use super::*;

const PAGES: [&str; 8] = [
    "visit",
    "visit/opening-hours",
    "visit/how-to-find-us",
    "bread",
    "bread/rye",
    "bread/v1.2",
    "functions/strings/title",
    "team",
];

fn render_on(page: &str, is_section: bool, body: &str) -> Rendered {
    let exists = |path: &str| PAGES.contains(&path);
    let alias = |path: &str| match path {
        "functions/title" => Some("functions/strings/title".to_string()),
        "stale" => Some("no/longer/here".to_string()),
        "start" => Some(String::new()),
        _ => None,
    };
    render(
        body,
        &Links {
            base: "/live/bakery",
            page,
            is_section,
            exists: &exists,
            alias: Some(&alias),
        },
    )
}

fn html(body: &str) -> String {
    render_on("visit/opening-hours", false, body).html
}

// ---------------------------------------------------------------------------------------------------------------------
// What a browser would see

/// Tags with their attributes, as an HTML tokenizer reads them, and the text between.
#[derive(Default)]
struct Seen {
    tags: RefCell<Vec<SeenTag>>,
    text: RefCell<String>,
    odd: RefCell<Vec<String>>,
}

type SeenTag = (String, Vec<(String, String)>);

impl TokenSink for Seen {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let attributes = tag
                    .attrs
                    .iter()
                    .map(|a| (a.name.local.to_string(), a.value.to_string()))
                    .collect();
                self.tags
                    .borrow_mut()
                    .push((tag.name.to_string(), attributes));
            }
            Token::CharacterTokens(text) => self.text.borrow_mut().push_str(&text),
            Token::CommentToken(_)
            | Token::DoctypeToken(_)
            | Token::ParseError(_)
            | Token::NullCharacterToken => {
                self.odd.borrow_mut().push(format!("{token:?}"));
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn seen(html: &str) -> Seen {
    let tokenizer = Tokenizer::new(
        Seen::default(),
        TokenizerOpts {
            exact_errors: true,
            ..Default::default()
        },
    );
    let input = BufferQueue::default();
    input.push_back(html.into());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink
}

fn assert_harmless(snippet: &str, html: &str) {
    const ATTRIBUTES: [&str; 21] = [
        "alt",
        "class",
        "colspan",
        "datetime",
        "dir",
        "height",
        "href",
        "id",
        "lang",
        "loading",
        "open",
        "referrerpolicy",
        "rel",
        "reversed",
        "rowspan",
        "scope",
        "span",
        "src",
        "start",
        "tabindex",
        "title",
    ];
    let seen = seen(html);
    // A control character that stands in the text is an error to the tokenizer, and harmless.
    let odd: Vec<_> = seen
        .odd
        .borrow()
        .iter()
        .filter(|odd| !odd.contains("Bad character"))
        .cloned()
        .collect();
    assert!(
        odd.is_empty(),
        "{snippet:?} gave {html:?}, which is not plain: {odd:?}"
    );
    for (tag, attributes) in seen.tags.borrow().iter() {
        assert!(
            TAGS.contains(&tag.as_str()),
            "{snippet:?} gave <{tag}> in {html:?}"
        );
        for (name, value) in attributes {
            let known = ATTRIBUTES.contains(&name.as_str()) || (name == "width" && tag == "img");
            assert!(known, "{snippet:?} gave {name}={value:?} in {html:?}");
            if name == "href" || name == "src" {
                let is_safe = [
                    "https://",
                    "http://",
                    "mailto:",
                    "tel:",
                    "/live/bakery/",
                    "#",
                ]
                .iter()
                .any(|s| value.starts_with(s));
                assert!(
                    is_safe && (name != "src" || value.starts_with("https://")),
                    "{snippet:?} leads to {value:?}"
                );
            }
        }
        let is_outside = attributes
            .iter()
            .any(|(name, value)| name == "href" && value.starts_with("http"));
        let rel = attributes
            .iter()
            .any(|(name, value)| name == "rel" && value == "noopener noreferrer nofollow");
        assert!(
            !is_outside || rel,
            "{snippet:?} vouches for a stranger in {html:?}"
        );
    }
}

const HOSTILE: &[&str] = &[
    // Scripts, plain and in disguise
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script\n>alert(1)</script\n>",
    "<script/x>alert(1)</script>",
    "<script>alert(1)",
    // Handlers
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "<svg><script>alert(1)</script></svg>",
    "<svg><a xlink:href=\"javascript:alert(1)\"><text>x</text></a></svg>",
    "<img src=x onerror=alert(1)>",
    "<img src=\"https://e.example/a.png\" onload=\"alert(1)\" style=\"width:100vw\">",
    "<img src=x:alert(alt) onerror=eval(src) alt=xss>",
    "<p onclick=alert(1)>text</p>",
    "<details open ontoggle=alert(1)>x</details>",
    "<a href=https://a.example onmouseover=alert(1) target=_blank>x</a>",
    "<b/onfocus=alert(1) tabindex=9 autofocus contenteditable>x</b>",
    // Addresses
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](<java\nscript:alert(1)>)",
    "[x](\u{1}javascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:msgbox)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://a.example/1)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=\"&#x6A;&#x61;vascript:alert(1)\">x</a>",
    "<a href=\"java&Tab;script:alert(1)\">x</a>",
    "<a href=\" \u{a0}javascript:alert(1)\">x</a>",
    "<a href=\"//evil.example\">x</a> [y](//evil.example) [z](/\\evil.example) [w](\\\\evil.example)",
    "![x](javascript:alert(1)) ![y](data:image/svg+xml,<svg/onload=alert(1)>) ![z](http://a.example/p.png)",
    "![x](https://a.example/\"onerror=alert(1)//)",
    "![a\" onerror=\"alert(1)](https://a.example/p.png \"t\\\" onload=\\\"x\")",
    // Styles
    "<style>body{background:url(https://evil.example)}</style>",
    "<style><!--</style><img src=x onerror=alert(1)>--></style>",
    "<p style=\"position:fixed;inset:0;background:url(javascript:alert(1))\">x</p>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<div class=\"masthead notice approve\">x</div><span class=\"alert btn yes\">x</span>",
    // Forms, frames, documents
    "<form action=/approvals/1/approve method=post><input name=a value=b><button>Approve</button></form>",
    "<input type=image src=x onerror=alert(1)>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<textarea></textarea><script>alert(1)</script></textarea>",
    "<title></title><img src=x onerror=alert(1)></title>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
    "<object data=//evil.example></object><embed src=//evil.example>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=\"0;url=//evil.example\">",
    "<body onload=alert(1)><html manifest=x><head>",
    "<frameset onload=alert(1)><frame src=x></frameset>",
    "<video><source onerror=alert(1)></video><audio src=x onerror=alert(1)>",
    "<portal src=//evil.example></portal><dialog open>x</dialog><slot name=x></slot>",
    "<template shadowrootmode=open><script>alert(1)</script></template>",
    // Shapes that change meaning when parsed again
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<xmp><p title=\"</xmp><img src=x onerror=alert(1)>\">",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<?php echo 1 ?><!DOCTYPE html><!ENTITY x>",
    "<a title=\"&lt;/a&gt;&lt;script&gt;alert(1)&lt;/script&gt;\" href=/visit/>x</a>",
    "<p id=\"&quot;><script>alert(1)</script>\" title='\"><script>alert(1)</script>'>x</p>",
    "<select><template><img src=x onerror=alert(1)></template></select>",
    "<table><tr><td><a href=/visit/><table><tr><td><a href=javascript:alert(1)>y</a></table></a></table>",
    // Tricks between Markdown and HTML
    "`<img src=x onerror=alert(1)>` ``` <script> ```",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    "```\"><script>alert(1)</script>\nx\n```",
    "```js {file=\"\"><script>alert(1)</script>\"}\nx\n```",
    "```js {file=\"<img src=x onerror=alert(1)>\"}\nx\n```",
    "# x {#a\"onclick=alert(1) .masthead onclick=alert(1)}",
    "## <img src=x onerror=alert(1)> title",
    "<h2 id=content onclick=x>content</h2>",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "[^1]\n\n[^1]: <script>alert(1)</script>",
    "[^\"><script>]\n\n[^\"><script>]: x",
    "> [!NOTE]\n> <iframe src=x>",
    "[<img src=x onerror=alert(1)>](javascript:alert(1))",
    "[a](<javascript:alert(1)> \"t\")",
    "[a]: <javascript:alert(1)>\n[a]",
    "term\n: <script>alert(1)</script>",
    "- [ ] <input type=checkbox checked onclick=alert(1)>",
    "{{< x \"</code><script>alert(1)</script>\" >}}",
    "{{<script>alert(1)</script>}}",
    "{{< a >}}\n```\n<script>alert(1)</script>\n{{< /a >}}",
    "[x]({{< ref \"javascript:alert(1)\" >}})",
    "<div title=\"{{< x >}}\"><script>{{% y %}}</script></div>",
    "<p>\n{{<img src=x onerror=alert(1)>}}\n</p>",
    "a\0b <scr\0ipt>alert(1)</scr\0ipt>",
    "\u{202e}<script>\u{200b}alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62;",
];

#[test]
fn hostile_text_becomes_harmless() {
    assert!(
        HOSTILE.len() >= 90,
        "the corpus shrank to {}",
        HOSTILE.len()
    );
    for snippet in HOSTILE {
        let rendered = render_on("visit/opening-hours", false, snippet);
        assert_harmless(snippet, &rendered.html);
        let twice = SANITISER.clean(&rendered.html).to_string();
        // Reading the result again and again must not wake anything up either.
        assert_harmless(
            snippet,
            &finish::finish(
                &twice,
                &Links {
                    exists: &|_| false,
                    ..links()
                },
            )
            .html,
        );
    }
}

#[test]
fn hostile_text_stays_harmless_inside_other_blocks() {
    for snippet in HOSTILE {
        let line = snippet.replace('\n', " ");
        for body in [
            format!("> {line}"),
            format!("- a\n\n  {line}"),
            format!("**{line}**"),
            format!("<div>{line}</div>"),
            format!("# {line}"),
        ] {
            assert_harmless(&body, &html(&body));
        }
    }
    let everything = HOSTILE.join("\n\n");
    assert_harmless("all at once", &html(&everything));
}

#[test]
fn scripts_are_dropped_with_their_text() {
    for (body, text) in [
        ("<script>alert(1)</script>ok", "ok"),
        ("<style>p{}</style>ok", "ok"),
        ("<textarea>x</textarea>ok", "ok"),
    ] {
        assert_eq!(seen(&html(body)).text.borrow().trim(), text);
    }
    let code = html("`<script>alert(1)</script>`");
    assert_eq!(
        seen(&code).text.borrow().trim(),
        "<script>alert(1)</script>",
        "code about scripts stays readable"
    );
}

#[test]
fn only_our_own_classes_pass() {
    let out = html(
        "<div class='alert masthead alert-note'>x</div><code class='language-rust notice'>x</code><p class=lead>x</p>",
    );
    assert!(
        out.contains("<div class=\"alert alert-note\">")
            && out.contains("<code class=\"language-rust\">"),
        "{out}"
    );
    assert!(
        !out.contains("masthead") && !out.contains("notice") && !out.contains("lead"),
        "{out}"
    );
}

/// Tree builders take the square of a page's depth, so a page of nothing but `>` could hold a server for minutes.
#[test]
fn large_and_deep_text_neither_hangs_nor_overflows() {
    let n = 20_000;
    let ids: String = (0..n).map(|i| format!("<b id=a{i}>")).collect();
    let hidden: String = "<div><style></div></style>".repeat(n);
    for body in [
        ">".repeat(n),
        "[".repeat(n),
        "*a ".repeat(n),
        "*a **b ".repeat(n),
        "`".repeat(n),
        "- ".repeat(n),
        "<div>".repeat(n),
        "<b>".repeat(n),
        "![".repeat(n),
        "{{< ".repeat(n),
        "{{< a >}}\n".repeat(n),
        "[a](".repeat(n),
        "<a href=x>".repeat(n),
        "&#".repeat(n),
        "## a\n".repeat(n),
        "[^a]".repeat(n),
        "|a".repeat(n) + "\n" + &"|-".repeat(n),
        "<h1><h2>".repeat(n),
        ids + &"<p>x".repeat(n),
        hidden,
        "<div><!--</div>-->".repeat(n),
        "<div title='</div>'>".repeat(n),
        "<td>".repeat(n),
        "<svg><foreignObject>".to_string() + &"<div><style></div></style>".repeat(n),
        "<svg>".to_string() + &"<g></p>".repeat(n),
        "<svg><foreignObject><style></svg></style></foreignObject><style>".to_string()
            + &"<g>".repeat(n),
        "<ruby>".to_string() + &"<rt>".repeat(n),
        "<table>".repeat(n),
        "<p><li><dd>".repeat(n),
        "<p><li><dd></p>".repeat(n),
        "<li><dd></li>".repeat(n),
        "<li>a<li>".repeat(n),
        "</b></p></br>".repeat(n),
    ] {
        let before = worked_seconds();
        let rendered = html(&body);
        let (took, name) = (worked_seconds() - before, &body[..20]);
        // Unoptimised, and work, not waiting; what this is here to catch took more than two minutes of it.
        assert!(
            took < 15,
            "{name:?}… took {took} s of work for {} bytes",
            body.len()
        );
        assert!(
            rendered.len() < 40 * body.len() + 1000,
            "{name:?}… grew to {}",
            rendered.len()
        );
    }
}

/// Of this thread's own: other tests on the same cores do not count.
fn worked_seconds() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec
}

#[test]
fn what_cannot_be_laid_out_is_shown_as_source() {
    let body = format!("{}<script>alert(1)</script> end", "<div>".repeat(1000));
    let out = html(&body);
    assert_harmless(&body, &out);
    assert!(seen(&out).text.borrow().contains(&body), "nothing is lost");
    let many_attributes = format!(
        "<p {}>x</p>",
        (0..20_000).map(|i| format!("a{i} ")).collect::<String>()
    );
    assert!(html(&many_attributes).contains("Shown as source"));
    let picture = html(&format!(
        "![Loaf](data:image/png;base64,{}) and text",
        "A/b+".repeat(50_000)
    ));
    assert!(
        picture.contains("<span class=\"image-missing\">Loaf</span> and text"),
        "{}",
        &picture[..200]
    );
    let usual = format!("{}{}", "> ".repeat(100), "<ul><li>".repeat(40));
    assert!(!html(&usual).contains("Shown as source"));
}

// ---------------------------------------------------------------------------------------------------------------------
// Links

fn links() -> Links<'static> {
    Links {
        base: "/live/bakery",
        page: "",
        is_section: true,
        exists: &|_| true,
        alias: None,
    }
}

#[test]
fn links_lead_where_their_author_meant() {
    let page = ("visit/opening-hours", false);
    let section = ("visit", true);
    let home = ("", true);
    for ((page, is_section), href, expected) in [
        (page, "/visit/", Some("/live/bakery/visit/")),
        (page, "/visit", Some("/live/bakery/visit/")),
        (
            page,
            "/visit/how-to-find-us.md",
            Some("/live/bakery/visit/how-to-find-us/"),
        ),
        (
            page,
            "/visit/how-to-find-us/index.html",
            Some("/live/bakery/visit/how-to-find-us/"),
        ),
        (page, "/visit/_index.md", Some("/live/bakery/visit/")),
        (page, "index.md", Some("/live/bakery/visit/")),
        (page, "./_index.md#when", Some("/live/bakery/visit/#when")),
        (
            page,
            "/VISIT/Opening-Hours/",
            Some("/live/bakery/visit/opening-hours/"),
        ),
        (
            page,
            "/visit/Opening%20Hours.md",
            Some("/live/bakery/visit/opening-hours/"),
        ),
        (
            page,
            "../how-to-find-us/",
            Some("/live/bakery/visit/how-to-find-us/"),
        ),
        (
            page,
            "how-to-find-us.md",
            Some("/live/bakery/visit/how-to-find-us/"),
        ),
        (
            page,
            "./how-to-find-us.md#tram",
            Some("/live/bakery/visit/how-to-find-us/#tram"),
        ),
        (page, "../bread/rye.md", Some("/live/bakery/bread/rye/")),
        (page, "../../bread/rye/", Some("/live/bakery/bread/rye/")),
        (page, "bread/rye", Some("/live/bakery/bread/rye/")),
        (page, "./bread/rye", None),
        (page, "/bread/v1.2/", Some("/live/bakery/bread/v1.2/")),
        (
            page,
            "/bread/rye/#crust",
            Some("/live/bakery/bread/rye/#crust"),
        ),
        (
            page,
            "/bread/rye?x=1#crust",
            Some("/live/bakery/bread/rye/#crust"),
        ),
        (page, "#easter", Some("#easter")),
        (page, "/", Some("/live/bakery/")),
        (page, "/_index.md", Some("/live/bakery/")),
        (page, "/../../..", Some("/live/bakery/")),
        (page, "/en/visit/", Some("/live/bakery/visit/")),
        (page, "/en/", Some("/live/bakery/")),
        (
            page,
            "/functions/title",
            Some("/live/bakery/functions/strings/title/"),
        ),
        (
            page,
            "/functions/title/#x",
            Some("/live/bakery/functions/strings/title/#x"),
        ),
        (page, "/start/", Some("/live/bakery/")),
        (page, "/stale/", None),
        (page, "/nowhere/", None),
        (page, "", None),
        (page, "#", None),
        (
            section,
            "opening-hours.md",
            Some("/live/bakery/visit/opening-hours/"),
        ),
        (
            section,
            "opening-hours",
            Some("/live/bakery/visit/opening-hours/"),
        ),
        (section, "../bread/", Some("/live/bakery/bread/")),
        (section, "./nowhere", None),
        (
            home,
            "visit/opening-hours.md",
            Some("/live/bakery/visit/opening-hours/"),
        ),
        (home, "team", Some("/live/bakery/team/")),
        (
            page,
            "https://example.org/a?b=1&c=2",
            Some("https://example.org/a?b=1&c=2"),
        ),
        (
            page,
            "mailto:hello@example.org",
            Some("mailto:hello@example.org"),
        ),
        (page, "tel:+3247122", Some("tel:+3247122")),
        (page, "//example.org/x", Some("https://example.org/x")),
        (page, "ftp://example.org/", None),
        (page, "https://", None),
    ] {
        for body in [
            format!("[there](<{href}>)"),
            format!("<a href=\"{href}\">there</a>"),
        ] {
            let rendered = render_on(page, is_section, &body);
            let seen = seen(&rendered.html);
            let tags = seen.tags.borrow();
            let found = tags
                .iter()
                .find(|(tag, _)| tag == "a")
                .and_then(|(_, a)| a.iter().find(|(name, _)| name == "href"));
            assert_eq!(
                found.map(|(_, value)| value.as_str()),
                expected,
                "{body} on {page:?} gave {}",
                rendered.html
            );
            if expected.is_none() {
                assert!(
                    rendered.html.contains("<span class=\"link-missing\""),
                    "{}",
                    rendered.html
                );
            }
        }
    }
}

#[test]
fn missing_links_are_listed_once_and_unsafe_ones_are_text() {
    let rendered = render_on(
        "",
        true,
        "[a](/x/) [b](/x/) [c](y.md) [d](javascript:1) [e](/visit/)",
    );
    assert_eq!(rendered.unresolved, ["/x/", "y.md"]);
    assert_eq!(rendered.html.matches("link-missing").count(), 4);
}

#[test]
fn a_relative_base_works_in_an_export() {
    let rendered = render(
        "[a](/visit/#x) [b](/)",
        &Links {
            base: "../..",
            page: "bread/rye",
            ..links()
        },
    );
    assert!(
        rendered.html.contains("href=\"../../visit/#x\"")
            && rendered.html.contains("href=\"../../\""),
        "{}",
        rendered.html
    );
}

#[test]
fn aliases_are_paths() {
    let fields = serde_json::json!({ "aliases": ["/Functions/Title", "/old/index.html", "beside", "../up/", "/", 7] });
    let paths = alias_paths(fields.as_object().unwrap(), "bread/rye");
    assert_eq!(paths, ["functions/title", "old", "bread/beside", "up"]);
}

#[test]
fn pictures_from_elsewhere_stay_and_others_become_their_words() {
    let rendered = render_on(
        "",
        true,
        "![Loaf](https://a.example/l.png) ![Oven](oven.png) ![](img/door.jpg) ![Till](http://a.example/t.png)",
    );
    assert!(
        rendered
            .html
            .contains("<img src=\"https://a.example/l.png\" alt=\"Loaf\" loading=\"lazy\""),
        "{}",
        rendered.html
    );
    for words in ["Oven", "door.jpg", "Till"] {
        assert!(
            rendered
                .html
                .contains(&format!("<span class=\"image-missing\">{words}</span>")),
            "{}",
            rendered.html
        );
    }
    assert_eq!(
        rendered.missing_images,
        ["oven.png", "img/door.jpg", "http://a.example/t.png"]
    );
}

// ---------------------------------------------------------------------------------------------------------------------
// What authors write

#[test]
fn markdown_becomes_the_html_we_style() {
    for (body, expected) in [
        (
            "> [!WARNING]\n> Hot.",
            "<div class=\"alert alert-warning\"><p class=\"alert-title\">Warning</p>\n<p>Hot.</p>",
        ),
        ("> plain", "<blockquote>\n<p>plain</p>"),
        (
            "```go {linenos=true}\nx\n```",
            "<pre tabindex=\"0\"><code class=\"language-go\">x\n</code></pre>",
        ),
        (
            "```go{linenos=true}\nx\n```",
            "<code class=\"language-go\">",
        ),
        ("    indented", "<pre tabindex=\"0\"><code>indented"),
        (
            "```toml {file=\"hugo.toml\" copy=true}\nx\n```",
            "<figure class=\"listing\"><figcaption>hugo.toml</figcaption><pre tabindex=\"0\"><code class=\"language-toml\">x\n</code></pre></figure>",
        ),
        (
            "|a|b|\n|:-:|--:|\n|1|2|",
            "<div class=\"table\" tabindex=\"0\"><table><thead><tr><th scope=\"col\" class=\"center\">a</th><th scope=\"col\" class=\"right\">b</th>",
        ),
        (
            "|a|b|\n|:-:|--:|\n|1|2|",
            "<td class=\"center\">1</td><td class=\"right\">2</td>",
        ),
        (
            "- [x] done\n- [ ] open",
            "<li><span class=\"task\">☑</span> done</li>",
        ),
        ("~~gone~~", "<del>gone</del>"),
        (
            "rye\n: dark",
            "<dl>\n<dt id=\"rye\">rye</dt>\n<dd>dark</dd>",
        ),
        (
            "<details open><summary>More</summary>x</details>",
            "<details open=\"\"><summary>More</summary>x</details>",
        ),
        ("H<sub>2</sub>O <kbd>a</kbd>", "H<sub>2</sub>O <kbd>a</kbd>"),
        ("<a id=\"here\"></a>", "<a id=\"here\"></a>"),
        ("5 < 6 & 7 > 2 \"q\"", "5 &lt; 6 &amp; 7 &gt; 2 \"q\""),
    ] {
        let out = html(body);
        assert!(out.contains(expected), "{body:?} gave {out}");
    }
}

#[test]
fn footnotes_stand_at_the_end_in_the_order_of_their_mention() {
    let out = html("One[^b], two[^a], again[^b].\n\n[^a]: Alpha\n[^b]: Beta\n\nEnd.");
    let (text, notes) = out.split_once("<section class=\"footnotes\">").unwrap();
    assert!(
        text.contains(
            "<sup class=\"footnote-ref\" id=\"fnref-1\"><a href=\"#fn-1\">1</a></sup>, two"
        ),
        "{out}"
    );
    assert!(
        text.contains("id=\"fnref-1-2\"") && text.contains("End."),
        "{out}"
    );
    assert!(
        notes.find("Beta").unwrap() < notes.find("Alpha").unwrap()
            && notes.contains("<li id=\"fn-2\">"),
        "{out}"
    );
}

#[test]
fn headings_get_stable_unique_ids() {
    let body = "# Content\n## The `oven` & you\n## Übung macht's\n## 日本\n## !\n## Same\n## Same\n### Named {#my-id .x}\n<h2>Raw <b>one</b></h2>\n\n## Named {#my-id}\n";
    let rendered = render_on("", true, body);
    let ids: Vec<_> = rendered
        .headings
        .iter()
        .map(|heading| heading.id.as_str())
        .collect();
    assert_eq!(
        ids,
        [
            "content-1",
            "the-oven--you",
            "übung-machts",
            "日本",
            "section",
            "same",
            "same-1",
            "my-id",
            "raw-one",
            "my-id-1"
        ]
    );
    assert_eq!(
        rendered.headings[1],
        Heading {
            level: 2,
            id: "the-oven--you".into(),
            text: "The oven & you".into()
        }
    );
    for heading in &rendered.headings {
        assert_eq!(
            rendered
                .html
                .matches(&format!("id=\"{}\"", heading.id))
                .count(),
            1,
            "{}",
            heading.id
        );
    }
    assert!(
        rendered
            .html
            .contains("<h2 id=\"raw-one\">Raw <b>one</b></h2>"),
        "{}",
        rendered.html
    );
}

#[test]
fn words_are_counted_as_a_reader_would() {
    assert_eq!(
        render_on(
            "",
            true,
            "# Two words\n\nAnd *three* more — <b>bold</b> `code`."
        )
        .word_count,
        7
    );
    assert_eq!(render_on("", true, "").word_count, 0);
}

#[test]
fn shortcodes_are_shown_and_never_lost() {
    for (body, text) in [
        (
            "Since {{< new-in 0.1 />}} yes.",
            "Since {{< new-in 0.1 />}} yes.",
        ),
        (
            "{{% include \"/_common/*x*.md\" %}}",
            "{{% include \"/_common/*x*.md\" %}}",
        ),
        ("{{<note>}}", "{{<note>}}"),
        ("a {{</* escaped */>}} b", "a {{< escaped >}} b"),
        ("`{{</* code */>}}`", "{{< code >}}"),
        ("`{{< code >}}`", "{{< code >}}"),
        ("<div>{{<b>}}</div>", "{{<b>}}"),
        (
            "| a |\n|---|\n| {{< x \"a|b\" >}} |",
            "a\n{{< x \"a|b\" >}}",
        ),
        ("{{< open", "{{< open"),
        (
            "{{% note %}}\n**x**\n{{% /note %}}",
            "{{% note %}}\nx\n{{% /note %}}",
        ),
    ] {
        let out = html(body);
        assert_eq!(seen(&out).text.borrow().trim(), text, "{body:?} gave {out}");
    }
    assert!(html("Since {{< new-in 0.1 />}}").contains("<code class=\"shortcode\">"));
}

#[test]
fn a_raw_pair_of_shortcodes_is_one_block_of_code() {
    let inner = "title: a\n---\n# not a heading\n[params]\n\n    ```\n<b>x</b>";
    let body = format!(
        "Before.\n{{{{< code-toggle file=hugo >}}}}\n{inner}\n{{{{< /code-toggle >}}}}\nAfter {{{{< x >}}}}."
    );
    let rendered = render_on("", true, &body);
    assert!(rendered.headings.is_empty(), "{}", rendered.html);
    assert!(
        rendered
            .html
            .contains("<code class=\"language-shortcode\">{{&lt; code-toggle file=hugo &gt;}}\n"),
        "{}",
        rendered.html
    );
    assert!(
        rendered
            .html
            .contains("<p>After <code class=\"shortcode\">"),
        "{}",
        rendered.html
    );
    let quoted = html("> {{< a >}}\n> # x\n> {{< /a >}}\n> after");
    assert!(
        quoted.contains("<blockquote>")
            && quoted.contains("# x")
            && quoted.contains("<p>after</p>"),
        "{quoted}"
    );
    let listed = html("1. one\n   {{< a >}}\n   # x\n   {{< /a >}}\n2. two");
    assert_eq!(listed.matches("<li>").count(), 2, "{listed}");
    assert!(listed.contains("# x\n{{&lt; /a &gt;}}"), "{listed}");
}

#[test]
fn shortcodes_that_name_a_page_are_links() {
    let rendered = render_on(
        "visit/opening-hours",
        false,
        "[a]({{< ref \"bread/rye.md#crust\" >}}) [b]({{% relref \"how-to-find-us\" %}}) [c]({{< x >}})",
    );
    assert!(
        rendered
            .html
            .contains("<a href=\"/live/bakery/bread/rye/#crust\">a</a>"),
        "{}",
        rendered.html
    );
    assert!(
        rendered
            .html
            .contains("<a href=\"/live/bakery/visit/how-to-find-us/\">b</a>"),
        "{}",
        rendered.html
    );
    assert!(
        rendered
            .html
            .contains("<span class=\"link-missing\" title=\"{{&lt; x &gt;}}\">c</span>"),
        "{}",
        rendered.html
    );
    assert_eq!(rendered.unresolved, ["{{< x >}}"]);
    for address in ["{{% eturl highlight %}}", "<{{% eturl highlight %}}>"] {
        let defined = html(&format!("See [the source][].\n\n[the source]: {address}\n"));
        let expected = "title=\"{{% eturl highlight %}}\">the source</span>";
        assert!(defined.contains(expected), "{defined}");
    }
}
