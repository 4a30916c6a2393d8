use super::*;

const RULES: Rules = Rules {
    default_id: "some",
    default_ability: Some("text-generation"),
    default_base_url: Some("https://example.com/v1"),
    key_required: false,
    text_model: true,
    input_modalities: &[Modality::Text, Modality::Json, Modality::Image],
    output_modalities: &[Modality::Text],
    asynchronous: false,
};

const MEDIA: Rules = Rules {
    default_ability: None,
    text_model: false,
    key_required: true,
    output_modalities: &[Modality::Json, Modality::Image],
    asynchronous: true,
    ..RULES
};

fn model(rules: &Rules, toml: &str) -> Result<Model, ConfigError> {
    Model::new(toml::from_str(&format!("model = 'm'\n{toml}")).unwrap(), rules)
}

#[track_caller]
fn refused(toml: &str, expected: ConfigError) {
    let error = model(&RULES, toml).unwrap_err();
    assert_eq!(error, expected, "{toml}");
    let member = toml.trim_start_matches("[capabilities]\n").split(' ').next().unwrap();
    let named = [error.member(), "capabilities"];
    assert!(named.contains(&member) || error.member() == "capabilities", "{toml} {}", error.member());
}

#[test]
fn the_least_configuration_has_the_defaults_of_its_type() {
    let least = model(&RULES, "").unwrap();
    assert_eq!((least.id.as_str(), least.model.as_str()), ("some", "m"));
    assert_eq!(least.abilities, ["text-generation"]);
    assert_eq!(least.input_modalities, [Modality::Text, Modality::Json]);
    assert_eq!(least.output_modalities, [Modality::Text]);
    assert_eq!((least.key, least.max_tokens, least.tools), (None, None, false));
    assert_eq!(least.base, BaseUrl::parse("https://example.com/v1").unwrap());
    let media = model(&MEDIA, "abilities = ['image-generation']\napi_key_env = 'KEY'").unwrap();
    assert_eq!(media.output_modalities, [Modality::Json]);
    let declared = &media.manifest().models[0];
    assert!(declared.asynchronous && declared.cancel && !declared.stream && !declared.tools);
}

#[test]
fn a_full_configuration_is_taken_as_written() {
    let full = model(
        &RULES,
        "id = 'local'\nabilities = ['a', 'b']\nbase_url = 'http://127.0.0.1:1'\napi_key_env = 'LOCAL_KEY'\n\
         max_tokens = 9\n[capabilities]\ninput_modalities = ['image', 'text']\n\
         output_modalities = ['text']\ntools = true",
    )
    .unwrap();
    let declared = &full.manifest().models[0];
    assert_eq!((full.id.as_str(), declared.abilities.len()), ("local", 2));
    assert_eq!(declared.input_modalities, [Modality::Image, Modality::Text]);
    assert!(declared.stream && declared.cancel && declared.tools);
    assert!(!declared.structured_output && !declared.asynchronous);
    assert_eq!(full.max_tokens, Some(9));
    assert!(matches!(full.key, Some(CredentialSource::Environment(name)) if name.as_str() == "LOCAL_KEY"));
}

#[test]
fn unknown_members_and_inline_keys_do_not_parse() {
    for toml in ["api_key = 'sk-1'", "headers = {}", "[capabilities]\nstream = true", "max_tokens = -1"] {
        assert!(toml::from_str::<ModelConfig>(&format!("model = 'm'\n{toml}")).is_err(), "{toml}");
    }
    assert!(toml::from_str::<ModelConfig>("id = 'x'").is_err(), "a model must be named");
}

#[test]
fn every_rule_has_its_refusal() {
    refused("id = ''", ConfigError::Id);
    refused(&format!("id = '{}'", "x".repeat(257)), ConfigError::Id);
    refused("abilities = []", ConfigError::Abilities);
    refused("abilities = ['a', 'a']", ConfigError::Abilities);
    refused("abilities = ['']", ConfigError::Abilities);
    refused("max_tokens = 0", ConfigError::MaxTokens);
    refused("base_url = 'http://example.com'", ConfigError::BaseUrl(BaseUrlError::Scheme));
    refused("api_key_env = 'lower'", ConfigError::ApiKeyEnv);
    refused("api_key_file = 'relative'", ConfigError::ApiKeyFile);
    refused("api_key_env = 'KEY'\napi_key_file = '/k'", ConfigError::TwoKeys);
    for list in ["[]", "['text', 'text']", "['audio']", "['file']", "['Text']"] {
        refused(&format!("[capabilities]\ninput_modalities = {list}"), ConfigError::InputModalities);
    }
    for list in ["[]", "['json']", "['text', 'text']"] {
        refused(&format!("[capabilities]\noutput_modalities = {list}"), ConfigError::OutputModalities);
    }
    let config = ModelConfig { model: String::new(), ..toml::from_str("model = 'm'").unwrap() };
    assert_eq!(Model::new(config, &RULES).unwrap_err(), ConfigError::Model);
    let addressless = Rules { default_base_url: None, ..RULES };
    assert_eq!(model(&addressless, "").unwrap_err(), ConfigError::NoBaseUrl);
    let media = |toml: &str| model(&MEDIA, toml).unwrap_err();
    assert_eq!(media("api_key_env = 'KEY'"), ConfigError::Abilities);
    assert_eq!(media("abilities = ['a']"), ConfigError::NoKey);
    assert_eq!(media("abilities = ['a']\nmax_tokens = 1"), ConfigError::MaxTokens);
    assert_eq!(media("abilities = ['a']\n[capabilities]\ntools = false"), ConfigError::Tools);
}

#[test]
fn no_refusal_repeats_a_value() {
    let config: ModelConfig = toml::from_str("model = 'm'\nbase_url = 'https://u:hunter2@h/'").unwrap();
    let shown = format!("{config:?} {}", Model::new(config.clone(), &RULES).unwrap_err());
    assert!(!shown.contains("hunter2") && config.base_url.unwrap().contains("hunter2"));
}
