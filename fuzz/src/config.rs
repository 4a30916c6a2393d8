//! The configuration file: what an operator wrote, with a secret in the wrong place. Not in the testkit, which stays
//! below the binary; `tests/tests/config_corpus.rs` replays the kept inputs with this same body.

use sealog_cli::config::parse;

use sealog_testkit::fuzz::allocation::within;

/// Stands for a key that somebody pasted. No name may be spelled like this, so nothing may print it.
const PASTED: &str = "s\u{20ac}cret!";

/// Bytes that are no UTF-8 are refused before the parser; the text may hold [`PASTED`] anywhere.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match within(512 * text.len() + (4 << 20), || parse(text)) {
        Ok(config) => {
            assert!(!config.providers.providers().is_empty(), "a node has a provider");
            assert!(config.max_active_executions.is_none_or(|count| (1..=100_000).contains(&count)));
            let lines = text.matches('\n').count() + 1;
            for absent in &config.absent_keys {
                assert!((1..=lines).contains(&absent.line));
                assert!(!absent.words().contains(PASTED), "a value was repeated");
            }
        }
        Err(refused) => {
            assert!(refused.at.is_none_or(|at| at <= text.len() && text.is_char_boundary(at)), "{refused:?}");
            let words = format!("{} {}", refused.key.as_deref().unwrap_or_default(), refused.why);
            assert!(!words.contains(PASTED), "a value was repeated");
            assert!(words.len() <= 1024, "{} bytes of words", words.len());
            assert_eq!(parse(text).err(), Some(refused), "the same text, the same refusal");
        }
    }
}
