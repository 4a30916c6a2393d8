//! Names of models: what can be named, and what a name chooses.

use std::collections::BTreeSet;

use sealog_events::Target;
use sealog_execution::ProviderManifest;
use serde_json::{Value, json};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub ability: String,
    /// `None`: whoever has the ability.
    pub only: Option<Target>,
}

/// `<provider id>/<model>`, else the first provider with that model, else an ability of that name; `None` for none of
/// them.
pub fn choose(name: &str, manifests: &[ProviderManifest]) -> Option<Choice> {
    let models = || {
        manifests
            .iter()
            .flat_map(|manifest| manifest.models.iter().map(move |model| (manifest.provider.as_str(), model)))
    };
    let full = |provider: &str, model: &str| {
        name.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')) == Some(model)
    };
    let found = models()
        .find(|(provider, model)| full(provider, &model.model))
        .or_else(|| models().find(|(_, model)| model.model == name));
    if let Some((provider, model)) = found {
        let target = Target { provider: provider.to_owned(), model: model.model.clone() };
        // A model without an ability can do nothing.
        let ability = model.abilities.first()?.clone();
        return Some(Choice { ability, only: Some(target) });
    }
    let known = models().any(|(_, model)| model.abilities.iter().any(|ability| ability == name));
    known.then(|| Choice { ability: name.to_owned(), only: None })
}

/// The list of everything that [`choose`] knows, in an object that the clients of all dialects read.
pub fn list(manifests: &[ProviderManifest]) -> String {
    let data = entries(manifests);
    let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
    let (first, last) = (id(data.first()), id(data.last()));
    json!({"object": "list", "data": data, "has_more": false, "first_id": first, "last_id": last}).to_string()
}

/// The entry of [`list`] with that name.
pub fn one(name: &str, manifests: &[ProviderManifest]) -> Option<String> {
    entries(manifests).into_iter().find(|model| model["id"] == name).map(|model| model.to_string())
}

fn entries(manifests: &[ProviderManifest]) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut data: Vec<Value> = Vec::new();
    let mut add = |id: String, owner: &str| {
        if seen.insert(id.clone()) {
            data.push(json!({
                "id": id, "object": "model", "created": 0, "owned_by": owner,
                "type": "model", "display_name": id, "created_at": "1970-01-01T00:00:00Z",
            }));
        }
    };
    let models =
        || manifests.iter().flat_map(|manifest| manifest.models.iter().map(move |model| (manifest, model)));
    for (manifest, model) in models() {
        add(format!("{}/{}", manifest.provider, model.model), &manifest.provider);
    }
    for (manifest, model) in models() {
        add(model.model.clone(), &manifest.provider);
    }
    for (_, model) in models() {
        for ability in &model.abilities {
            add(ability.clone(), "sealog");
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealog_execution::ModelManifest;

    fn manifest(provider: &str, models: &[(&str, &[&str])]) -> ProviderManifest {
        let model = |(model, abilities): &(&str, &[&str])| ModelManifest {
            model: (*model).to_owned(),
            abilities: abilities.iter().map(|ability| (*ability).to_owned()).collect(),
            input_modalities: Vec::new(),
            output_modalities: Vec::new(),
            stream: true,
            tools: false,
            structured_output: false,
            asynchronous: false,
            cancel: true,
        };
        ProviderManifest {
            provider: provider.to_owned(),
            protocol_version: String::new(),
            models: models.iter().map(model).collect(),
            limits: None,
        }
    }

    fn manifests() -> Vec<ProviderManifest> {
        vec![
            manifest("a", &[("m", &["text-generation", "chat"]), ("b/m", &["chat"])]),
            manifest("a/b", &[("m", &["other"])]),
            manifest("c", &[("m", &["chat"]), ("chat", &["poems"]), ("idle", &[])]),
        ]
    }

    #[track_caller]
    fn check(name: &str, expected: Option<(&str, Option<(&str, &str)>)>) {
        let found = choose(name, &manifests());
        let target =
            |(provider, model): (&str, &str)| Target { provider: provider.into(), model: model.into() };
        let expected =
            expected.map(|(ability, only)| Choice { ability: ability.into(), only: only.map(target) });
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn provider_and_model_then_model_then_ability_then_nothing() {
        check("c/m", Some(("chat", Some(("c", "m")))));
        check("m", Some(("text-generation", Some(("a", "m")))));
        // Both readings exist; the providers' order decides.
        check("a/b/m", Some(("chat", Some(("a", "b/m")))));
        check("chat", Some(("poems", Some(("c", "chat")))));
        check("other", Some(("other", None)));
        check("text-generation", Some(("text-generation", None)));
        for unknown in ["", "a", "a/", "/m", "M", "a/x", "c/m/"] {
            check(unknown, None);
        }
        check("idle", None);
    }

    #[test]
    fn everything_that_is_listed_can_be_chosen_but_a_model_without_abilities() {
        let listed: Value = serde_json::from_str(&list(&manifests())).unwrap();
        let ids: Vec<&str> =
            listed["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
        assert_eq!(
            ids,
            [
                "a/m",
                "a/b/m",
                "c/m",
                "c/chat",
                "c/idle",
                "m",
                "b/m",
                "chat",
                "idle",
                "text-generation",
                "other",
                "poems"
            ]
        );
        for id in ids {
            assert_eq!(choose(id, &manifests()).is_none(), id.ends_with("idle"), "{id}");
        }
        for entry in listed["data"].as_array().unwrap() {
            let found = one(entry["id"].as_str().unwrap(), &manifests()).unwrap();
            assert_eq!(&serde_json::from_str::<Value>(&found).unwrap(), entry);
        }
        for unknown in ["", "a", "a/", "/m", "M"] {
            assert_eq!(one(unknown, &manifests()), None, "{unknown}");
        }
        assert_eq!((&listed["first_id"], &listed["last_id"]), (&json!("a/m"), &json!("poems")));
    }
}
