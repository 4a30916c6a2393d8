//! What was used, summed over all facts, in the words of each dialect.

use serde::Deserialize;
use serde_json::{Value, json};

/// One fact as an event holds it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Fact {
    unit: String,
    quantity: f64,
}

/// The counts that dialects know. Facts in other units have no place there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    reasoning: f64,
}

impl Usage {
    pub fn add(&mut self, facts: &[Fact]) {
        for Fact { unit, quantity } in facts {
            let count = match unit.as_str() {
                "input_token" => &mut self.input,
                "output_token" => &mut self.output,
                "cache_read_token" => &mut self.cache_read,
                "cache_write_token" => &mut self.cache_write,
                "reasoning_token" => &mut self.reasoning,
                _ => continue,
            };
            *count += quantity;
        }
    }

    /// Whether the answer is as long as it was allowed to be: the sign of one that was cut short where its provider does
    /// not say why it ended.
    pub fn reached(&self, max_tokens: Option<u64>) -> bool {
        max_tokens.is_some_and(|max| self.output >= max as f64)
    }

    pub fn chat(&self) -> Value {
        json!({
            "prompt_tokens": count(self.input),
            "completion_tokens": count(self.output),
            "total_tokens": count(self.input + self.output),
            "prompt_tokens_details": {"cached_tokens": count(self.cache_read)},
            "completion_tokens_details": {"reasoning_tokens": count(self.reasoning)},
        })
    }

    pub fn responses(&self) -> Value {
        json!({
            "input_tokens": count(self.input),
            "input_tokens_details": {"cached_tokens": count(self.cache_read)},
            "output_tokens": count(self.output),
            "output_tokens_details": {"reasoning_tokens": count(self.reasoning)},
            "total_tokens": count(self.input + self.output),
        })
    }

    pub fn messages(&self) -> Value {
        json!({
            "input_tokens": count(self.input),
            "output_tokens": count(self.output),
            "cache_creation_input_tokens": count(self.cache_write),
            "cache_read_input_tokens": count(self.cache_read),
        })
    }
}

/// Tokens are whole there; a provider that counts in fractions has the rest cut off.
fn count(quantity: f64) -> u64 {
    quantity as u64
}
