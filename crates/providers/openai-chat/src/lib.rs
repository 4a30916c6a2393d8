//! Any OpenAI-compatible chat completions stream.
