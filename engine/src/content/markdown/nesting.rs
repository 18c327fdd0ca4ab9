//! Whether a page would take a tree builder too long.
//!
//! The builder of the sanitiser looks through all open elements at many tags, and opens unclosed formatting again in every
//! paragraph, as the HTML standard tells it to: 50,000 times `>` kept it busy for more than a minute, 2,000 open `<b>`
//! grew 40 kB to 70 MB. So the tags are counted first, with the same tokenizer. The count is never lower than the
//! builder's: an end tag closes one element and not those inside it, and where the two may disagree about what is a tag
//! (inside `<svg>`, `<math>` and raw text) nothing is taken back.

use std::cell::RefCell;

use html5ever::tokenizer::states::{RawKind, Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::{LocalName, local_name};

/// Deeper than any page that was written to be read.
const DEPTH_MAX: usize = 256;
const OPEN_FORMATTING_MAX: usize = 8;
/// A tag or a comment of this length is refused too.
const PIECE_BYTES: usize = 8 * 1024;

pub(super) fn is_tangled(html: &str) -> bool {
    let tokenizer = Tokenizer::new(Counter::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = after;
        tokenizer.sink.0.borrow_mut().tokens_in_piece = 0;
        input.push_back(piece.into());
        let _ = tokenizer.feed(&input);
        let mut count = tokenizer.sink.0.borrow_mut();
        // A whole piece inside one tag: the tokenizer compares each attribute with all before it.
        count.is_tangled |= count.tokens_in_piece == 0 && piece.len() >= PIECE_BYTES / 2;
        if count.is_tangled {
            return true;
        }
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().is_tangled
}

#[derive(Default)]
struct Counter(RefCell<Count>);

#[derive(Default)]
struct Count {
    open: Vec<LocalName>,
    formatting: usize,
    foreign: usize,
    /// What looks like tags inside the raw text that is being read.
    raw: usize,
    tokens_in_piece: usize,
    is_tangled: bool,
}

impl TokenSink for Counter {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut count = self.0.borrow_mut();
        count.tokens_in_piece += 1;
        if count.is_tangled {
            return TokenSinkResult::Continue;
        }
        let raw_kind = match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => count.open(&tag),
            Token::TagToken(tag) => {
                count.close(&tag.name);
                None
            }
            Token::CharacterTokens(text) => {
                count.raw += text.matches('<').count();
                None
            }
            _ => None,
        };
        count.is_tangled =
            count.open.len() + count.raw > DEPTH_MAX || count.formatting > OPEN_FORMATTING_MAX;
        raw_kind.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData)
    }
}

impl Count {
    fn open(&mut self, tag: &Tag) -> Option<RawKind> {
        self.raw = 0;
        if is_foreign(&tag.name) {
            self.foreign += 1;
        } else if self.foreign == 0 && (is_void(&tag.name) || self.closes_another(&tag.name)) {
            return None;
        }
        self.formatting += usize::from(is_formatting(&tag.name));
        self.open.push(tag.name.clone());
        if self.foreign == 0 {
            raw_kind(&tag.name)
        } else {
            None
        }
    }

    /// Elements whose end tag may be left out. All of them also leave `<svg>` and `<math>` on the spot.
    fn closes_another(&self, name: &LocalName) -> bool {
        let last = self.open.last();
        match *name {
            local_name!("p") => true,
            local_name!("li") => last == Some(&local_name!("li")),
            local_name!("dd") | local_name!("dt") => {
                matches!(last, Some(&local_name!("dd") | &local_name!("dt")))
            }
            _ => false,
        }
    }

    fn close(&mut self, name: &LocalName) {
        self.raw = 0;
        if self.foreign > 0 && !is_foreign(name) {
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            self.open.remove(at);
            self.formatting -= usize::from(is_formatting(name));
            self.foreign -= usize::from(is_foreign(name));
        }
    }
}

fn is_foreign(name: &LocalName) -> bool {
    matches!(*name, local_name!("svg") | local_name!("math"))
}

fn is_void(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("br")
            | local_name!("hr")
            | local_name!("img")
            | local_name!("input")
            | local_name!("wbr")
            | local_name!("col")
            | local_name!("meta")
            | local_name!("link")
            | local_name!("base")
            | local_name!("area")
            | local_name!("embed")
            | local_name!("param")
            | local_name!("source")
            | local_name!("track")
    )
}

/// What the builder opens again wherever a paragraph has closed it.
fn is_formatting(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("a")
            | local_name!("b")
            | local_name!("big")
            | local_name!("code")
            | local_name!("em")
            | local_name!("font")
            | local_name!("i")
            | local_name!("nobr")
            | local_name!("s")
            | local_name!("small")
            | local_name!("strike")
            | local_name!("strong")
            | local_name!("tt")
            | local_name!("u")
    )
}

fn raw_kind(name: &LocalName) -> Option<RawKind> {
    match *name {
        local_name!("script") => Some(ScriptData),
        local_name!("title") | local_name!("textarea") => Some(Rcdata),
        local_name!("style")
        | local_name!("xmp")
        | local_name!("iframe")
        | local_name!("noembed")
        | local_name!("noframes") => Some(Rawtext),
        _ => None,
    }
}
