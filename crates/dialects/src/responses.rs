//! `POST /v1/responses` of OpenAI, and what is done with a response later.

use sealog_events::ExecutionId;

pub(crate) mod answer;
pub(crate) mod request;

/// What stands before the hexadecimal digits of the execution's id.
const PREFIX: &str = "resp_";

/// The id of the response that an execution answers.
pub fn response_id(id: ExecutionId) -> String {
    format!("{PREFIX}{}", id.to_string().replace('-', ""))
}

/// The execution of a response's id; `None` for any other text.
pub fn execution_of(response_id: &str) -> Option<ExecutionId> {
    let digits = response_id.strip_prefix(PREFIX)?;
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 32 || !digits.bytes().all(lower) {
        return None;
    }
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    ExecutionId::parse(&parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_execution_and_no_other_text_does() {
        let id = ExecutionId::from_random([0xc4; 16]);
        let text = response_id(id);
        assert_eq!(execution_of(&text), Some(id));
        let upper = text.to_uppercase();
        for wrong in ["", "resp_", &text[5..], &upper, &text[..36], &format!("{text}0"), &id.to_string()] {
            assert_eq!(execution_of(wrong), None, "{wrong}");
        }
    }
}
